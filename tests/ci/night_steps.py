"""Tiny stand-ins for the steps of a night: small programs that do what a step may do."""

import json
import sys

from ci.night import judge
from ci.night.plan import Step

PYTHON = [sys.executable, "-c"]


def counted(context, line, folder, code):
    """A judge that finds as many things as the step's exit code is, up to 2."""
    if code > 2:
        raise judge.Doubt(f"it ended with {code}")
    for number in range(code):
        line.findings += 1
        context.night.find("stand-in", f"{line.name} {number}")


def step(name, script="pass", judged=counted, **changes):
    """A step that runs a script of Python in no time; `FOLDER` in it is its folder."""
    script = script.replace("FOLDER", "sys.argv[1]")
    return Step(
        name,
        f"a stand-in called {name}",
        lambda context, folder, seconds: [*PYTHON, f"import sys\n{script}", str(folder)],
        judged,
        **{"grace": 20.0, **changes},
    )


def buckets(*rows):
    """A stand-in for triage, that writes these buckets."""
    found = [
        {
            "id": f"b{number}",
            "harness": "hello",
            "kind": "oracle",
            "oracle": "residue",
            "frames": ["pool.py:give"],
            "detail": "3 bytes left",
            "reproduce": "residue replay hello b",
            "state": state,
        }
        for number, state in enumerate(rows)
    ]
    red = int(any(state in ("new", "expired") for state in rows))
    script = (
        f"open(sys.argv[1] + '/buckets.json', 'w').write({json.dumps(found)!r}); sys.exit({red})"
    )
    return step("triage", script, judge.triage, always=True)


def no_report(folder):
    """A report that does nothing, well."""
    return [*PYTHON, "pass"]
