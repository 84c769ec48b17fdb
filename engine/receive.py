"""The record loop: bytes of the peer in, one record at a time, to its message or its refusal.

A record that arrived whole is read where the caller has it; one in pieces is gathered in the
area's in buffer. A header is judged when its five bytes are there, a handshake message when its
four are, so nothing is held open for a length that the state does not allow. Refusals are returned,
not raised: no exception crosses a function that holds secrets.
"""

import struct
from typing import Final

from . import codepoints as c
from . import copies
from .key_schedule import LAST_SEQUENCE
from .layout import (
    ALERT_RECEIVED,
    ESTABLISHED,
    F_EARLY_DATA,
    F_PEER_CLOSED,
    FLAGS,
    HANDSHAKE,
    HEADER,
    IN,
    MAX_CIPHERTEXT,
    MAX_INNER,
    MAX_PLAINTEXT,
    OUT_RESERVE,
    READ_SEQ,
    RECEIVED,
    RECEIVED_CAP,
    RUN,
    SKIPPED,
    STATE,
    TAG,
    WAIT_CERTIFICATE,
    WAIT_CERTIFICATE_VERIFY,
    WAIT_CLIENT_HELLO,
    WAIT_FINISHED,
    WAIT_SECOND_CLIENT_HELLO,
)
from .pool import Area
from .records import fail, made_no_progress, open_record, out_room
from .refusals import Refusal
from .server import Server

# Early data of a client that hoped for 0-RTT is skipped up to here (RFC 8446 §4.2.10), or it
# would be a way to have the server read for ever.
MAX_SKIPPED: Final = 16_384

# The record types that each state reads (§5, §D.4), and while a handshake message is incomplete:
# its fragments must not be interleaved with anything (§5.1).
_CLEAR: Final = frozenset({c.HANDSHAKE})
_SEALED: Final = frozenset({c.APPLICATION_DATA})
_OUTER: Final[dict[int, frozenset[int]]] = {
    WAIT_CLIENT_HELLO: frozenset({c.HANDSHAKE, c.ALERT}),
    WAIT_SECOND_CLIENT_HELLO: frozenset({c.HANDSHAKE, c.ALERT, c.CHANGE_CIPHER_SPEC}),
    # A client that refuses the server's flight has no key yet: its alert is in the clear, until a
    # record of it opened.
    WAIT_CERTIFICATE: frozenset({c.APPLICATION_DATA, c.ALERT, c.CHANGE_CIPHER_SPEC}),
    WAIT_CERTIFICATE_VERIFY: frozenset({c.APPLICATION_DATA, c.CHANGE_CIPHER_SPEC}),
    WAIT_FINISHED: frozenset({c.APPLICATION_DATA, c.ALERT, c.CHANGE_CIPHER_SPEC}),
    ESTABLISHED: _SEALED,
}
_RECORD: Final = struct.Struct(">BBxH").unpack_from  # a record's header, but the minor version
_LENGTH: Final = struct.Struct(">H").unpack_from
_RECEIVED_END: Final = RECEIVED + RECEIVED_CAP


def feed(server: Server, area: Area, view: memoryview) -> int:
    """Read records until the bytes or the room end; the number of bytes taken.

    After a failure or a close_notify everything is taken, and dropped.
    """
    total = len(view)
    taken = 0
    block = area.bytes
    while taken < total:
        have = area.in_end - IN
        if have == 0 and total - taken >= HEADER:
            header = view[taken : taken + HEADER]
        else:
            if have < HEADER:
                piece = view[taken : taken + HEADER - have]
                _gather(area, piece)
                taken += len(piece)
                have += len(piece)
                if have < HEADER:
                    break
            header = block[IN : IN + HEADER]
        length = header[3] << 8 | header[4]
        refusal = _judge(area, header[0], header[1], length)
        if refusal is not None:
            fail(area, refusal)
            return total
        if not _has_room(area, length):
            break
        whole = HEADER + length
        if have == 0 and total - taken >= whole:
            body = view[taken + HEADER : taken + whole]
            taken += whole
        else:
            piece = view[taken : taken + whole - have]
            _gather(area, piece)
            taken += len(piece)
            if area.in_end - IN < whole:
                break
            body = block[IN + HEADER : IN + whole]
        refusal = _on_record(server, area, header, body)
        area.in_end = IN
        if refusal is not None:
            fail(area, refusal)
            return total
        if area.words[FLAGS] & F_PEER_CLOSED:
            return total
        if header[0] == c.HANDSHAKE and area.handshake_end > HANDSHAKE + 3:
            taken = _fragments(area, view, taken)
    return taken


def _fragments(area: Area, view: memoryview, taken: int) -> int:
    """Keep the records in the clear that are each but a part of the message being gathered, and
    whole in the view; where they end.

    Each would pass `_judge` and `_on_handshake` as well. But a hello may come in sixteen thousand
    records of a byte, from somebody who has proved nothing yet, and here they cost a quarter.
    """
    # Of the three bytes of the message's length the first is 0: it was judged.
    (length,) = _LENGTH(area.bytes, HANDSHAKE + 2)
    missing = HANDSHAKE + 4 + length - area.handshake_end
    total = len(view)
    while taken + HEADER < total:
        content_type, major, length = _RECORD(view, taken)
        end = taken + HEADER + length
        if content_type != c.HANDSHAKE or major != 3 or not 0 < length < missing or end > total:
            break
        _keep(area, view[taken + HEADER : end])
        missing -= length
        taken = end
    return taken


def _gather(area: Area, piece: memoryview) -> None:
    end = area.in_end + len(piece)
    if end > area.in_high:
        area.in_high = end
    area.bytes[area.in_end : end] = piece
    area.in_end = end


def _judge(area: Area, content_type: int, major: int, length: int) -> Refusal | None:
    """A record's header: type for this state, version, length, in that order."""
    words = area.words
    state = words[STATE]
    if area.handshake_end != HANDSHAKE:
        allowed = _CLEAR if state <= WAIT_SECOND_CLIENT_HELLO else _SEALED
    else:
        allowed = _OUTER[state]
    skipping = words[FLAGS] & F_EARLY_DATA
    if content_type not in allowed and not (
        content_type == c.APPLICATION_DATA
        and skipping
        and state == WAIT_SECOND_CLIENT_HELLO
        and area.handshake_end == HANDSHAKE
    ):
        return Refusal.UNEXPECTED_MESSAGE
    # A client that has keys speaks under them (§6): what comes in the clear now is anybody's, and
    # would let anybody on the path end the connection in the client's name.
    if content_type == c.ALERT and words[READ_SEQ]:
        return Refusal.UNEXPECTED_MESSAGE
    if major != 3:
        return Refusal.PROTOCOL_VERSION
    if content_type == c.APPLICATION_DATA:
        if length > MAX_CIPHERTEXT:
            return Refusal.RECORD_OVERFLOW
        if length < TAG and not skipping:
            return Refusal.BAD_RECORD_MAC
        return None
    if length > MAX_PLAINTEXT:
        return Refusal.RECORD_OVERFLOW
    if length == 0 or (content_type == c.CHANGE_CIPHER_SPEC and length != 1):
        return Refusal.UNEXPECTED_MESSAGE
    return None


def _has_room(area: Area, length: int) -> bool:
    """Room for the plaintext of a record of this length, and for what must be said of it."""
    if out_room(area) < OUT_RESERVE:
        return False
    if area.received_end + length > _RECEIVED_END and area.received_start > RECEIVED:
        start, end = area.received_start, area.received_end
        waiting = end - start
        block = area.bytes
        # Empty while it moves: a fault must not leave plaintext of which a part has moved.
        area.received_start = area.received_end = RECEIVED
        block[RECEIVED : RECEIVED + waiting] = block[start:end]
        area.received_end = RECEIVED + waiting
    return area.received_end + length - TAG <= _RECEIVED_END


def _on_record(server: Server, area: Area, header: memoryview, body: memoryview) -> Refusal | None:
    """One whole record whose header was judged."""
    content_type = header[0]
    if content_type == c.APPLICATION_DATA:
        if area.words[STATE] == WAIT_SECOND_CLIENT_HELLO:
            return _skip(area, len(body))
        return _on_protected(server, area, header, body)
    if content_type == c.HANDSHAKE:
        return _on_handshake(server, area, body)
    if content_type == c.ALERT:
        return _on_alert(area, body)
    # change_cipher_spec, for middleboxes: dropped unread but for its one value (§5).
    if body[0] != 1:
        return Refusal.UNEXPECTED_MESSAGE
    return Refusal.TOO_MANY_MESSAGES if made_no_progress(area) else None


def _skip(area: Area, length: int) -> Refusal | None:
    """Drop a record of early data that was never accepted: all of them up to a sum of bytes, to
    which an empty one adds nothing, so that those are bounded by their run."""
    if not length:
        return Refusal.TOO_MANY_MESSAGES if made_no_progress(area) else None
    words = area.words
    words[SKIPPED] += length
    return Refusal.SERVER_EARLY_DATA_SIZE if words[SKIPPED] > MAX_SKIPPED else None


def _on_protected(
    server: Server, area: Area, header: memoryview, body: memoryview
) -> Refusal | None:
    words = area.words
    if words[READ_SEQ] == LAST_SEQUENCE:
        return Refusal.TOO_MANY_MESSAGES  # a sequence number must not wrap (§5.3)
    start = area.received_end
    early = words[FLAGS] & F_EARLY_DATA
    if len(body) < TAG or not open_record(area, header, body, start):
        return _skip(area, len(body)) if early else Refusal.BAD_RECORD_MAC
    if early:
        words[FLAGS] &= ~F_EARLY_DATA
    return on_opened(server, area, start, start + len(body) - TAG)


def on_opened(server: Server, area: Area, start: int, end: int) -> Refusal | None:
    """An inner plaintext (§5.2): content, its type, zeros. Application data stays where it is."""
    words = area.words
    block = area.bytes
    if end - start > MAX_INNER:
        return Refusal.RECORD_OVERFLOW
    end = copies.content_end(block, start, end) - 1
    if end < start:
        return Refusal.UNEXPECTED_MESSAGE
    inner_type = block[end]
    if inner_type == c.HANDSHAKE:
        if end == start:
            return Refusal.UNEXPECTED_MESSAGE
        return _on_handshake(server, area, block[start:end])
    if area.handshake_end != HANDSHAKE:
        return Refusal.UNEXPECTED_MESSAGE
    if inner_type == c.ALERT:
        return _on_alert(area, block[start:end])
    if inner_type != c.APPLICATION_DATA or words[STATE] != ESTABLISHED:
        return Refusal.UNEXPECTED_MESSAGE
    if end == start:
        return Refusal.TOO_MANY_MESSAGES if made_no_progress(area) else None
    words[RUN] = 0
    area.received_end = end
    return None


def _on_alert(area: Area, body: memoryview) -> Refusal | None:
    """RFC 8446 §6: the level says nothing; only two descriptions do not end the connection."""
    if not body:
        return Refusal.UNEXPECTED_MESSAGE
    if len(body) != 2:
        return Refusal.DECODE_ERROR
    words = area.words
    description = body[1]
    if description == c.ALERT_USER_CANCELED:
        return Refusal.TOO_MANY_MESSAGES if made_no_progress(area) else None
    if description == c.ALERT_CLOSE_NOTIFY and words[STATE] == ESTABLISHED:
        words[FLAGS] |= F_PEER_CLOSED
        return None
    words[ALERT_RECEIVED] = description + 1
    return Refusal.ALERT


def _on_handshake(server: Server, area: Area, data: memoryview) -> Refusal | None:
    """The handshake bytes of one record: every message that they complete."""
    block = area.bytes
    while data:
        have = area.handshake_end - HANDSHAKE
        if have + len(data) < 4:
            _keep(area, data)
            return None
        if have == 0:
            start = data
        else:
            if have < 4:
                _keep(area, data[: 4 - have])
                data = data[4 - have :]
                have = 4
            start = block[HANDSHAKE : HANDSHAKE + 4]
        length = start[1] << 16 | start[2] << 8 | start[3]
        rule = server.rule(area, start[0])
        if rule is None:
            return Refusal.UNEXPECTED_MESSAGE
        if not rule.low <= length <= rule.high:
            return rule.refusal
        missing = 4 + length - have
        if len(data) < missing:
            _keep(area, data)
            return None
        if have == 0:
            message = data[:missing]
        else:
            _keep(area, data[:missing])
            message = block[HANDSHAKE : HANDSHAKE + 4 + length]
        data = data[missing:]
        # A message that changes the keys ends its record: what stands behind it was sent under
        # keys that no longer hold (§5.1). Judged before the message has any effect.
        if data and rule.ends_record:
            return Refusal.UNEXPECTED_MESSAGE
        refusal = rule.handler(area, message)
        area.handshake_end = HANDSHAKE
        if refusal is not None:
            return refusal
    return None


def _keep(area: Area, data: memoryview) -> None:
    """Append to the message being gathered; its length was judged, so it fits."""
    end = area.handshake_end + len(data)
    if end > area.handshake_high:
        area.handshake_high = end
    area.bytes[area.handshake_end : end] = data
    area.handshake_end = end
