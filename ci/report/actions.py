"""What a person does next: commands to type, made from what was found."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from ci.output import shown
from ci.report import findings
from ci.report.shape import Action, Figures
from ci.wording import many

FINDINGS = 5
SURVIVORS = 3
HARNESSES = 3


def actions(figures: Figures, folder: Path) -> list[Action]:
    """What to do and the command, the most urgent first; `folder` is the run's."""
    todo: list[tuple[str, str]] = []
    red = [f for f in figures["findings"] if f["red"]]
    todo += [
        (f"Run the input again: {findings.title(found)}", found["reproduce"])
        for found in red[:FINDINGS]
        if found["reproduce"]
    ]
    if any(found["id"] for found in red):
        # A night lies in ROOT/nights/NAME, and its buckets beside all nights.
        store = folder.parent.parent / "buckets"
        own = f" {quote(shown(store))}" if store.is_dir() else ""
        todo.append(("Look at the buckets", f"residue triage{own}"))
    if figures["trust"]["untrusted"]:
        todo.append(("See what is missing on this machine", "residue doctor"))
        if figures["kind"] != "nightly":
            todo.append(("Run it again with more time", "residue campaign --seconds 300"))
    left = figures["survivors"]["shown"] if figures["survivors"] else []
    for file, function in list(dict.fromkeys((m["file"], m["function"]) for m in left))[:SURVIVORS]:
        todo.append(
            (
                f"Judge the survivors of {function} again",
                f"residue mutate {quote(file)} --function {quote(function)}",
            )
        )
    todo += _new_inputs(figures, folder)
    if figures["verdict"]["colour"] in ("unfinished", "interrupted"):
        again = "residue nightly" if figures["kind"] == "nightly" else "residue campaign"
        todo.append(("Run it again", again))
    return [{"do": do, "command": command} for do, command in todo]


def _new_inputs(figures: Figures, folder: Path) -> list[tuple[str, str]]:
    """A night's are one patch; a campaign's are promoted by hand."""
    patch = folder / "new-inputs.patch"
    if patch.is_file() and patch.stat().st_size:
        return [("Take the new inputs, and read them", f"git apply {quote(shown(patch))}")]
    fresh = [(count, row) for row in figures["harnesses"] or [] if (count := row["new"])]
    todo = []
    for count, row in sorted(fresh, key=lambda entry: -entry[0])[:HARNESSES]:
        where = quote(shown(Path(row["new_folder"] or folder / "new" / row["name"])))
        todo.append(
            (
                f"Commit one of {many(count, 'new input')} of {row['name']}",
                f"residue promote {where}/FILE --harness {quote(row['name'])}",
            )
        )
    return todo
