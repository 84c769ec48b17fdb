"""The files of a server: everything it reads lies in one directory.

`chain.pem` and `key.pem` in it are its identity, or those in each subdirectory that is named; a
file of ticket keys and one of the roots that vouch for clients may be named too. They are read at
the start, where a fault ends the program with one line, and again at each reload, where a fault is
logged and what was there before goes on serving. Two files are replaced by a renewal, so a reload
comes by a signal, when the deployment says that both are in place, and never by watching.
"""

import binascii
import os
import re
import stat
import warnings
from collections.abc import Callable

from cryptography import x509

from engine import Engine, Refusal, Refused
from engine.identities import Identities
from servers.log import Log, escape

CHAIN = "chain.pem"
KEY = "key.pem"
TICKETS, CLIENT_CA = "tickets", "client-ca"
"""What a reload calls the two files that are no identity's."""

MAX_FILE = 1 << 20
"""No file of ours is near it; one that grows without end must not fill the memory."""

_KEY = re.compile(rb"[0-9A-Fa-f]{64}")


class Unusable(Exception):
    """What an operator named cannot be used. The message is one line that says why; the refusal is
    what a reload that met it logs."""

    def __init__(self, message: str, refusal: Refusal = Refusal.SERVER_CHAIN) -> None:
        super().__init__(message)
        self.refusal = refusal


def read_file(path: str, refusal: Refusal) -> bytes:
    """A regular file's bytes. Raises Unusable, also for what is no file and might never end.

    `refusal` is what the engine says of an empty one.
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for whoever writes to it.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Unusable(f"cannot read {path}: not a file", refusal)
            content = file.read(MAX_FILE + 1)
    except OSError as error:
        raise Unusable(f"cannot read {path}: {error.strerror}", refusal) from None
    if len(content) > MAX_FILE:
        raise Unusable(f"cannot read {path}: over {MAX_FILE} bytes", refusal)
    return content


def leaf_names(chain_pem: bytes) -> list[str]:
    """The DNS names that the first certificate of a chain is for (RFC 5280 §4.2.1.6).

    None for a chain that does not parse: the engine refuses it in its own words. The parser raises
    a dozen kinds, any of which would end a reload half-way.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            leaf = x509.load_pem_x509_certificate(chain_pem)
            names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            return names.get_values_for_type(x509.DNSName)
    except Exception:
        return []


def servable(chain_pem: bytes, key_pem: bytes, names: list[str], now_ms: int) -> list[str]:
    """Those of the names that the engine takes. It is asked itself, so that no rule is told twice:
    each name is tried on a table of identities that serves nobody."""
    taken = []
    for name in names:
        try:
            Identities().add(chain_pem, key_pem, [name], now_ms)
        except Refused as refused:
            if refused.refusal == Refusal.SERVER_NAMES:
                continue
        taken.append(name)
    return taken


class IdentityFiles:
    """One identity's two files, and the number the engine gave it."""

    def __init__(self, directory: str, name: str | None) -> None:
        self.directory = directory if name is None else os.path.join(directory, name)
        self.label = escape(None if name is None else os.fsencode(name))
        self._number = -1

    def add(self, engine: Engine, log: Log, now_ms: int) -> None:
        """Give the engine this identity. Raises Unusable."""
        chain, key, names = self._read(log, now_ms)
        try:
            self._number = engine.add_identity(chain, key, names, now_ms)
        except Refused as refused:
            raise Unusable(f"cannot use {self.directory}: {refused}", refused.refusal) from None

    def replace(self, engine: Engine, log: Log, now_ms: int) -> None:
        """Read the files again and log how it went; refused, the old identity goes on serving."""
        refusal = None
        try:
            chain, key, names = self._read(log, now_ms)
            engine.replace_identity(self._number, chain, key, now_ms, names)
        except Unusable as unusable:
            log.warn(str(unusable))
            refusal = unusable.refusal.tag
        except Refused as refused:
            refusal = refused.refusal.tag
        log.reload(self.label, refusal)

    def _read(self, log: Log, now_ms: int) -> tuple[bytes, bytes, list[str]]:
        chain = read_file(os.path.join(self.directory, CHAIN), Refusal.SERVER_CHAIN)
        key = read_file(os.path.join(self.directory, KEY), Refusal.SERVER_KEY_FORMAT)
        names = leaf_names(chain)
        kept = servable(chain, key, names, now_ms)
        for name in names:
            if name not in kept:
                log.warn(
                    f"warning: identity {self.label} is not served for"
                    f" {escape(name.encode('utf-8', 'surrogateescape'))}"
                )
        return chain, key, kept


def ticket_keys(text: bytes) -> list[bytes]:
    """The keys of a file: one a line, 64 hex digits, the current one first; lines of nothing are
    read past. A file with any other line has no keys at all, which the engine refuses."""
    keys = []
    for line in text.split(b"\n"):
        digits = line.strip()
        if digits and not _KEY.fullmatch(digits):
            return []
        if digits:
            keys.append(binascii.unhexlify(digits))
    return keys


class NamedFile:
    """A file that an option names, and the call of the engine that takes what it holds."""

    def __init__(
        self,
        option: str,
        directory: str,
        name: str,
        label: str,
        refusal: Refusal,
        give: Callable[[Engine, bytes, int], object],
    ) -> None:
        if name in ("", ".", "..") or "/" in name:
            raise Unusable(f"{option} {name}: a file in --dir")
        self._path = os.path.join(directory, name)
        self._label = label
        self._refusal = refusal
        self._give = give

    def load(self, engine: Engine, now_ms: int) -> None:
        """Give the engine what the file holds. Raises Unusable, and no value of the file's."""
        content = read_file(self._path, self._refusal)
        try:
            self._give(engine, content, now_ms)
        except Refused as refused:
            raise Unusable(f"cannot use {self._path}: {refused}", refused.refusal) from None

    def reload(self, engine: Engine, log: Log, now_ms: int) -> None:
        """Read it again and log how it went; refused, the engine keeps what it had."""
        refusal = None
        try:
            self.load(engine, now_ms)
        except Unusable as unusable:
            log.warn(str(unusable))
            refusal = unusable.refusal.tag
        log.reload(self._label, refusal)


class ServerFiles:
    """All that a server reads."""

    def __init__(
        self,
        directory: str,
        identities: list[str],
        keys: str | None = None,
        client_ca: str | None = None,
    ) -> None:
        if not os.path.isdir(directory):
            raise Unusable(f"--dir {directory}: there is no such directory")
        for name in identities:
            if name in ("", ".", "..") or "/" in name or identities.count(name) > 1:
                raise Unusable(f"--identity {name}: a subdirectory of --dir, and each only once")
            if not os.path.isdir(os.path.join(directory, name)):
                raise Unusable(f"--identity {name}: there is no such directory in {directory}")
        named: list[str | None] = list(identities) or [None]
        self._identities = [IdentityFiles(directory, name) for name in named]
        self._files = []
        if keys is not None:
            self._files.append(
                NamedFile(
                    "--ticket-keys",
                    directory,
                    keys,
                    TICKETS,
                    Refusal.SERVER_TICKET_KEY,
                    lambda engine, text, now_ms: engine.set_ticket_keys(ticket_keys(text), now_ms),
                )
            )
        if client_ca is not None:
            self._files.append(
                NamedFile(
                    "--client-ca",
                    directory,
                    client_ca,
                    CLIENT_CA,
                    Refusal.SERVER_CLIENT_STORE,
                    lambda engine, pem, _: engine.trust_clients(pem),
                )
            )

    def load(self, engine: Engine, log: Log, now_ms: int) -> None:
        """Give a new engine all it needs. Raises Unusable at the first that cannot be used."""
        for identity in self._identities:
            identity.add(engine, log, now_ms)
        for file in self._files:
            file.load(engine, now_ms)

    def reload(self, engine: Engine, log: Log, now_ms: int) -> None:
        """Read all again. Each is replaced or refused on its own."""
        for identity in self._identities:
            identity.replace(engine, log, now_ms)
        for file in self._files:
            file.reload(engine, log, now_ms)
