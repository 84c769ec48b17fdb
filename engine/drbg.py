"""The one source of randomness: a ChaCha20 generator that erases its key as it goes.

Each draw runs ChaCha20 (RFC 8439 section 2.3, block counter 0, zero nonce) under the present key.
The first 32 bytes of the keystream overwrite the key; what follows is the draw ("fast key erasure",
D. J. Bernstein, 2017). So a state that leaks says nothing of the draws before it, no key is used
for two draws, and the same seed and the same draws give the same bytes: a recorded conversation is
repeated byte for byte.

The state is 32 bytes in a bytearray that is overwritten in place; no key is ever a `bytes` object,
which could not be wiped. The generator is seeded by the engine's caller and never again: an engine
knows which process seeded it and starts nothing in another.

What this cannot see: OpenSSL keeps its own copy of the key inside the cipher context for the length
of a draw, and clears it when the context is freed.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

SEED_SIZE = 32

_NONCE = bytes(16)
_PIECE = 1024
_ZEROS = memoryview(bytes(_PIECE))
_NEXT_KEY = _ZEROS[:SEED_SIZE]


class Drbg:
    """A deterministic generator from 32 bytes of entropy.

    Raises ValueError for entropy of another length, and for a draw after `wipe`.
    """

    __slots__ = ("_key", "_live")

    def __init__(self, entropy: bytes | bytearray | memoryview) -> None:
        if len(entropy) != SEED_SIZE:
            raise ValueError(f"the generator is seeded with exactly {SEED_SIZE} bytes")
        self._key = bytearray(entropy)
        self._live = True

    def fill(self, view: bytearray | memoryview) -> None:
        """Overwrite the whole of `view` with random bytes."""
        if not self._live:
            raise ValueError("the generator was wiped")
        stream = Cipher(ChaCha20(self._key, _NONCE), None).encryptor()
        # The context has its own copy of the key by now, so the next key may take its place.
        stream.update_into(_NEXT_KEY, self._key)
        size = len(view)
        if size <= _PIECE:
            stream.update_into(_ZEROS[:size], view)
            return
        with memoryview(view) as whole:
            for at in range(0, size, _PIECE):
                piece = whole[at : at + _PIECE]
                stream.update_into(_ZEROS[: len(piece)], piece)

    def draw(self, size: int) -> bytes:
        """`size` random bytes. They cannot be wiped: secrets are drawn with `fill`."""
        out = bytearray(size)
        self.fill(out)
        return bytes(out)

    def wipe(self) -> None:
        """Overwrite the state. Every later draw is a ValueError."""
        self._key[:] = _NEXT_KEY
        self._live = False
