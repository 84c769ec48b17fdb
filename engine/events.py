"""What a connection wants, and the answers of `recv` that are not a count."""

from enum import StrEnum
from typing import Final


class Event(StrEnum):
    """The first that holds, in this order but for `want_read`, which holds when none other does."""

    FREE = "free"
    FAILED = "failed"
    WANT_WRITE = "want_write"
    CLOSED = "closed"
    ESTABLISHED = "established"
    WANT_READ = "want_read"


END: Final = 0
WOULD_BLOCK: Final = -1
FAILED: Final = -2
