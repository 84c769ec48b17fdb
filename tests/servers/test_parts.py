"""The parts of a server on their own: table, rate, addresses, log, files."""

import os
import random
import socket
from collections import deque

import pytest

from engine import Refusal
from servers.addresses import Peer, address_text, pack_peer, peer_text
from servers.connections import DRAINING, FREE, NONE, OPEN, SILENT, Connections
from servers.files import Unusable, leaf_names, read_file, servable
from servers.lines import Lines
from servers.log import Established, Log, escape
from servers.rate import Rate
from servers.sockets import listen
from tests.servers.certificates import write_identity
from tests.servers.inside import Kept

ANYONE = Peer(0, 0, 0)


def test_a_table_gives_low_slots_first_and_freed_ones_again():
    table = Connections(3)
    assert [table.add(fd, ANYONE, 0, 0) for fd in (10, 11, 12)] == [0, 1, 2]
    assert table.full()
    table.remove(1)
    assert not table.full()
    assert table.add(20, ANYONE, 0, 0) == 1
    assert [table.number[slot] for slot in range(3)] == [1, 4, 3]
    table.remove(2, reusable=False)
    assert table.full()
    assert (table.slot_of(20), table.slot_of(12), table.slot_of(11)) == (1, NONE, NONE)
    assert table.slot_of(99999) == NONE


def test_the_lists_are_what_queues_would_be():
    # The same moves on the table and on one deque a stage.
    random_ = random.Random(1)
    table = Connections(40)
    model: dict[int, deque[int]] = {stage: deque() for stage in range(SILENT, DRAINING + 1)}
    where: dict[int, int] = {}
    for step in range(5000):
        slot = random_.choice(list(where)) if where else NONE
        choice = random_.random()
        if choice < 0.35 and not table.full():
            slot = table.add(100 + random_.randrange(10_000) * 50 + len(where), ANYONE, step, step)
            assert slot not in where
            stage = SILENT
        elif choice < 0.5 and slot != NONE:
            model[where.pop(slot)].remove(slot)
            table.remove(slot)
            assert table.stage[slot] == FREE
            continue
        elif slot != NONE:
            stage = random_.randrange(SILENT, DRAINING + 1)
            model[where[slot]].remove(slot)
            table.move(slot, stage, step)
        else:
            continue
        where[slot] = stage
        model[stage].append(slot)
        for stage, slots in model.items():
            assert table.count[stage] == len(slots)
            assert table.first(stage) == (slots[0] if slots else NONE)
            due = [one for one in slots if table.deadline[one] <= step - 50][:1]
            assert table.due(stage, step - 50) == (due[0] if due else NONE)
    assert table.held() == len(where)


def test_a_table_of_a_million_is_not_resident():
    before = resident_kib()
    table = Connections(1_048_576)
    table.add(5, ANYONE, 0, 0)
    assert resident_kib() - before < 2048


def resident_kib() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_a_rate_is_never_exceeded_in_any_second():
    rate, starts, now = Rate(3), [], 0
    random_ = random.Random(2)
    while now < 20_000:
        now += random_.randrange(200)
        if rate.wait_ms(now) == 0:
            rate.start(now)
            starts.append(now)
        else:
            assert rate.wait_ms(now) == starts[-3] + 1000 - now
    assert all(later - earlier >= 1000 for earlier, later in zip(starts, starts[3:], strict=False))
    assert len(starts) > 50


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (("127.0.0.1", 1), "127.0.0.1:1"),
        (("255.255.255.254", 65535), "255.255.255.254:65535"),
        (("::1", 443, 0, 0), "[::1]:443"),
        (("fe80::1%eth0", 443, 0, 2), "[fe80::1]:443"),
        (("2001:db8::8000:0:1", 80, 0, 0), "[2001:db8::8000:0:1]:80"),
        (("::ffff:192.0.2.1", 80, 0, 0), "192.0.2.1:80"),
    ],
)
def test_a_peer_is_packed_and_written(address, text):
    peer = pack_peer(address)
    assert all(-(2**63) <= word < 2**63 for word in peer)
    assert peer_text(peer) == text


def test_a_listening_address_is_written():
    assert address_text(("127.0.0.1", 5)) == "127.0.0.1:5"
    assert address_text(("::", 5, 0, 0)) == "[::]:5"


def test_accepted_sockets_do_not_wait_to_send():
    (listener,) = listen(["127.0.0.1"], 0)
    with listener, socket.create_connection(listener.getsockname()):
        listener.setblocking(True)
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (b"localhost", "localhost"),
        (b"!~", "!~"),
        (b"a b", r"a\x20b"),
        (b"\nconn 1 closed ok", r"\x0aconn\x201\x20closed\x20ok"),
        (b"\x1b[2J\x7f\x80\xff\x00", r"\x1b[2J\x7f\x80\xff\x00"),
        (rb"\x0a", r"\x5cx0a"),
        (b"=", "="),
    ],
)
def test_what_a_peer_gave_is_escaped(value, text):
    assert escape(value) == text


def test_log_lines_have_their_keys_in_order():
    out = Kept()
    log = Log(out, Kept())
    log.listening("127.0.0.1:4433")
    its = Established(
        suite=0x1301,
        group=29,
        sni=b"echo.test",
        alpn=b"a b",
        retried=True,
        resumed=False,
        ticket="none",
        client=None,
        fingerprint=bytes(range(32)),
        waited=0,
        handshake=5,
    )
    log.established(7, "127.0.0.1:51109", its)
    log.closed(7, "127.0.0.1:51109", "ok", 11, 1009)
    log.refused(8, "[::1]:5", "full")
    log.reload("main", None)
    log.reload("main", "tls-server-chain")
    assert out.getvalue().splitlines() == [
        "listening 127.0.0.1:4433",
        "conn 7 peer=127.0.0.1:51109 established suite=TLS_AES_128_GCM_SHA256 group=X25519"
        r" sni=echo.test alpn=a\x20b hrr=yes resumed=no ticket=none"
        " client=- fp=0001020304050607 waited=0 handshake=5",
        "conn 7 peer=127.0.0.1:51109 closed ok in=11 ms=1009",
        "refused 8 peer=[::1]:5 full",
        "reload main ok",
        "reload main refused tls-server-chain",
    ]


def test_a_log_that_nobody_reads_any_more_stops_nothing():
    reader, writer = os.pipe()
    os.close(reader)
    log = Log(Lines(writer), Kept())
    log.listening("127.0.0.1:1")
    log.listening("127.0.0.1:1")
    assert not log.behind
    os.close(writer)


def test_a_file_is_regular_and_bounded(tmp_path):
    good = tmp_path / "good"
    good.write_bytes(b"x" * (1 << 20))
    assert len(read_file(str(good), Refusal.SERVER_CHAIN)) == 1 << 20
    good.write_bytes(b"x" * ((1 << 20) + 1))
    os.mkfifo(tmp_path / "pipe")
    for name in ("good", "pipe", "absent", "."):
        with pytest.raises(Unusable) as raised:
            read_file(str(tmp_path / name), Refusal.SERVER_KEY_FORMAT)
        assert raised.value.refusal is Refusal.SERVER_KEY_FORMAT


def test_names_come_from_the_leaf_and_those_of_no_use_are_left_out(tmp_path):
    names = ["localhost", "*.echo.test", "*.test", "under_score.test", "*", "a..b"]
    write_identity(tmp_path, *names)
    chain, key = (tmp_path / "chain.pem").read_bytes(), (tmp_path / "key.pem").read_bytes()
    assert leaf_names(chain) == names
    kept = servable(chain, key, names, 0)
    assert kept == ["localhost", "*.echo.test", "under_score.test"]
    assert leaf_names(b"nothing") == []


def test_open_is_a_stage_of_its_own():
    table = Connections(1)
    slot = table.add(3, ANYONE, 5, 9)
    assert table.due(SILENT, 8) == NONE and table.due(SILENT, 9) == slot
    table.move(slot, OPEN, 20)
    assert table.first(SILENT) == NONE and table.first(OPEN) == slot
