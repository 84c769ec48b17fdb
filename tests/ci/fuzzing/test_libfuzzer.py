"""What is read from libFuzzer's output."""

from ci.fuzzing.libfuzzer import Status, Tail

REAL = rb"""INFO: seed corpus: files: 1 min: 3b max: 3b total: 3b rss: 44Mb
#2	INITED cov: 12 ft: 12 corp: 1/3b exec/s: 0 rss: 44Mb
#14812	REDUCE cov: 20 ft: 49 corp: 23/156b lim: 100 exec/s: 0 rss: 44Mb L: 9/17 MS: 2 EraseBytes-
#131072	pulse  cov: 22 ft: 51 corp: 24/165b lim: 100 exec/s: 65536 rss: 44Mb
==7648== INFO: libFuzzer: exiting as requested
stat::number_of_executed_units: 248077
"""


def test_counts_come_from_status_lines_and_the_last_word():
    status = Status()
    for line in REAL.splitlines()[:-1]:
        status.read(line)
    assert (status.executions, status.edges, status.features, status.corpus) == (131072, 22, 51, 24)
    assert status.seeded and status.seeded_edges == 12
    status.read(REAL.splitlines()[-1])
    assert status.executions == 248077


def test_a_process_that_is_still_in_its_seeds_is_not_seeded():
    status = Status()
    status.read(b"#1\tpulse  cov: 12 exec/s: 0 rss: 44Mb")
    assert status.executions == 1 and status.edges == 12 and not status.seeded


def test_a_line_is_read_once_it_is_whole(tmp_path):
    log = tmp_path / "log"
    tail = Tail(log)
    assert tail.lines() == []
    log.write_bytes(b"one\ntw")
    assert tail.lines() == [b"one"]
    log.write_bytes(b"one\ntwo\n")
    assert tail.lines() == [b"two"]
    assert tail.lines() == []
