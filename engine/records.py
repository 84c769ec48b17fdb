"""The record layer of one connection: protection, the bounded out queue, and its end.

Everything here works on an area. A record is sealed where it will be sent from and opened where it
will be received from: content is copied once, and no object is made a record but its nonce and the
slices that name it.
"""

from typing import Final

from cryptography.exceptions import InvalidTag

from . import codepoints as c
from . import copies
from .key_schedule import LAST_SEQUENCE, SUITES, Buffer, CipherSuite, Pads
from .layout import (
    ESTABLISHED,
    F_CLOSE_SENT,
    FAILED,
    FAILURE,
    FLAGS,
    HANDSHAKE,
    HEADER,
    IN,
    MAX_PLAINTEXT,
    OUT,
    OUT_CAP,
    OUT_RESERVE,
    READ_IV,
    READ_KEY,
    READ_SECRET,
    READ_SEQ,
    RUN,
    SCRATCH,
    SCRATCH_END,
    STATE,
    SUITE,
    TAG,
    WRITE_IV,
    WRITE_KEY,
    WRITE_SECRET,
    WRITE_SEQ,
)
from .pool import Area
from .refusals import Refusal

_OUT_END: Final = OUT + OUT_CAP
OVERHEAD: Final = HEADER + 1 + TAG
# A protected record's type and version (§5.2), before its length.
_PROTECTED: Final = (c.APPLICATION_DATA << 16 | 0x0303) << 16
_CONTENT: Final = OUT + HEADER
_FATAL: Final = 2
_WARNING: Final = 1
_KEY_UPDATE_ANSWER: Final = bytes([c.KEY_UPDATE, 0, 0, 1, c.UPDATE_NOT_REQUESTED])
_CLOSE_NOTIFY: Final = bytes([_WARNING, c.ALERT_CLOSE_NOTIFY])

# Messages in a row that carry nothing: KeyUpdates, empty application records, skipped ones
# included, user_canceled, dropped change_cipher_spec. Each costs the server work and the peer a few
# bytes; a longer run is a flood, a lifetime's count would end honest connections of years.
MAX_RUN: Final = 32


def protected_header(length: int) -> bytes:
    """The header of a protected record of `length` bytes of content without padding (§5.2)."""
    return (_PROTECTED | length + 1 + TAG).to_bytes(HEADER)


# Those of small records, made once.
SHORT: Final = 1024
HEADERS: Final = tuple(protected_header(length) for length in range(SHORT))


# -- keys -----------------------------------------------------------------------------------


def set_read_secret(area: Area, suite: CipherSuite, secret: Buffer, pads: Pads) -> None:
    """Install a new read key: the records that follow open under it, from sequence number 0.

    `pads` is the secret's HMAC state, which the caller may have made for other labels too.
    """
    block = area.bytes
    block[READ_SECRET : READ_SECRET + suite.hash.size] = secret
    key = block[READ_KEY : READ_KEY + suite.key_length]
    key[:] = suite.traffic_key(pads)
    iv = suite.traffic_iv(pads)
    block[READ_IV : READ_IV + 12] = iv
    area.opener = suite.aead(key)
    area.read_iv = int.from_bytes(iv)
    area.words[READ_SEQ] = 0


def set_write_secret(area: Area, suite: CipherSuite, secret: Buffer, pads: Pads) -> None:
    """Install a new write key: the records that follow are sealed under it, from number 0."""
    block = area.bytes
    block[WRITE_SECRET : WRITE_SECRET + suite.hash.size] = secret
    key = block[WRITE_KEY : WRITE_KEY + suite.key_length]
    key[:] = suite.traffic_key(pads)
    iv = suite.traffic_iv(pads)
    block[WRITE_IV : WRITE_IV + 12] = iv
    area.sealer = suite.aead(key)
    area.write_iv = int.from_bytes(iv)
    area.write_limit = suite.record_limit
    area.words[WRITE_SEQ] = 0


def reload_keys(area: Area) -> None:
    """Make the AEAD objects again from the keys of a core that was leased in."""
    block = area.bytes
    suite = SUITES[area.words[SUITE]]
    length = suite.key_length
    area.opener = suite.aead(block[READ_KEY : READ_KEY + length])
    area.sealer = suite.aead(block[WRITE_KEY : WRITE_KEY + length])
    area.read_iv = int.from_bytes(block[READ_IV : READ_IV + 12])
    area.write_iv = int.from_bytes(block[WRITE_IV : WRITE_IV + 12])
    area.write_limit = suite.record_limit


def update_read_key(area: Area) -> None:
    """The peer updated its key (§4.6.3)."""
    suite = SUITES[area.words[SUITE]]
    secret = suite.hash.next_secret(area.bytes[READ_SECRET : READ_SECRET + suite.hash.size])
    set_read_secret(area, suite, secret, suite.hash.keyed(secret))


def send_key_update(area: Area) -> None:
    """Queue a KeyUpdate that asks for none, under the old key, then take the new one (§4.6.3)."""
    suite = SUITES[area.words[SUITE]]
    queue_sealed(area, c.HANDSHAKE, _KEY_UPDATE_ANSWER)
    secret = suite.hash.next_secret(area.bytes[WRITE_SECRET : WRITE_SECRET + suite.hash.size])
    set_write_secret(area, suite, secret, suite.hash.keyed(secret))


# -- opening --------------------------------------------------------------------------------


def open_record(area: Area, header: memoryview, body: memoryview, start: int) -> bool:
    """Open a record's body into the block at `start`; its length is the body's less the tag.

    A failed opening leaves unauthenticated plaintext, which is zeroed at once.
    """
    end = start + len(body) - TAG
    if end > area.received_high:
        area.received_high = end
    if area.opener is None:
        reload_keys(area)
    opener = area.opener
    assert opener is not None
    words = area.words
    sequence = words[READ_SEQ]
    nonce = (area.read_iv ^ sequence).to_bytes(12)
    try:
        opener.decrypt_into(nonce, body, header, area.bytes[start:end])
    except InvalidTag:
        copies.clear(area.bytes, start, end)
        return False
    words[READ_SEQ] = sequence + 1
    return True


# -- the out queue --------------------------------------------------------------------------


def out_room(area: Area) -> int:
    """Bytes that can still be queued."""
    return OUT_CAP - (area.out_end - area.out_start)


def make_out_room(area: Area, length: int) -> None:
    """Room for `length` more bytes behind what is queued, which moves to the front if it must.

    Who writes there has called this first: the high-water mark rises here.
    """
    if area.out_end + length > _OUT_END:
        start, end = area.out_start, area.out_end
        queued = end - start
        block = area.bytes
        # Empty while it moves: a fault must not leave a queue of which a part has moved.
        area.out_start = area.out_end = OUT
        block[OUT : OUT + queued] = block[start:end]
        area.out_end = OUT + queued
    end = area.out_end + length
    if end > area.out_high:
        area.out_high = end


def queue_plain(area: Area, content_type: int, content: bytes) -> None:
    """Queue one unprotected record (§5.1), its version 0x0303."""
    length = len(content)
    make_out_room(area, HEADER + length)
    start = area.out_end
    end = start + HEADER + length
    area.bytes[start:end] = bytes([content_type, 3, 3, length >> 8, length & 255]) + content
    area.out_end = end


def seal_first(area: Area, length: int, sequence: int) -> None:
    """Seal the `length` bytes of application data that stand where the content of the first record
    of an empty queue belongs. `sequence` is that of the core; the caller has raised the mark."""
    words = area.words
    block = area.bytes
    last = _CONTENT + length
    block[last] = c.APPLICATION_DATA
    last += 1
    end = last + TAG
    header = HEADERS[length] if length < SHORT else protected_header(length)
    block[OUT:_CONTENT] = header
    area.sealer.encrypt_into(  # type: ignore[union-attr]
        (area.write_iv ^ sequence).to_bytes(12),
        block[_CONTENT:last],
        header,
        block[_CONTENT:end],
    )
    words[WRITE_SEQ] = sequence + 1
    if area.run:
        words[RUN] = area.run = 0
    area.out_end = end


def seal_in_place(area: Area, content_type: int, length: int) -> None:
    """Seal the `length` bytes of content that stand a header's length behind the queue's end.

    The caller has made room for the header, the content, its type and the tag, and the sealer.
    """
    block = area.bytes
    start = area.out_end
    content = start + HEADER
    last = content + length
    end = last + 1 + TAG
    block[last] = content_type
    header = protected_header(length)
    block[start:content] = header
    words = area.words
    sequence = words[WRITE_SEQ]
    area.sealer.encrypt_into(  # type: ignore[union-attr]
        (area.write_iv ^ sequence).to_bytes(12),
        block[content : last + 1],
        header,
        block[content:end],
    )
    words[WRITE_SEQ] = sequence + 1
    area.out_end = end


def queue_sealed(area: Area, content_type: int, content: Buffer) -> None:
    """Queue content protected, in as few records as hold it."""
    if area.sealer is None:
        reload_keys(area)
    view = memoryview(content)
    for start in range(0, len(view), MAX_PLAINTEXT):
        piece = view[start : start + MAX_PLAINTEXT]
        length = len(piece)
        make_out_room(area, HEADER + length + 1 + TAG)
        place = area.out_end + HEADER
        area.bytes[place : place + length] = piece
        seal_in_place(area, content_type, length)


def queue_application_data(area: Area, view: memoryview) -> int:
    """Queue as much application data as there is room for; how many bytes.

    A connection whose write key is spent fails.
    """
    taken = 0
    while taken < len(view):
        room = out_room(area) - OUT_RESERVE
        if must_update_key(area):
            if is_spent(area):
                fail(area, Refusal.TOO_MANY_MESSAGES)
                break
            if room < OUT_RESERVE:
                break
            send_key_update(area)
            continue
        count = min(len(view) - taken, MAX_PLAINTEXT, room - OVERHEAD)
        if count <= 0:
            break
        make_out_room(area, count + OVERHEAD)
        place = area.out_end + HEADER
        area.bytes[place : place + count] = view[taken : taken + count]
        seal_in_place(area, c.APPLICATION_DATA, count)
        taken += count
    if taken:
        area.words[RUN] = 0
    return taken


def must_update_key(area: Area) -> bool:
    """The write key has protected as many records as §5.5 lets it."""
    if area.sealer is None:
        reload_keys(area)
    return bool(area.words[WRITE_SEQ] >= area.write_limit)


def is_spent(area: Area) -> bool:
    """The write key has no sequence number left. It must not wrap (§5.3: the nonces would come
    again), so that nothing follows, neither a new key, which is said under the old, nor an alert.
    """
    return bool(area.words[WRITE_SEQ] >= LAST_SEQUENCE)


def queue_alert(area: Area, content: bytes) -> None:
    """Queue an alert under the write key in force, in the clear before there is one."""
    if area.sealer is None and area.words[STATE] != ESTABLISHED:
        queue_plain(area, c.ALERT, content)
    else:
        queue_sealed(area, c.ALERT, content)


def queue_close_notify(area: Area) -> None:
    """Queue a close_notify; a connection whose write key is spent fails instead."""
    if is_spent(area):
        fail(area, Refusal.TOO_MANY_MESSAGES)
        return
    queue_alert(area, _CLOSE_NOTIFY)
    area.words[FLAGS] |= F_CLOSE_SENT


# -- the end --------------------------------------------------------------------------------


def fail(area: Area, refusal: Refusal) -> None:
    """End a connection: its alert queued, its keys cleared at once.

    What was authenticated before stays to be received; nothing is read or sent any more. After
    our close_notify nothing may follow, an alert neither (RFC 8446 §6.1), and under a spent key
    nothing can.
    """
    words = area.words
    if words[STATE] == FAILED:
        return
    if refusal.alert is not None and not (words[FLAGS] & F_CLOSE_SENT or is_spent(area)):
        queue_alert(area, bytes([_FATAL, refusal.alert]))
    end(area, refusal)


def end(area: Area, refusal: Refusal) -> None:
    """End a connection without a word."""
    words = area.words
    words[FAILURE] = refusal.code
    words[STATE] = FAILED
    forget_keys(area)


def forget_keys(area: Area) -> None:
    """Clear keys, handshake secrets, and input that will not be read."""
    block = area.bytes
    copies.clear_keys(block)
    forget_scratch(area)
    copies.clear(block, IN, area.in_high)
    copies.clear(block, HANDSHAKE, area.handshake_high)
    area.in_end = area.in_high = IN
    area.handshake_end = area.handshake_high = HANDSHAKE
    area.forget()


def forget_scratch(area: Area) -> None:
    """Clear what only the handshake needed, and at its end: a connection that is never idle keeps
    its area, and the client's first traffic secret would undo every KeyUpdate (§4.6.3)."""
    if area.scratch_used:
        copies.clear(area.bytes, SCRATCH, SCRATCH_END)
        area.scratch_used = False


def made_no_progress(area: Area) -> bool:
    """Count one more message that carried nothing; True when the run is a flood."""
    words = area.words
    words[RUN] += 1
    return bool(words[RUN] > MAX_RUN)
