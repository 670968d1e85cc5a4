"""The subcommands of `kmixup`, one module for each, imported by `kmixup_command` on use."""
