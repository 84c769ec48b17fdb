"""What an operator sets, as plain numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits of one server. Times are milliseconds; each bounds what a peer can make us hold.

    `connections` bounds descriptors and places, `handshakes` and `rate` the CPU of key exchanges,
    `handshake_timeout` how long a silent peer keeps a place of either, `idle` how long a silent
    established one does, `areas` the memory of records and handshakes under way.
    """

    connections: int = 256
    handshakes: int = 32
    rate: int = 1000
    handshake_timeout: int = 10_000
    idle: int = 60_000
    areas: int = 256

    @property
    def sparing(self) -> bool:
        """Whether a connection may have to wait for an area."""
        return self.areas < self.connections

    @property
    def handshakes_at_once(self) -> int:
        """How many handshakes run: at most half the areas, so that traffic always has some."""
        return min(self.handshakes, self.areas // 2)
