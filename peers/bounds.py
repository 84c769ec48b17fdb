"""What bounds input that brings a connection no further: a table of record kind and state.

A peer may send any record again and again. Whatever it is, something ends it after few of them or
few bytes, in every state, or a peer could have the server read for ever. The page docs/refusals.md
shows the table, and tests/engine/test_without_progress.py tries each of its cells.
"""

from __future__ import annotations

from enum import Enum


class Bound(Enum):
    """What ends a repetition, as the page says it."""

    REFUSED = "the first is refused"
    RUN = (
        "32 in a row, of all kinds together, are read past; non-empty application data "
        "in either direction and the Finished end a run"
    )
    SUM = "16,384 bytes in a connection are skipped"
    MESSAGE = (
        "each brings a byte at least of one whose length was judged at its "
        "fourth byte, 16,384 at most"
    )
    ROOM = "they are progress, and wait until the program receives them"


_NO, _RUN, _SUM, _MESSAGE, _ROOM = Bound

# The kind of record, and its bound in each of `engine.refusals.STATES`. Before there are keys, a
# protected record is one that nobody can open.
TABLE: dict[str, tuple[Bound, ...]] = {
    "a handshake record in the clear, empty": (_NO,) * 6,
    "a handshake record in the clear, of a byte": (_MESSAGE, _MESSAGE, _NO, _NO, _NO, _NO),
    "change_cipher_spec": (_NO, _RUN, _RUN, _RUN, _RUN, _NO),
    "user_canceled in the clear": (_RUN, _RUN, _RUN, _NO, _RUN, _NO),
    "user_canceled in the clear, once a record opened": (_NO,) * 6,
    "a record that does not open": (_NO,) * 6,
    "early data that was offered, empty": (_NO, _RUN, _RUN, _NO, _RUN, _NO),
    "early data that was offered, of a byte": (_NO, _SUM, _SUM, _NO, _SUM, _NO),
    "a protected handshake record, empty": (_NO,) * 6,
    "a protected handshake record, of a byte": (_NO, _NO, _MESSAGE, _MESSAGE, _MESSAGE, _RUN),
    "a protected KeyUpdate": (_NO, _NO, _NO, _NO, _NO, _RUN),
    "a protected user_canceled": (_NO, _NO, _RUN, _RUN, _RUN, _RUN),
    "a protected change_cipher_spec": (_NO,) * 6,
    "protected padding alone": (_NO,) * 6,
    "protected application data, empty": (_NO, _NO, _NO, _NO, _NO, _RUN),
    "protected application data": (_NO, _NO, _NO, _NO, _NO, _ROOM),
}

ARGUMENT = (
    "What a client can have the server do before it is known is therefore bounded. A ClientHello "
    "of 16 KiB in records of a byte, early data in records of a byte, and a second hello like the "
    "first are 49,152 records and 288 KiB together; a client's Certificate in records of a byte is "
    "16,388 records more, of 23 bytes each. A record that is but a part of a hello costs 0.4 µs, "
    "two to three times what OpenSSL needs: a row of them is read in a loop of its own. One of "
    "early data or of a Certificate costs three to five times as much, because each is tried or "
    "opened by itself. To make them cheaper would be to refuse them, and a client may cut what it "
    "says as it likes (RFC 8446 §5.1). All of it is some 60 ms of one processor, once in a "
    "handshake, which has a deadline and one of few places. A handshake of 200 bytes costs 0.2 ms, "
    "so who wants to use up a server does better with many of those.",
    "",
    "Padding (§5.4) costs fifteen comparisons, each one call of C, whatever its length: the number "
    "of zeros is found one binary digit after the other. One call that finds it without a copy of "
    "the plaintext, which could not be wiped, would be a regular expression: it goes a byte at a "
    "time, and takes 0.25 ms for a whole record where this takes 3 µs.",
)
