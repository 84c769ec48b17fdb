"""The one source of randomness: a ChaCha20 generator that erases its key as it goes.

Each draw runs ChaCha20 (RFC 8439 §2.4, zero nonce) under the present key. It is had as the
encryption of zeros by ChaCha20-Poly1305, whose stream begins with block 1 (§2.8) and whose
tag is thrown away: that costs less than a bare ChaCha20 context. The first 32 bytes of the
keystream overwrite the key; what follows is the draw ("fast key erasure", D. J. Bernstein, 2017). A
draw of more than 1,024 bytes is several. So a state that leaks says nothing of the draws before it,
no key is used for two draws, and the same seed and the same draws give the same bytes: a recorded
conversation is repeated byte for byte.

The state is 32 bytes in a bytearray that is overwritten in place; no key is ever a `bytes` object,
which could not be wiped. A second seed is mixed in, as the plaintext of a draw whose ciphertext is
the next key: who knows the old state or the new bytes, but not both, knows nothing, and the same
bytes given twice repeat no draw. A process that forks takes no generator with it: `base`.

What this cannot see: OpenSSL keeps its own copy of the key inside the cipher context for the length
of a draw, and clears it when the context is freed.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

SEED_SIZE = 32

_NONCE = bytes(12)
_TAG = 16
_PIECE = 1024
_ZEROS = memoryview(bytes(SEED_SIZE + _PIECE + _TAG))


class Drbg:
    """A deterministic generator from 32 bytes of entropy.

    Raises ValueError for entropy of another length, and for a draw after `wipe`; TypeError for what
    is not contiguous bytes.
    """

    __slots__ = ("_key", "_live", "_stream")

    def __init__(self, entropy: bytes | bytearray | memoryview) -> None:
        self._key = bytearray(_seed(entropy))
        self._live = True
        self._stream = memoryview(bytearray(len(_ZEROS)))

    def mix(self, entropy: bytes | bytearray | memoryview) -> None:
        """Add 32 bytes of entropy to what the state already has. ValueError for another number."""
        stream = self._stream[: SEED_SIZE + _TAG]
        ChaCha20Poly1305(self._key).encrypt_into(_NONCE, _seed(entropy), None, stream)
        self._key[:] = stream[:SEED_SIZE]
        self.clear_stream()

    def fill(self, view: bytearray | memoryview) -> None:
        """Overwrite the whole of `view` with random bytes. ValueError after `wipe`."""
        if not self._live:
            raise ValueError("the generator was wiped")
        size = len(view)
        if size > _PIECE:
            with memoryview(view) as whole:
                for at in range(0, size, _PIECE):
                    self.fill(whole[at : at + _PIECE])
            return
        stream = self._stream[: SEED_SIZE + size + _TAG]
        end = SEED_SIZE + size
        ChaCha20Poly1305(self._key).encrypt_into(_NONCE, _ZEROS[:end], None, stream)
        self._key[:] = stream[:SEED_SIZE]
        view[:] = stream[SEED_SIZE:end]
        stream[:] = _ZEROS[: end + _TAG]

    def draw(self, size: int) -> bytes:
        """`size` random bytes, which cannot be wiped: secrets are drawn with `fill`.

        ValueError after `wipe`.
        """
        out = bytearray(size)
        self.fill(out)
        return bytes(out)

    def wipe(self) -> None:
        """Overwrite the state. Every later draw is a ValueError."""
        self._live = False
        self._key[:] = _ZEROS[:SEED_SIZE]
        self.clear_stream()

    def clear_stream(self) -> None:
        """Overwrite what a draw that broke has left of its keystream."""
        self._stream[:] = _ZEROS

    def residue(self) -> int:
        """How many bytes of a keystream are left; 0 between draws."""
        return len(_ZEROS) - bytes(self._stream).count(0)


def _seed(entropy: bytes | bytearray | memoryview) -> memoryview:
    """Entropy as its bytes, whatever the items of the buffer are."""
    seed = memoryview(entropy).cast("B")
    if len(seed) != SEED_SIZE:
        raise ValueError(f"the generator is seeded with exactly {SEED_SIZE} bytes")
    return seed
