"""A server inside the test's own process and thread, on a clock that the test turns."""

import array
import contextlib
import fcntl
import re
import select
import socket
import ssl
import termios
import time
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from engine import Engine
from peers.liar import codes
from peers.liar.client import Client as Liar
from peers.liar.client import Credential as LiarCredential
from servers import sockets
from servers.echo import Echo
from servers.lines import Lines
from servers.log import Log
from servers.loop import Loop
from servers.settings import Settings
from servers.signals import Signals
from tests.servers.certificates import Credential


def anyones() -> ssl.SSLContext:
    """A client's context that asks nobody who the server is."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


TRUSTING = anyones()
"""One for all, since a session is resumed in the context that it is from."""


HELLO = bytes.fromhex("16030100")
"""How every ClientHello begins."""


KEY_UPDATE = bytes.fromhex("1800000100")
"""A whole one, that asks for none."""


class FakeClock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 1_000_000
        # The certificates of the tests are valid now.
        self._start = time.time_ns() // 1_000_000 - self.now

    def shift(self, passed: int) -> None:
        """Set the clock of the calendar forward, and no deadline with it."""
        self._start += passed

    def monotonic_ms(self) -> int:
        return self.now

    def unix_ms(self) -> int:
        return self._start + self.now


class Kept(Lines):
    """What the log wrote, where there is always room."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self.dropped = 0
        self._written: list[str] = []

    def write(self, lines: str) -> None:
        """Keep them."""
        self._written.append(lines)

    def flush(self) -> None:
        """There is nothing that waits for room."""

    def getvalue(self) -> str:
        """All of it."""
        return "".join(self._written)


class Inside:
    """The loop, its log, and turns of it."""

    def __init__(
        self,
        identity: Path,
        settings: Settings,
        engine: Engine | None = None,
        tickets: tuple[int, int] = (0, 1),
        clients: bytes = b"",
    ) -> None:
        self.clock = FakeClock()
        self.engine = engine or Engine.server(settings.connections, settings.areas)
        self.engine.seed(bytes(32))
        self.engine.add_identity(
            (identity / "chain.pem").read_bytes(),
            (identity / "key.pem").read_bytes(),
            ["localhost"],
            self.clock.unix_ms(),
        )
        self.engine.set_tickets(*tickets)
        if clients:
            self.engine.trust_clients(clients)
            self.engine.client_auth_mode(1)
        self.out, self.err = Kept(), Kept()
        self.signals = Signals()
        self.reloads = 0
        self.when_reloaded: Callable[[], object] = int
        listeners = sockets.listen(["127.0.0.1"], 0)
        self.port = listeners[0].getsockname()[1]
        self.loop = Loop(
            self.engine,
            Echo(),
            listeners,
            settings,
            Log(self.out, self.err),
            self.signals,
            self.clock,
            self._reload,
        )

    def _reload(self) -> None:
        self.reloads += 1
        self.when_reloaded()

    def turn(self, passed: int = 0, turns: int = 3) -> None:
        """Let time pass, then let the loop do all it can."""
        self.clock.now += passed
        for _ in range(turns):
            self.loop.turn(longest_ms=0)

    def until(self, holds: Callable[[], object]) -> None:
        """Turn until something holds: on a busy machine even a local byte is on its way a while."""
        end = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < end, self.out.getvalue() + self.err.getvalue()
            self.loop.turn(longest_ms=1)

    def lines(self, pattern: str = ".+") -> list[str]:
        return [line for line in self.out.getvalue().splitlines() if re.fullmatch(pattern, line)]

    def dial(self) -> socket.socket:
        """A connection that the server has accepted and that said nothing."""
        before = self.loop.table.numbers
        plain = socket.create_connection(("127.0.0.1", self.port), 10)
        plain.setblocking(False)
        self.until(lambda: self.loop.table.numbers > before)
        self.turn()
        return plain

    def give(self, plain: socket.socket, data: bytes) -> None:
        """Send bytes, and let the server work when they are there."""
        plain.sendall(data)
        unacknowledged = array.array("i", [1])
        while unacknowledged[0]:
            fcntl.ioctl(plain, termios.TIOCOUTQ, unacknowledged)
        # The kernel acknowledges a moment before it wakes the reader.
        time.sleep(0.002)
        self.turn()

    def hang_up(self, plain: socket.socket) -> None:
        """Close a connection, and let the server find out."""
        port = plain.getsockname()[1]
        plain.close()
        self.until(lambda: self.lines(rf".* peer=127.0.0.1:{port} closed .*"))

    def quiet(self) -> bool:
        """Whether nothing that a peer did is still to be read."""
        return not self.loop._poll.poll(0)

    def hello(self) -> socket.socket:
        """A connection that said a first byte of its ClientHello, and waits for the rest of us."""
        plain = self.dial()
        self.give(plain, HELLO[:1])
        return plain

    def client(self, credential: Credential | None = None) -> "Client":
        """A client that is connected and has said nothing."""
        return Client(self, None, credential)

    def connect(
        self, session: ssl.SSLSession | None = None, credential: Credential | None = None
    ) -> "Client":
        client = Client(self, session, credential)
        client.shake_hands()
        return client


class Client:
    """A TLS client that moves only when the test says so."""

    def __init__(
        self,
        inside: Inside,
        session: ssl.SSLSession | None = None,
        credential: Credential | None = None,
    ) -> None:
        self._inside = inside
        self.plain = inside.dial()
        trusting = TRUSTING
        if credential is not None:
            trusting = anyones()
            trusting.load_cert_chain(credential.chain, credential.key)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = trusting.wrap_bio(
            self._incoming, self._outgoing, server_hostname="localhost", session=session
        )

    def shake_hands(self) -> None:
        before = len(self._inside.lines(".* established .*"))
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.give(self._outgoing.read())
                self.pull()
        self.give(self._outgoing.read())
        self._inside.until(lambda: len(self._inside.lines(".* established .*")) > before)

    def flight(self) -> bytes:
        """What the client says next in its handshake, not sent."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self._outgoing.read()

    def record(self, data: bytes) -> bytes:
        """The bytes of a record, not sent."""
        self.tls.write(data)
        return self._outgoing.read()

    def give(self, data: bytes) -> None:
        self._inside.give(self.plain, data)

    def pull(self) -> None:
        """Wait for bytes of the server, and hand them to TLS."""
        waiting = select.poll()
        waiting.register(self.plain, select.POLLIN)
        self._inside.until(lambda: waiting.poll(0))
        piece = self.plain.recv(1 << 16)
        if piece:
            self._incoming.write(piece)
        else:
            self._incoming.write_eof()

    def read(self, count: int) -> bytes:
        """Exactly so many bytes."""
        got = b""
        while len(got) < count:
            try:
                got += self.tls.read(count - len(got))
            except ssl.SSLWantReadError:
                self.pull()
        return got

    def echo(self, data: bytes) -> bytes:
        self.give(self.record(data))
        return self.read(len(data))

    def ended_cleanly(self) -> bool:
        """Whether the server said close_notify, and not only ended the stream."""
        while True:
            try:
                return self.tls.read(1) == b""
            except ssl.SSLZeroReturnError:
                return True
            except ssl.SSLWantReadError:
                self.pull()
            except ssl.SSLError:
                return False


def shown(credential: Credential) -> LiarCredential:
    """A credential's files as the lying client takes them."""
    chain = x509.load_pem_x509_certificates(credential.chain.read_bytes())
    key = load_pem_private_key(credential.key.read_bytes(), None)
    assert isinstance(
        key, ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
    )
    return LiarCredential(tuple(one.public_bytes(Encoding.DER) for one in chain), key)


class Sealer:
    """An established client that seals what it likes, in the records that it likes."""

    def __init__(self, inside: Inside, credential: LiarCredential | None = None) -> None:
        self._inside = inside
        self.plain = inside.dial()
        seed = str(inside.loop.table.numbers)
        self.liar = Liar(seed, server_name="localhost", credential=credential)
        self.give(self.liar.hello())
        while self.liar.state != "flight":
            self.pull()
        self.give(self.liar.finish())

    def give(self, data: bytes) -> None:
        self._inside.give(self.plain, data)

    def pull(self) -> None:
        """Wait for bytes of the server, and read them."""
        waiting = select.poll()
        waiting.register(self.plain, select.POLLIN)
        self._inside.until(lambda: waiting.poll(0))
        self.liar.read(self.plain.recv(1 << 16))

    def half_message(self) -> bytes:
        """A record, whole, with the first half of a KeyUpdate."""
        return self.liar.protect(codes.HANDSHAKE, KEY_UPDATE[:3])

    def rest_of_message(self) -> bytes:
        """A record with the other half, after which the client's key is another."""
        record = self.liar.protect(codes.HANDSHAKE, KEY_UPDATE[3:])
        self.liar.next_key()
        return record
