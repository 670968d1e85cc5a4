"""Install kmixup into an empty environment, away from the repository, and use it there.

    python tests/empty_environment.py dist/*.whl dist/*.tar.gz .

installs a wheel, a source archive and a clone, each into its own environment, and the extra `lab`
from the first. `make dist` calls it. Every command is printed with its output; the first that
fails ends it.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
SHOWN = 6  # lines of an output


def quick_start() -> str:
    """The first block of Python in the README."""
    (first, *_) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    return first


def try_install(source: Path, folder: Path, *, lab: bool) -> None:
    """Install `source` into `folder` and use it, also with the lab if `lab` is true."""
    folder.mkdir()
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    outside = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and name != "VIRTUAL_ENV"
    }

    def run(program: str, *words: str | Path, code: int = 0, expect: str = "") -> None:
        print("$", program, *words, flush=True)
        command = [str(programs / program), *map(str, words)]
        done = subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True)
        printed = (done.stdout + done.stderr).strip().splitlines()
        shown = printed[:SHOWN] if done.returncode == code else printed
        print(*(f"  {line}" for line in shown), sep="\n", flush=True)
        if done.returncode != code or expect not in "\n".join(printed):
            sys.exit(f"expected exit code {code} and {expect!r}, got {done.returncode}")

    def install(what: str) -> None:
        constraints = ROOT / "constraints.txt"
        run("python", "-m", "pip", "install", "--quiet", "--constraint", constraints, what)

    install(str(source))
    where = "import kmixup; print(kmixup.__version__, kmixup.__file__)"
    run("python", "-c", where, expect=str(folder))
    (folder / "quick_start.py").write_text(quick_start())
    run("python", "quick_start.py")
    run("kmixup", "--help", code=2, expect='pip install "kmixup[lab]"')
    if not lab:
        return
    install(f"{source}[lab]")
    run("kmixup", "--help", expect="kmixup train")
    run("python", "-m", "kmixup", "--version", expect="kmixup")
    shutil.copy(ROOT / "examples/quickstart.py", folder)
    run("python", "quickstart.py", "--epochs", "2", expect="test error")
    run("kmixup", "train", "--data", "iris", "--epochs", "1", "--out", "run", expect="test error")


if __name__ == "__main__":
    sources = [Path(argument).resolve() for argument in sys.argv[1:]]
    with TemporaryDirectory() as temporary:
        for number, source in enumerate(sources):
            try_install(source, Path(temporary).resolve() / str(number), lab=number == 0)
            print(f"{source.name or source} works without the repository", flush=True)
