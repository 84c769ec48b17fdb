"""Merging: of everything the shards of a harness kept, the least that reaches as much.

The merged folder begins as a copy of the committed inputs; libFuzzer adds to it what reaches more.
Its exit code says little: with a wrong argv[0] a merge ends 0 and gives nothing. So the merged
folder is measured against all inputs together (`ci.coverage.covered`), and when it reaches less, or
when the merge did not end well, every input is kept instead. Nothing that was found is lost for
being small.
"""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from ci.fuzzing import libfuzzer
from ci.process import ROOT, Job, importing

# Merging runs each input once or twice under instrumentation, in milliseconds; this is for one that
# hangs.
LIMIT = 300.0
LIMIT_AN_INPUT = 0.1
# No harness reads so much: what is longer was never an input of one.
MOST_BYTES = 1 << 16


@dataclass
class Merge:
    """One harness's merge: from what, into what, and how it went."""

    harness: str
    committed: Path
    sources: list[Path]
    merged: Path
    new: Path
    job: Job | None = None
    kept_all: str = ""
    found: int = 0
    """Inputs of all the sources: what the shards kept, and further seeds."""

    def new_inputs(self) -> list[Path]:
        """The inputs of the merged folder that are not committed."""
        committed = {content(file) for file in files(self.committed)}
        return [file for file in files(self.merged) if content(file) not in committed]

    def hand_over(self) -> int:
        """Fill the folder that is left for a person with the new inputs; how many there are."""
        self.new.mkdir(parents=True, exist_ok=True)
        fresh = self.new_inputs()
        for file in fresh:
            shutil.copyfile(file, self.new / content(file)[:16])
        return len(fresh)

    def keep_all(self, why: str) -> None:
        """Fall back: every input of every source, once by content; of none, say nothing."""
        if not self.found:
            return
        self.kept_all = why
        self.add([file for source in self.sources for file in files(source)])

    def add(self, more: list[Path]) -> None:
        """Put these inputs into the merged folder too, each once by content."""
        have = {content(file) for file in files(self.merged)}
        for file in more:
            digest = content(file)
            if digest not in have:
                have.add(digest)
                shutil.copyfile(file, self.merged / digest)


def files(folder: Path) -> list[Path]:
    """The inputs of a folder; none when it is not there."""
    return sorted(f for f in folder.iterdir() if f.is_file()) if folder.is_dir() else []


def copy_inputs(source: Path, target: Path) -> list[str]:
    """Copy the inputs of a folder; what is none, in words, is left where it is."""
    target.mkdir(parents=True)
    left = []
    for path in sorted(source.iterdir()):
        try:
            why = _unfit(path)
            if not why:
                shutil.copyfile(path, target / path.name)
        except OSError as error:
            why = f"it cannot be read: {error.strerror}"
            (target / path.name).unlink(missing_ok=True)
        if why:
            left.append(f"the seed {source.name}/{path.name} is left out: {why}")
    return left


def _unfit(path: Path) -> str:
    if not path.is_file():
        return "it is no file"
    size = path.stat().st_size
    return f"it has {size:,} bytes" if size > MOST_BYTES else ""


def content(file: Path) -> str:
    """An input's name by content: two inputs are one when this is."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def prepare(merge: Merge, log: Path, root: Path, command: list[str], findings: Path) -> None:
    """Lay the committed inputs down and make the job that adds to them, if there is anything.

    libFuzzer's shell does not quote, so the job runs in the output folder and is given paths from
    there: a space in the name of a folder above would otherwise cut its arguments in two.
    """
    merge.merged.mkdir(parents=True)
    for file in files(merge.committed):
        shutil.copyfile(file, merge.merged / file.name)
    merge.found = sum(len(files(source)) for source in merge.sources)
    if merge.found:
        scratch = root / "scratch"
        here = [path.relative_to(root) for path in (merge.merged, *merge.sources, scratch)]
        merge.job = Job(
            [*command, *libfuzzer.merge_arguments(here[0], here[1:-1], here[-1])],
            log,
            LIMIT + LIMIT_AN_INPUT * merge.found,
            # A known finding must not end the merge. Its control file is left behind when the merge
            # is killed, so it goes where we clear up.
            {
                **importing(ROOT),
                "RESIDUE_FINDINGS": str(findings),
                "TMPDIR": str(here[-1]),
            },
            cwd=root,
        )


def judge(merge: Merge) -> None:
    """Believe the merge only if it ended by itself, well; otherwise keep everything."""
    if merge.job is None:
        return
    if merge.job.code is None:
        merge.keep_all("it was interrupted")
    elif merge.job.timed_out:
        merge.keep_all(f"it took longer than {merge.job.limit:.0f} s")
    elif merge.job.code != libfuzzer.DONE:
        merge.keep_all(f"it ended with {merge.job.code}")
