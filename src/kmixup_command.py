"""The door of the command `kmixup`, outside of the package.

Importing anything of the package imports torch first, which takes seconds. Ctrl-C in these
seconds would be a traceback if there were nobody outside to hear it.
"""

import os

INTERRUPTED = 130


def main() -> None:
    """Run the command on the arguments of the process."""
    import signal

    before = signal.signal(signal.SIGINT, _leave)
    from kmixup.lab.cli import main as run

    run(ready=lambda: signal.signal(signal.SIGINT, before))


def _leave(*interrupt: object) -> None:
    """End at once: an exception might be swallowed by whatever is being imported."""
    os.write(2, b"kmixup: stopped\n")
    os._exit(INTERRUPTED)
