"""What each side's bytes are, told by the liar's secrets once a conversation is over.

Records are opened by trial: with each key a side ever had, at its next sequence number, and for
application keys with the next generation too. A record that none of them opens is a lie, or comes
after one, and is noted as sealed under no key of its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from cryptography.exceptions import InvalidTag

from peers.liar.client import Client
from peers.liar.codes import RECORD_NAMES
from peers.liar.record import Protection
from peers.liar.schedule import SUITES, Suite, expand_label
from peers.recorder.format import Block
from peers.recorder.messages import describe, describe_alert, text

HEADER = 5
_ALERT, _HANDSHAKE, _DATA = 21, 22, 23


class _Key:
    """One generation of one direction's key, and the sequence number that is due."""

    def __init__(self, suite: Suite, secret: bytes, name: str, generation: int = 1) -> None:
        self.suite, self.secret = suite, secret
        self.name, self.generation = name, generation
        self.aead = suite.aead(expand_label(suite.hash, secret, "key", b"", suite.key_size))
        self.iv = int.from_bytes(expand_label(suite.hash, secret, "iv", b"", 12), "big")
        self.sequence = 0

    def open(self, header: bytes, body: bytes) -> bytes | None:
        nonce = (self.iv ^ self.sequence).to_bytes(12, "big")
        try:
            inner = self.aead.decrypt(nonce, body, header)
        except InvalidTag:
            return None
        self.sequence += 1
        return inner

    def next(self) -> _Key:
        suite = self.suite
        secret = expand_label(suite.hash, self.secret, "traffic upd", b"", suite.hash_size)
        return _Key(suite, secret, self.name, self.generation + 1)

    def __str__(self) -> str:
        return f"{self.name} key" + (f" {self.generation}" if self.generation > 1 else "")


class Side:
    """One direction of one connection; `blocks` is called with its bytes in their order."""

    def __init__(self, client: Client, side: str) -> None:
        self._keys: list[_Key] = []
        self._pending = bytearray()
        self._message = bytearray()
        early: Protection | None = client.early
        if side == "client" and early is not None:
            self._keys.append(_Key(early.suite, early.secret, "early"))
        if client.schedule is not None:
            suite = SUITES[client.schedule.suite.code]
            letter = side[0]
            for label, name in (("hs", "handshake"), ("ap", "application")):
                secret = client.schedule.secrets.get(f"{letter} {label} traffic")
                if secret is not None:
                    self._keys.append(_Key(suite, secret, name))

    def blocks(self, data: bytes) -> tuple[Block, ...]:
        """A block a record; the last may be the beginning of one, the first the end of one."""
        found: list[tuple[bytes, list[str]]] = []
        at = 0
        while at < len(data):
            before = len(self._pending)
            self._pending += data[at : at + max(0, HEADER - before)]
            begun = len(self._pending)
            need = HEADER
            if begun >= HEADER:
                need += int.from_bytes(self._pending[3:HEADER], "big")
            start = at + begun - before
            self._pending += data[start : start + need - begun]
            part = data[at : at + len(self._pending) - before]
            at += len(part)
            if begun < HEADER or len(self._pending) < need:
                notes = [f"part of a record, {len(self._pending)} bytes of it"]
            else:
                record = bytes(self._pending)
                self._pending.clear()
                notes = self._record(record[:HEADER], record[HEADER:])
                if before:
                    notes.insert(0, "the rest of a record:")
            found.append((part, notes))
        return tuple(_together(found))

    def _record(self, header: bytes, body: bytes) -> list[str]:
        kind, version = header[0], int.from_bytes(header[1:3], "big")
        name = RECORD_NAMES.get(kind, f"type {kind}")
        odd = "" if version == 0x0303 else f" {version:#06x}"
        if kind != _DATA:
            return [f"{name}{odd}, {len(body)} bytes", *_inside(self._content(kind, body))]
        for key in self._keys:
            inner = key.open(header, body)
            if inner is None and key.name == "application":
                later = key.next()
                inner = later.open(header, body)
                if inner is not None:
                    self._keys[self._keys.index(key)] = key = later
            if inner is not None:
                return self._opened(key, odd, inner)
        return [f"{name}{odd}, {len(body)} bytes, opens under no key of its time"]

    def _opened(self, key: _Key, odd: str, inner: bytes) -> list[str]:
        stripped = inner.rstrip(b"\0")
        padding = len(inner) - len(stripped)
        if not stripped:
            return [f"sealed under the {key}{odd}: {len(inner)} zeros and no type"]
        kind, content = stripped[-1], stripped[:-1]
        name = RECORD_NAMES.get(kind, f"type {kind}")
        padded = f" and {padding} of padding" if padding else ""
        line = f"sealed under the {key}{odd}: {name}, {len(content)} bytes{padded}"
        return [line, *_inside(self._content(kind, content))]

    def _content(self, kind: int, content: bytes) -> list[str]:
        if kind == _ALERT:
            return [describe_alert(content)]
        if kind == _DATA:
            return [text(content)] if content else []
        if kind != _HANDSHAKE:
            return []
        lines: list[str] = []
        self._message += content
        while len(self._message) >= 4:
            size = int.from_bytes(self._message[1:4], "big")
            if len(self._message) < 4 + size:
                break
            lines += describe(self._message[0], bytes(self._message[4 : 4 + size]))
            del self._message[: 4 + size]
        if self._message:
            lines.append(f"part of a message, {len(self._message)} bytes of it")
        return lines


def _inside(lines: list[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _together(records: Iterable[tuple[bytes, list[str]]]) -> Iterator[Block]:
    """A block a record, and one for a run of records that are the same."""
    for (data, notes), same in groupby(records):
        count = sum(1 for _ in same)
        if count > 1:
            notes = [f"{count} times:", *notes]
        yield Block(data * count, tuple(notes))
