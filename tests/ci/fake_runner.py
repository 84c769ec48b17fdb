"""A stand-in for `python -m harnesses.run`: takes libFuzzer's arguments, prints its lines.

    python fake_runner.py BEHAVIOUR [libFuzzer arguments]

good      fuzzes: one new input a tenth of a second, until it is asked to end
crash     the same, but every process ends with a crash after a moment
broken    ends at once, as when an import fails
traceless the same, with nothing written that tells of it
silent    ends by itself after a moment, with a code that says nothing
deaf      fuzzes and ignores every polite signal
parent    fuzzes and has a child of its own, whose process id is in the log
emptied   fuzzes, but its merge ends well and gives nothing
stopped   fuzzes, and an input takes longer than the wall clock allows
late      fuzzes, after a second with its seeds
busy      works without an end before it has read its seeds
untidy    fuzzes, and leaves a file where it stands
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

FILLER = b"INFO: Seed: 1\nWARNING: Failed to find function\n"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def end(count: int, code: int) -> None:
    say(f"stat::number_of_executed_units: {count}")
    os._exit(code)


def merge(behaviour: str, folders: list[Path]) -> None:
    output, *sources = folders
    have = {f.read_bytes() for f in output.iterdir()}
    for source in sources:
        for file in sorted(source.iterdir()):
            if file.read_bytes() not in have and behaviour != "emptied":
                have.add(file.read_bytes())
                (output / file.name).write_bytes(file.read_bytes())


def fuzz(behaviour: str, output: Path, options: dict[str, str]) -> None:
    count = 0
    if behaviour == "deaf":
        for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGUSR1, lambda *_: end(count, 0))
        signal.signal(signal.SIGINT, lambda *_: end(count, 72))
    if behaviour == "parent":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        say(f"child {child.pid}")
    if behaviour == "late":
        time.sleep(1.5)
    while behaviour == "busy":
        pass
    if behaviour == "untidy":
        Path("timeout-0123").touch()
    say("#2\tINITED cov: 200 ft: 210 corp: 1/3b exec/s: 0 rss: 44Mb")
    began = time.monotonic()
    while time.monotonic() - began < float(options["-max_total_time"]):
        time.sleep(0.1)
        count += 1000
        (output / f"input-{os.getpid()}-{count}").write_bytes(b"%d %d" % (os.getpid(), count))
        say(f"#{count}\tNEW    cov: {200 + count // 1000} ft: 220 corp: 2/6b lim: 4 exec/s: 9")
        if behaviour == "crash" and count == 3000:
            path = options["-artifact_prefix"] + "crash-0123"
            Path(path).write_bytes(b"bad")
            say('  File "/x/engine/records.py", line 4, in open_record')
            say("==1== ERROR: libFuzzer: deadly signal")
            say(f"artifact_prefix='x'; Test unit written to {path}")
            end(count, 77)
        if behaviour == "stopped" and count == 3000:
            Path(options["-artifact_prefix"] + "timeout-0123").write_bytes(b"slow")
            end(count, 70)
        if behaviour in ("silent", "traceless") and count == 3000:
            os._exit(3 if behaviour == "silent" else 77)
    end(count, 0)


def main() -> None:
    behaviour, *given = sys.argv[1:]
    options = dict(a.split("=", 1) for a in given if a.startswith("-"))
    folders = [Path(a) for a in given if not a.startswith("-")]
    sys.stdout.buffer.write(FILLER)
    if options.get("-set_cover_merge"):
        merge(behaviour, folders)
    elif behaviour == "broken":
        sys.exit("ImportError: no engine")
    else:
        fuzz(behaviour, folders[0], options)


if __name__ == "__main__":
    main()
