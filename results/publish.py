"""Publish the rows of finished runs.

`python results/publish.py FOLDER …` moves the rows of each folder below results/ to its
`rows.jsonl.gz`, without training curves and machine details, and updates `SHA256SUMS`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

from kmixup.lab._files import replace_content
from kmixup.lab.experiments.rows import HEADER, NAME, PUBLISHED, Done, TrainingCurve, read, repair

RESULTS = Path(__file__).parent


def publish(folder: Path) -> None:
    if (folder / NAME).is_file():
        repair(folder)  # sets damaged lines aside; raises while a sweep is writing
    rows = [
        replace(row, machine={}, **({"curve": TrainingCurve()} if isinstance(row, Done) else {}))
        for row in sorted(read(folder), key=lambda row: row.id)
    ]
    lines = [HEADER, *(row.to_dict() for row in rows)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    replace_content(folder / PUBLISHED, gzip.compress(text.encode(), mtime=0))
    (folder / NAME).unlink(missing_ok=True)


def main() -> None:
    for name in sys.argv[1:]:
        publish(RESULTS / name)
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(RESULTS).as_posix()}\n"
        for path in sorted(RESULTS.rglob(PUBLISHED))
    ]
    replace_content(RESULTS / "SHA256SUMS", "".join(sums))


if __name__ == "__main__":
    main()
