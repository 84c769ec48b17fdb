"""A run's end of the cluster: tasks out, answers back, and what went wrong in words.

Dask runs a task again whose worker is lost, on another, until `distributed.scheduler.
allowed-failures` workers were lost with it (three); a task that fails is tried TRIES times in all.
What is left after that is said, and the run is not to be trusted.
"""

import contextlib
import gc
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.cluster import archive, versions, worker
from ci.exits import Untrusted, UsageError

SECONDS_TO_CONNECT = 10.0
# Workers that go are often started again; so long a time without any is the end of a run.
SECONDS_WITHOUT_WORKERS = 60.0
LOOK_EVERY = 2.0
# An answer that is there is fetched in moments, unless its worker is lost meanwhile.
SECONDS_TO_FETCH = 60.0
TRIES = 3
# Seconds over what it was asked for that a shard may take to start and to pack.
SLACK = 120.0
# The progress of all shards together is this many messages a second at most.
MESSAGES_A_SECOND = 100
TELL_EVERY = 2.0

SOURCE = Path(worker.__file__).read_text(encoding="utf-8")


def sent(name: str) -> Callable[..., Any]:
    """A function of `worker.py` for a worker without this project: it brings its text along."""
    source = SOURCE

    def task(*args: Any) -> Any:
        space: dict[str, Any] = {"__name__": "residue_worker"}
        exec(compile(source, "residue_worker", "exec"), space)
        return space[name](*args)

    return task


def sent_to_all(name: str) -> Callable[..., Any]:
    """The same for `Client.run`, which is no task: its first argument is the worker's folder."""
    function = sent(name)

    def call(*args: Any, dask_worker: Any) -> Any:
        return function(dask_worker.local_directory, *args)

    return call


@dataclass(frozen=True)
class Answer:
    """What a shard came to, and where it was run."""

    worker: str
    state: dict[str, Any]
    files: bytes


@dataclass(eq=False)
class Sent:
    """A shard on its way: where it was sent first, and what it is called."""

    name: str
    home: str
    future: Any


class Lost(Exception):
    """A shard that did not come back. The message is one line that says why."""


class Cluster:
    """A connection to a scheduler, as a context: whatever happens inside, nothing is left there."""

    def __init__(self, address: str, packages: Sequence[str]) -> None:
        self.address = address
        self.packages = packages
        self.mine = worker.about(packages)
        self.token = secrets.token_hex(6)
        self.told: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        self.bytes_out = 0
        self.bytes_back = 0
        self.workers: set[str] = set()
        self.lanes: list[str] = []
        self.broken = False
        self._looked = 0.0
        self._seen = 0.0
        self._out: set[Sent] = set()
        self._archives: dict[str, Any] = {}

    def __enter__(self) -> "Cluster":
        self.client: Any = self._connect()
        try:
            self._check()
            self.client.subscribe_topic(self.token, self._hear)
        except BaseException:
            self.client.close()
            raise
        return self

    def _connect(self) -> Any:
        try:
            from distributed import Client
        except ImportError:
            raise Untrusted("distributed is not installed: pip install -e '.[cluster]'") from None
        connect: Any = Client  # half of it has no types
        # What is wrong is said in our words, once; Dask's own lines would break up the progress.
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        wrong: Exception
        try:
            return connect(self.address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except ValueError as error:
            wrong = UsageError(f"--scheduler {self.address}: {error}")
        except OSError as error:
            reason = str(error).splitlines()[0]
            wrong = Untrusted(f"no scheduler was reached at {self.address}: {reason}")
        # The client that was half made closes itself when it is collected, and takes a lock for it
        # that starting another one holds: so it is collected now.
        gc.collect()
        raise wrong

    def _check(self) -> None:
        """The workers, each a thread or more; Untrusted when there is none, or versions differ."""
        info = self.client.scheduler_info(n_workers=-1)["workers"]
        if not info:
            raise Untrusted(f"the scheduler at {self.address} has no worker")
        has = versions.of_dask(self.client.get_versions())
        differs = versions.differences(has.pop("here"), has)
        if not differs:
            there = self.client.run(sent("about"), list(self.packages))
            differs = versions.differences(self.mine, there)
        if differs:
            raise Untrusted(f"the cluster is not like this machine: {differs}")
        self.workers = set(info)
        self.lanes = [
            address for address, facts in sorted(info.items()) for _ in range(facts["nthreads"])
        ]
        self._seen = self._looked = time.monotonic()

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        self.told[event[1]["name"]] = event[1]

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(Exception):
            self.client.cancel([sent.future for sent in self._out], force=True)
        self.client.close()

    def archive(self, data: bytes) -> str:
        """Put an archive where every worker can have it; its digest.

        It is the result of a task, so Dask makes it again when the workers that had it are lost.
        """
        name = archive.digest(data)
        if name not in self._archives:
            self.bytes_out += len(data)
            self._archives[name] = self.client.submit(
                bytes, data, key=f"residue-archive-{self.token}-{name[:16]}", pure=False
            )
        return name

    def send(
        self,
        name: str,
        work: dict[str, Any],
        archives: Sequence[str],
        given: bytes,
        seconds: float,
        home: str,
    ) -> Sent:
        """Send a shard out, to `home` if that worker is still there; its name is told once."""
        job = {
            "name": name,
            "token": self.token,
            "versions": self.mine,
            "digests": list(archives),
            "given": given,
            "work": work,
            "limit": seconds + SLACK,
            "every": max(TELL_EVERY, len(self.lanes) / MESSAGES_A_SECOND),
        }
        self.bytes_out += len(given)
        future = self.client.submit(
            sent("run"),
            job,
            *(self._archives[digest] for digest in archives),
            key=f"residue-{self.token}-{name}",
            workers=[home],
            allow_other_workers=True,
            retries=TRIES - 1,
            pure=False,
        )
        shard = Sent(name, home, future)
        self._out.add(shard)
        return shard

    def take(self, shard: Sent) -> Answer | None:
        """What the shard came to, once; None as long as it runs. Lost when it never will."""
        status = shard.future.status
        if status == "pending":
            return None
        try:
            said = shard.future.result(timeout=SECONDS_TO_FETCH)
        except TimeoutError:
            return None  # its worker was lost before it was fetched, and it runs again
        except (Exception, CancelledError) as error:
            self._out.discard(shard)
            raise Lost(f"{shard.name}: {self._why(status, error)}") from None
        self._out.discard(shard)
        shard.future.release()
        ran_by = said["worker"]
        if "differs" in said:
            differs = versions.differences(self.mine, {ran_by: said["differs"]})
            raise Untrusted(f"a worker that joined is not like this machine: {differs}")
        if ran_by != shard.home and shard.home not in self.present(at_once=True):
            self.notes.append(f"{shard.name}: {shard.home} was lost; run again by {ran_by}")
        self.bytes_back += len(said["files"])
        return Answer(ran_by, said["state"], said["files"])

    def _why(self, status: str, error: BaseException) -> str:
        if status in ("cancelled", "lost"):
            self.broken = True
            return f"the scheduler at {self.address} was lost"
        if type(error).__name__ == "KilledWorker":
            return "every worker that ran it was lost"
        return str(error).splitlines()[0] if str(error) else type(error).__name__

    def present(self, at_once: bool = False) -> set[str]:
        """The addresses of the workers that are there, as of a moment ago."""
        now = time.monotonic()
        if at_once or now > self._looked + LOOK_EVERY:
            self._looked = now
            if self.client.status == "running":
                with contextlib.suppress(Exception):
                    self.workers = set(self.client.scheduler_info(n_workers=-1)["workers"])
            if self.workers:
                self._seen = now
        return self.workers

    @property
    def deserted(self) -> bool:
        """No worker has been there for so long that none will come."""
        self.present()
        return time.monotonic() > self._seen + SECONDS_WITHOUT_WORKERS

    def home(self, wanted: str, busy: Sequence[str]) -> str:
        """The worker asked for, or, when it is gone, the one that the fewest lanes have."""
        present = self.present()
        if wanted in present or not present:
            return wanted
        return min(sorted(present), key=list(busy).count)

    def stop(self) -> None:
        """Ask every shard of this run to end early and to hand over what it has."""
        with contextlib.suppress(Exception):
            self.client.run(sent_to_all("stop"), self.token, on_error="ignore")
