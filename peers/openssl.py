"""Python's `ssl` server in memory, as a transport for the lying client."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from peers.liar import identities


def server_context(
    *, ciphers: str | None = None, curve: str | None = None, client_roots: bytes = b"",
    required: bool = False, alpn: list[str] | None = None, tickets: int = 2,
) -> ssl.SSLContext:  # fmt: skip
    """An `ssl` server's settings, with the identity that the suites trust."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = tickets
    server = identities.make(["server.example"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "identity.pem"
        file.write_bytes(server.chain_pem + server.key_pem)
        context.load_cert_chain(file)
    if curve is not None:
        context.set_ecdh_curve(curve)
    if client_roots:
        context.load_verify_locations(cadata=client_roots.decode())
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


class OpenSSL:
    """One connection; echoes application data."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._up = False
        self.ended = False
        self.error = ""

    def exchange(self, data: bytes) -> bytes:
        """Bytes of the client in, what OpenSSL says out."""
        if data:
            self._in.write(data)
        try:
            if not self._up:
                self.tls.do_handshake()
                self._up = True
            while True:
                chunk = self.tls.read(65536)
                if not chunk:
                    self.tls.unwrap()
                    break
                self.tls.write(chunk)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.error = str(error)
            self.ended = True
        return self._out.read()

    def close(self) -> None:
        """The transport ends."""
        self.ended = True
