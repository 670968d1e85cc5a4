"""`python -m kmixup`: the command `kmixup`."""

from kmixup_command import main

if __name__ == "__main__":
    main()
