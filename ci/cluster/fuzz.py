"""The fuzzing phase of a campaign on a cluster: the lanes are the workers' threads.

The turns are those of `ci.fuzzing.allocation` and the shards lie where local ones would, so that
everything after the phase is the code that there is. A shard is one turn, which is minutes at most,
because a lost worker takes with it what its turn had found; the next turn of a harness begins with
what all the shards before it brought back.
"""

import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from ci.cluster import archive, worker
from ci.cluster.client import Answer, Cluster, Lost, Sent
from ci.cluster.versions import FUZZING
from ci.fuzzing.allocation import SHORT, Share
from ci.fuzzing.shard import Shard
from ci.fuzzing.supervisor import MakeShard, Phase, Report
from ci.process import TICK, Stop

# What others found goes along with a turn up to this size, the smallest inputs first.
MORE_BYTES = 1 << 20
# After a signal the shards have so long to end and to come home.
SECONDS_TO_COME_HOME = 30.0
# The second signal: nothing is waited for.
AT_ONCE = 2


@dataclass
class Lane:
    """A worker's thread, and the shard that it runs."""

    home: str
    shard: Shard | None = None
    out: Sent | None = None


@dataclass
class Campaign:
    """The phase at work on a cluster."""

    cluster: Cluster
    phase: Phase
    make: MakeShard
    code: str
    lanes: list[Lane] = field(default_factory=list)
    seeds: dict[str, list[str]] = field(default_factory=dict)
    found: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def poll(self, lane: Lane, stop: Stop) -> None:
        """Take what has come back, and send out what comes next."""
        if lane.out is not None:
            self._live(lane, lane.out)
            self._take(lane, lane.out, stop)
        now = time.monotonic()
        if lane.out is None and not stop and (share := self.phase.next(now)) is not None:
            self._begin(lane, share, now)

    def _begin(self, lane: Lane, share: Share, now: float) -> None:
        shard = self.phase.begin(share, self.make, now)
        # A first turn that is late, because a worker was lost, is a turn all the same.
        shard.seconds = max(shard.seconds, min(SHORT, self.phase.usual))
        shard.corpus.mkdir(parents=True)
        shard.artifacts.mkdir()
        shard.started = now
        lane.shard = shard
        self._send(lane, shard)

    def _end(self, lane: Lane, fuzzed: float) -> None:
        """The turn is over. It is so long as it fuzzed, and not as it waited: rates are of that."""
        assert lane.shard is not None
        lane.shard.ended = lane.shard.started + fuzzed
        self.phase.newest(lane.shard).end(lane.shard.ended)
        lane.shard = lane.out = None

    def _send(self, lane: Lane, shard: Shard) -> None:
        task = shard.task
        if task.harness not in self.seeds:
            folders = [entry for folder in task.seeds for entry in archive.entries(folder, "seeds")]
            self.seeds[task.harness] = (
                [self.cluster.archive(archive.pack(folders))] if folders else []
            )
        seeds = self.seeds[task.harness]
        more = self._more(task.harness)
        lane.home = self.cluster.home(lane.home, [other.home for other in self.lanes])
        name, seconds = task.name, shard.seconds
        local = task.command[:1] == [sys.executable]
        work = {
            "kind": "fuzz",
            "name": name,
            "harness": task.harness,
            "seconds": seconds,
            "seed": task.seed,
            "value_profile": task.value_profile,
            "command": task.command[1:] if local else task.command,
            "seeds": bool(more),
        }
        with TemporaryDirectory() as scratch:
            files = [("seeds/" + file, _lay(Path(scratch) / file, data)) for file, data in more]
            if task.dictionary is not None:
                files.append(("dictionary", task.dictionary))
            given = archive.pack(files)
        lane.out = self.cluster.send(name, work, [self.code, *seeds], given, seconds, lane.home)

    def _more(self, harness: str) -> list[tuple[str, bytes]]:
        """Inputs that earlier shards brought back, the smallest first, as many as go along."""
        kept, size = [], 0
        for name, data in sorted(self.found.get(harness, {}).items(), key=_weight):
            size += len(data)
            if size > MORE_BYTES:
                break
            kept.append((name, data))
        return kept

    def _live(self, lane: Lane, out: Sent) -> None:
        told = self.cluster.told.get(out.name)
        if told is not None and lane.shard is not None:
            lane.shard.status.executions = told.get("executions", 0)
            lane.shard.status.edges = told.get("edges", 0)
            lane.shard.seeds_edges = told.get("seeds_edges", 0)

    def _take(self, lane: Lane, out: Sent, stop: Stop) -> None:
        assert lane.shard is not None
        try:
            answer = self.cluster.take(out)
        except Lost as error:
            self._end(lane, lane.shard.seconds)
            if not stop:
                self.phase.troubles.append(str(error))
            return
        if answer is not None:
            self._keep(lane.shard, answer)
            self._end(lane, answer.state["seconds"])

    def _keep(self, shard: Shard, answer: Answer) -> None:
        """Put what came back where a local shard would have left it."""
        state = answer.state
        shard.status.executions = state["executions"]
        shard.most_edges = max(shard.edges, state["edges"])
        shard.seeds_edges = state["seeds_edges"]
        shard.cpu = state["cpu"]
        shard.starts = state["starts"]
        shard.ends = state["ends"]
        shard.gave_up = state["gave_up"]
        arrived = shard.task.folder / "arrived"
        worker.unpack(answer.files, arrived)
        known = self.found.setdefault(shard.task.harness, {})
        for file in _files(arrived / "out" / "corpus"):
            known.setdefault(file.name, file.read_bytes())
            file.replace(shard.corpus / file.name)
        for file in _files(arrived / "out" / "artifacts"):
            file.replace(shard.artifacts / file.name)
        for file in _files(arrived / "out"):
            file.replace(shard.task.folder / file.name)
        # An input before the report that names it: a report that is there is whole.
        reports = _files(arrived / "findings")
        for file in sorted(reports, key=lambda file: file.suffix == ".json"):
            shard.task.findings.mkdir(parents=True, exist_ok=True)
            if not (shard.task.findings / file.with_suffix(".json").name).exists():
                file.replace(shard.task.findings / file.name)
        shutil.rmtree(arrived)


def _weight(item: tuple[str, bytes]) -> tuple[int, str]:
    return len(item[1]), item[0]


def _lay(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _files(folder: Path) -> list[Path]:
    return sorted(f for f in folder.iterdir() if f.is_file()) if folder.is_dir() else []


def lanes(address: str) -> int:
    """How many threads the workers have; Untrusted or UsageError when the cluster is no use."""
    with Cluster(address, FUZZING) as cluster:
        return len(cluster.lanes)


def supervise(
    address: str,
    phase: Phase,
    make: MakeShard,
    stop: Stop,
    report: Report,
) -> None:
    """Run every lane of the phase on the cluster, as `ci.fuzzing.supervisor` does here."""
    with Cluster(address, FUZZING) as cluster:
        code = cluster.archive(archive.pack(archive.code()))
        homes = cluster.lanes or [""]
        lanes = [Lane(homes[number % len(homes)]) for number in range(phase.jobs)]
        campaign = Campaign(cluster, phase, make, code, lanes)
        phase.began = time.monotonic()
        try:
            _loop(campaign, stop, report)
        finally:
            phase.took = time.monotonic() - phase.began
            for shard in phase.shards:
                shard.ended = shard.started if shard.ended is None else shard.ended
            phase.notes += [
                *cluster.notes,
                f"on {len(set(homes))} workers with {len(homes)} threads at {address}: "
                f"{cluster.bytes_out:,} bytes sent, {cluster.bytes_back:,} came back",
            ]


def _loop(campaign: Campaign, stop: Stop, report: Report) -> None:
    phase, cluster = campaign.phase, campaign.cluster
    asked: float | None = None
    while True:
        if stop and asked is None:
            asked = time.monotonic()
            cluster.stop()
        for lane in campaign.lanes:
            campaign.poll(lane, stop)
        out = any(lane.out is not None for lane in campaign.lanes)
        now = time.monotonic()
        if not out:
            return
        if stop.count >= AT_ONCE or (asked is not None and now > asked + SECONDS_TO_COME_HOME):
            return
        if cluster.broken:
            return
        if cluster.deserted:
            phase.troubles.append(f"the scheduler at {cluster.address} has no worker any more")
            return
        report(phase, now)
        time.sleep(TICK)
