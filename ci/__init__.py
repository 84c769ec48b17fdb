"""The `residue` command, and the campaign behind it.

What a person runs on a laptop and what a hosted CI runs are the same commands. Nothing here is
imported by the engine or the harnesses; a harness is run in a process of its own.
"""
