"""Each command is `ci.commands.NAME`: its options, and a `run` that reads from top to bottom.

A module that is named after a command and a part (`play_identities`) is that part of it.
"""
