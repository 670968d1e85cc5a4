"""Run an integration's tests with the lowest and the newest version of its packages.

    python tests/integrations/versions.py [extra ...]

Versions come from the extras in pyproject.toml. Each is installed without its dependencies into a
folder that goes before all others; everything else is that of the environment.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS = ["fastai", "keras", "lightning", "sklearn", "timm", "torchvision", "transformers"]


def results_of(extra: str, packages: list[str]) -> str:
    """Return the last line of the tests with these packages."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run([*pip, *packages], check=True, stderr=subprocess.DEVNULL)
        found = sorted(path.stem for path in Path(folder).glob("*.dist-info"))
        paths = os.pathsep.join([folder, str(ROOT / "src")])
        tests = [sys.executable, "-m", "pytest", "-q", "--integrations", "-p", "no:xdist"]
        done = subprocess.run(
            [*tests, f"tests/integrations/test_{extra}.py"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        last = (done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]])[-1]
        return f"| {extra} | {', '.join(found).replace('-', ' ')} | {last.strip('= ')} |"


def main() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    print("| extra | versions | result |\n| --- | --- | --- |")
    for extra in sys.argv[1:] or EXTRAS:
        bounds = [re.match(r"([\w-]+)>=([\w.]+)", package) for package in extras[extra]]
        lowest = [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]
        for packages in (lowest, [bound[1] for bound in bounds if bound]):
            print(results_of(extra, packages), flush=True)


if __name__ == "__main__":
    main()
