"""The limits under which an input is run again, and above which it is a finding of its own."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20

HANG_SECONDS = 10.0
"""Processor time of one input; the fuzzers' own `-timeout`. The slowest committed one takes 0.1."""

MEMORY = 1024 * MIB
"""Memory over the base; the fuzzers' own `-rss_limit_mb`. A run needs less than 10 MiB."""

SLOW_SECONDS = 1.0
"""An input above this is slow: ten times the slowest committed one, a tenth of a hang. A server
that one peer can hold for a second serves nobody else."""

HUNGRY = 64 * MIB
"""An input above this is hungry. An area is 80 KiB and an input at most 20: what takes a thousand
times as much was sized by the peer."""

MINIMISE_SECONDS = 1.0
"""What counts as a hang while an input is made smaller: with the full limit a night would not hold
the tries. The last one is checked under the full limit."""


@dataclass(frozen=True)
class Limits:
    """What one run may take, and what is worth a finding. Seconds of processor time, bytes."""

    seconds: float = HANG_SECONDS
    memory: int = MEMORY
    slow: float = SLOW_SECONDS
    hungry: int = HUNGRY
