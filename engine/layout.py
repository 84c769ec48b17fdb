"""Where each field of a slot lies.

A slot is one block of bytes seen twice: as bytes, and its first words as signed 64-bit numbers.
The core comes first, so that "core" and "area" are the same offsets in a shorter and a longer
block: a lease is one block copy in, a settle one block copy out, and a read-only call does not
care which of the two it was handed.

What an established connection must keep belongs in the core. What a handshake uses and leaves
belongs behind it, where giving the area back clears it.
"""

from typing import Final

# Record and handshake bounds (RFC 8446 §5.1, §5.2, §5.4).
MAX_PLAINTEXT: Final = 1 << 14
MAX_INNER: Final = MAX_PLAINTEXT + 1
MAX_CIPHERTEXT: Final = MAX_PLAINTEXT + 256
HEADER: Final = 5
TAG: Final = 16
MAX_HASH: Final = 48
# The largest handshake body the server reads: a ClientHello or a client's Certificate. A peer's
# declared length is judged against it before a byte of the body is held.
MAX_BODY: Final = 16_384

# -- the core's words: index into the 64-bit view -------------------------------------------
STATE: Final = 0
FLAGS: Final = 1
FAILURE: Final = 2  # a refusal's code, 0 while nothing failed
ALERT_RECEIVED: Final = 3  # the peer's alert plus one, 0 for none
SUITE: Final = 4
GROUP: Final = 5
READ_SEQ: Final = 6
WRITE_SEQ: Final = 7
RUN: Final = 8  # messages in a row that made no progress
NAME_LEN: Final = 9
ALPN_LEN: Final = 10
SERVED_MS: Final = 11
SKIPPED: Final = 12  # bytes of early data dropped
VERDICT: Final = 13  # what became of the ticket offered
AUTH_MODE: Final = 14  # the client-certificate mode copied at serve
STORE_GENERATION: Final = 15  # of the store that judged the client's chain
PEER_GENERATION: Final = 16  # the same once the client is verified, else 0
PEER_NOT_AFTER: Final = 17
LEAF_LEN: Final = 18
CORE_WORDS: Final = 20

# -- the core's bytes -----------------------------------------------------------------------
# One direction's traffic secret, then its key and IV; the two directions are adjacent, so that
# clearing every key of a connection is one block.
KEYS: Final = CORE_WORDS * 8
READ_SECRET: Final = KEYS
READ_KEY: Final = READ_SECRET + MAX_HASH
READ_IV: Final = READ_KEY + 32
WRITE_SECRET: Final = READ_IV + 12
WRITE_KEY: Final = WRITE_SECRET + MAX_HASH
WRITE_IV: Final = WRITE_KEY + 32
KEYS_END: Final = WRITE_IV + 12
NAME: Final = KEYS_END  # at most 255 bytes, lower-cased (RFC 6066 §3)
ALPN: Final = NAME + 256  # at most 255 bytes (RFC 7301 §3.1)
CORE_LEN: Final = ALPN + 256

# -- the area behind the core ---------------------------------------------------------------
# Handshake scratch: this connection's random draw, and the secrets that live from the server's
# flight to the client's Finished.
MAX_TICKETS: Final = 8
TICKET_ENTROPY: Final = 36  # a salt of 32 bytes and an age_add of 4
SCRATCH: Final = CORE_LEN
ENTROPY: Final = SCRATCH
ENTROPY_RANDOM: Final = ENTROPY
ENTROPY_SHARE: Final = ENTROPY + 32
ENTROPY_TICKETS: Final = ENTROPY + 64
ENTROPY_END: Final = ENTROPY_TICKETS + MAX_TICKETS * TICKET_ENTROPY
FINISHED_KEY: Final = ENTROPY_END  # the client's
CLIENT_SECRET: Final = FINISHED_KEY + MAX_HASH  # client_application_traffic_secret_0
MASTER_SECRET: Final = CLIENT_SECRET + MAX_HASH  # kept only while tickets may be sent
SESSION_ID: Final = MASTER_SECRET + MAX_HASH  # a length, then the first ClientHello's
FINGERPRINT: Final = SESSION_ID + 40  # of the leaf the ClientHello was answered with
LEAF_NOT_AFTER: Final = FINGERPRINT + 32  # when that leaf ends
SCRATCH_END: Final = LEAF_NOT_AFTER + 8

IN: Final = (SCRATCH_END + 7) & ~7  # one record, as it arrives
IN_CAP: Final = HEADER + MAX_CIPHERTEXT
HANDSHAKE: Final = (IN + IN_CAP + 7) & ~7  # a handshake message in pieces
HANDSHAKE_CAP: Final = 4 + MAX_BODY
# The largest flight: ServerHello, a change_cipher_spec, then EncryptedExtensions, a
# CertificateRequest with 8,192 bytes of names, a chain of 16,384, CertificateVerify, Finished.
OUT: Final = (HANDSHAKE + HANDSHAKE_CAP + 7) & ~7
OUT_CAP: Final = 32_768
# Two records of plaintext: one that waits to be received and one being opened.
RECEIVED: Final = OUT + OUT_CAP
RECEIVED_CAP: Final = 2 * (MAX_CIPHERTEXT - TAG)
LEAF: Final = RECEIVED + RECEIVED_CAP  # a client's certificate, until its room or for life
LEAF_CAP: Final = MAX_BODY
# A whole number of pages, so that every area's buffers stand alike in their pages, and not where
# those of programs do, at a page's start: on some processors a copy to an address a few bytes
# further into its page than its source costs fourteen times as much.
AREA_LEN: Final = (LEAF + LEAF_CAP + 4095) & ~4095

# Room that stays free in the out buffer for what must always be sayable: an alert, a
# close_notify, the answer to a KeyUpdate. Input is not read while less is free.
OUT_RESERVE: Final = 256
# A verified client's leaf that fits here lets its area go back.
ROOM_LEN: Final = 2_048

# -- states ---------------------------------------------------------------------------------
FREE: Final = 0
WAIT_CLIENT_HELLO: Final = 1
WAIT_SECOND_CLIENT_HELLO: Final = 2
WAIT_CERTIFICATE: Final = 3
WAIT_CERTIFICATE_VERIFY: Final = 4
WAIT_FINISHED: Final = 5
ESTABLISHED: Final = 6
FAILED: Final = 7

# -- flags ----------------------------------------------------------------------------------
F_RETRIED: Final = 1  # a HelloRetryRequest was sent
F_ANSWERED: Final = 2  # the ClientHello is answered: suite, group and names may be read
F_CCS_SENT: Final = 4
F_EARLY_DATA: Final = 8  # records that do not open are skipped
F_PEER_CLOSED: Final = 16  # the peer's close_notify was read
F_CLOSE_SENT: Final = 32  # ours is queued
F_RESUMED: Final = 64
F_TICKETS: Final = 128  # the client can use tickets (it listed psk_dhe_ke)
F_CLIENT_CERTIFICATE: Final = 256  # a client presented one
F_LEAF_KEPT: Final = 512  # the leaf is in the slot's room
