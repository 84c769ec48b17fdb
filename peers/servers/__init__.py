"""TLS servers that are not ours, on a port of this machine, for `residue play`."""

from .foreign import KINDS, MODES, Absent, Running, start

__all__ = ["KINDS", "MODES", "Absent", "Running", "start"]
