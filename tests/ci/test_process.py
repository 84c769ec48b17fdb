"""Children that cannot be left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ci.process import (
    ROOT,
    Job,
    Stop,
    cpu_seconds,
    importing,
    reap,
    run_all,
    signal_group,
    spawn,
)
from tests.tools import alive, wait_until

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
PARENT = [
    sys.executable,
    "-c",
    "import subprocess, sys, time\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print(child.pid, flush=True)\n"
    "time.sleep(600)",
]


def number_in(log):
    wait_until(lambda: log.exists() and log.read_text().endswith("\n"))
    return int(log.read_text())


def test_a_childs_child_ends_with_it(tmp_path):
    child = spawn(PARENT, tmp_path / "log")
    grandchild = number_in(tmp_path / "log")
    assert alive(grandchild)
    signal_group(child, signal.SIGINT)
    reap(child)
    wait_until(lambda: not alive(grandchild))


def test_a_child_that_ignores_a_polite_signal_is_killed(tmp_path):
    deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True)"
    child = spawn([sys.executable, "-c", deaf + "; time.sleep(600)"], tmp_path / "log")
    number_in(tmp_path / "log")
    signal_group(child, signal.SIGINT)
    assert reap(child, grace=0.2) == -signal.SIGKILL


def test_children_die_with_a_supervisor_that_is_killed(tmp_path):
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom ci.process import spawn\n"
        "child = spawn([sys.executable, '-c', 'import time; time.sleep(600)'], Path(sys.argv[1]))\n"
        "print(child.pid, flush=True)\ntime.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "log")], stdout=subprocess.PIPE
    ) as supervisor:
        child = int(supervisor.stdout.readline())
        # The child is there as soon as it has a process id; the kernel's promise is made before
        # it runs its program.
        wait_until(lambda: b"sleep" in Path(f"/proc/{child}/cmdline").read_bytes())
        supervisor.kill()
    wait_until(lambda: not alive(child))


def test_a_childs_child_dies_with_a_supervisor_that_is_killed(tmp_path):
    """The kernel's word to the group, and not to the child alone."""
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom ci.process import spawn\n"
        f"spawn({PARENT!r}, Path(sys.argv[1]))\ntime.sleep(600)"
    )
    log = tmp_path / "log"
    with subprocess.Popen([sys.executable, "-c", script, str(log)]) as supervisor:
        grandchild = number_in(log)
        assert alive(grandchild)
        supervisor.kill()
    wait_until(lambda: not alive(grandchild))


def test_a_child_that_was_forked_dies_with_its_parent(tmp_path):
    script = (
        "import os, time\nfrom ci import process\nprocess.leash()\n"
        "for _ in range(2):\n"
        "    if not os.fork():\n"
        "        process.die_with_parent()\n"
        "        os.write(1, b'%d\\n' % os.getpid())\n        time.sleep(600)\n"
        "time.sleep(600)"
    )
    argv = [sys.executable, "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as supervisor:
        children = [int(supervisor.stdout.readline()) for _ in range(2)]
        time.sleep(0.1)
        assert all(alive(child) for child in children)
        supervisor.kill()
        wait_until(lambda: not any(alive(child) for child in children))


def test_a_child_elsewhere_takes_its_packages_from_the_tree_it_is_given(tmp_path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("raise SystemExit('the wrong engine')")
    code = "import engine.layout as found; print(found.__file__)"
    child = spawn([sys.executable, "-c", code], tmp_path / "log", importing(ROOT), cwd=tmp_path)
    assert child.wait() == 0
    assert Path((tmp_path / "log").read_text().strip()) == ROOT / "engine" / "layout.py"


def test_processor_time_is_what_a_child_used_and_not_what_it_waited(tmp_path):
    child = spawn(SLEEP, tmp_path / "log")
    wait_until(lambda: cpu_seconds(child.pid) > 0)
    before = time.monotonic()
    while time.monotonic() - before < 1.0:
        pass
    assert cpu_seconds(child.pid) < 0.8
    signal_group(child, signal.SIGKILL)
    reap(child)
    assert cpu_seconds(child.pid) == 0


def test_jobs_run_some_at_a_time_and_each_says_how_it_ended(tmp_path):
    jobs = [
        Job([sys.executable, "-c", f"raise SystemExit({n})"], tmp_path / f"log{n}", 30)
        for n in range(3)
    ]
    run_all(jobs, 2, Stop(), stops_at=2)
    assert [job.code for job in jobs] == [0, 1, 2]
    assert not any(job.timed_out for job in jobs)


def test_a_job_over_its_time_is_killed_and_says_so(tmp_path):
    job = Job(SLEEP, tmp_path / "log", 0.2)
    run_all([job], 1, Stop(), stops_at=2)
    assert job.timed_out and job.code == -signal.SIGKILL


def test_signals_are_counted_and_the_old_handlers_come_back(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with Stop() as stop:
        assert not stop
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: stop.count == 2)
        job = Job(SLEEP, tmp_path / "log", 60)
        run_all([job], 1, stop, stops_at=2)
        assert job.code is None, "nothing starts after the second signal"
    assert signal.getsignal(signal.SIGTERM) == before
