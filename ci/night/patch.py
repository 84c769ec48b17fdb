"""The new inputs of a campaign as one patch against the committed corpus.

    python -m ci.night.patch NEW PATCH NIGHT

NEW has a folder a harness. Each input that is not committed and ends well is in the patch, with its
line of outcomes and its line of provenance; one that an oracle, an exception or a hang is wrong
with is a finding and not a proposal. `git apply PATCH` in the checkout makes them committed ones;
nothing else is touched. What was left out, and how many there are, is said as JSON.

A process of its own, because an input may take down the process that runs it.
"""

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ci.fuzzing.merge import content, files
from ci.inputs.execution import attempt, load
from ci.output import shown
from ci.wording import many
from harnesses import HARNESSES, outcomes, provenance
from harnesses.outcomes import Outcome


def propose(new: Path, night: str) -> tuple[dict[str, list[Path]], dict[str, str], list[str]]:
    """For each harness the inputs to commit, the outcome of each by HARNESS/NAME, and notes."""
    chosen: dict[str, list[Path]] = {}
    ends: dict[str, str] = {}
    notes: list[str] = []
    for harness in HARNESSES:
        found = files(new / harness)
        if not found:
            continue
        run = load(harness)
        have = {content(file) for file in outcomes.inputs(harness)}
        for file in found:
            outcome, wrong, _ = attempt(run, file.read_bytes())
            if outcome is None or wrong:
                notes.append(f"{harness}/{file.name} is not proposed: {wrong}")
            elif content(file) not in have:
                chosen.setdefault(harness, []).append(file)
                ends[f"{harness}/{file.name}"] = outcome
    return chosen, ends, notes


def difference(chosen: dict[str, list[Path]], ends: dict[str, str], night: str) -> bytes:
    """The patch: `git diff` between the files as they are and as they would be."""
    with tempfile.TemporaryDirectory() as place:
        before, after = Path(place) / "a" / "corpus", Path(place) / "b" / "corpus"
        before.mkdir(parents=True)
        after.mkdir(parents=True)
        sources = provenance.read()
        for harness, inputs in chosen.items():
            table = dict(outcomes.read(harness))
            _write(before / f"{harness}.outcomes", outcomes.render(table))
            for file in inputs:
                (after / harness).mkdir(exist_ok=True)
                shutil.copyfile(file, after / harness / file.name)
                table[file.name] = Outcome(ends[f"{harness}/{file.name}"])
                sources[f"{harness}/{file.name}"] = f"found by fuzzing, night {night}"
            _write(after / f"{harness}.outcomes", outcomes.render(table))
        _write(before / "provenance.tsv", _lines(provenance.read()))
        _write(after / "provenance.tsv", _lines(sources))
        argv = ["git", "diff", "--no-index", "--binary", "--no-prefix", "--no-color"]
        argv += ["--no-ext-diff", "--no-renames", "a", "b"]
        done = subprocess.run(argv, cwd=place, capture_output=True, check=False)
        if done.returncode not in (0, 1):
            raise OSError(done.stderr.decode(errors="replace").strip())
        return done.stdout


def _lines(table: dict[str, str]) -> str:
    return "".join(f"{file}\t{table[file]}\n" for file in sorted(table))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def main(new: Path, target: Path, night: str) -> None:
    """Write the patch, aside first; an empty one when nothing is new."""
    chosen, ends, notes = propose(new, night)
    text = difference(chosen, ends, night) if chosen else b""
    aside = target.with_name(f".{target.name}.new")
    aside.write_bytes(text)
    aside.replace(target)
    counts = {harness: len(inputs) for harness, inputs in chosen.items()}
    if counts:
        told = ", ".join(f"{harness} {count}" for harness, count in counts.items())
        apply = f"git apply {shlex.quote(shown(target))}"
        notes.append(f"{many(sum(counts.values()), 'new input')} ({told}): {apply}")
    json.dump({"inputs": counts, "notes": notes}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
