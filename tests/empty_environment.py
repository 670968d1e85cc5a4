"""Install a wheel into an empty environment, away from the repository, and use it there.

    python tests/empty_environment.py dist/*.whl

`make dist` calls it. Every command is printed with its output; the first that fails ends it.
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


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install `wheel` into `folder`, first alone and then with the lab, and use both."""
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

    install(str(wheel))
    where = "import kmixup; print(kmixup.__version__, kmixup.__file__)"
    run("python", "-c", where, expect=str(folder))
    (folder / "quick_start.py").write_text(quick_start())
    run("python", "quick_start.py")
    run("kmixup", "--help", code=2, expect='pip install "kmixup[lab]"')
    install(f"{wheel}[lab]")
    run("kmixup", "--help", expect="kmixup train")
    run("python", "-m", "kmixup", "--version", expect="kmixup")
    shutil.copy(ROOT / "examples/quickstart.py", folder)
    run("python", "quickstart.py", "--epochs", "2", expect="test error")
    run("kmixup", "train", "--data", "iris", "--epochs", "1", "--out", "run", expect="test error")


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        try_wheel(Path(sys.argv[1]).resolve(), Path(temporary).resolve())
    print("the wheel works without the repository")
