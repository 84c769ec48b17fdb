"""What the echo server does with what it is told: it says it back."""


class Echo:
    """An application that has no state: no connection costs it anything."""

    def receive(self, slot: int, data: memoryview) -> memoryview | bytes:
        """The answer to some bytes of a connection, which is those bytes."""
        return data

    def forget(self, slot: int) -> None:
        """The connection ended."""
