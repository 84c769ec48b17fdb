"""Summaries, nights and results as large as a test asks for, and as hostile, for the reports."""

from __future__ import annotations

from typing import Any

from harnesses import HARNESSES, refusal_matrix
from mutants.verdicts import Verdict

HOSTILE = "<script src=x>alert('1')</script>\"&\u202e\x1b[31m"
"""Markup, both quotes, a change of direction, and a terminal's escape."""


def harness(name: str, inputs: int = 150) -> dict[str, Any]:
    """One harness of a summary."""
    weight = 1 + len(name)
    return {
        "executions": 100_000 * weight,
        "seconds": 60.0,
        "rate": 1_666.7 * weight,
        "edges": 300 + 90 * weight,
        "committed": inputs - 3,
        "found": 700,
        "new": 3,
        "new_folder": f"build/campaign/latest/new/{name}",
        "merged_folder": f"build/campaign/latest/merged/{name}",
        "kept_all": "",
        "findings": 0,
        "coverage": {"line_percent": 70.0 + weight, "branch_percent": 50.5 + weight},
        "shards": [{"name": f"{name}-0", "seed": 1, "starts": 1, "ends": [], "executions": 5}],
        "corpus": {
            "inputs": inputs,
            "committed": inputs - 3,
            "bytes": inputs * 210,
            "sizes": [
                {"up_to": bound, "inputs": count}
                for bound, count in zip(
                    (16, 64, 256, 1024, 4096, 16384, None),
                    (2, 5, inputs - 20, 8, 3, 2, 0),
                    strict=True,
                )
            ],
            "outcomes": {"waiting": inputs // 2, "tls-decode-error": 9, "established": 3},
            "largest": [{"name": "the-longest", "bytes": 16_000, "outcome": "waiting"}],
            "new": [{"name": "0a1b2c3d4e5f6071", "bytes": 31, "outcome": "tls-alert"}],
        },
    }


def cells() -> dict[str, Any]:
    """Refusal coverage in which two of three cells are reached."""
    reached = [
        {
            "state": state,
            "message": message,
            "refusal": refusal,
            "inputs": at % 7 + 1,
            "committed": at % 2,
            "witness": f"server/input-{at}",
        }
        for at, (state, message, refusal) in enumerate(refusal_matrix.cells())
        if at % 3
    ]
    return refusal_matrix.coverage([reached])


def curve(points: int = 40) -> list[dict[str, Any]]:
    """A phase of a minute and a half in which every harness has its share."""
    return [
        {
            "t": round(1.5 * (at + 1), 1),
            "harness": name,
            "executions": (at + 1) * 2_000 * (1 + place) ** 2,
            "edges": 300 + 120 * place + int(150 * (1 - 0.9**at)),
            "finds": int(at > 25 and place == 1),
        }
        for at in range(points)
        for place, name in enumerate(HARNESSES)
    ]


def summary(inputs: int = 150) -> dict[str, Any]:
    """A campaign that found nothing."""
    return {
        "kind": "campaign",
        "exit": 0,
        "python": "3.11.7",
        "interrupted": False,
        "asked_seconds": 60.0,
        "fuzzing_seconds": 60.0,
        "seconds": 104.2,
        "jobs": 2,
        "harnesses": {name: harness(name, inputs) for name in HARNESSES},
        "coverage": {
            "lines": 3470,
            "all_lines": 3722,
            "line_percent": 93.2,
            "branches": 903,
            "all_branches": 1058,
            "branch_percent": 85.4,
        },
        "files": {
            "engine/copies.py": {
                "lines": 36,
                "all_lines": 38,
                "branches": 12,
                "all_branches": 14,
                "missed_lines": "20-21",
                "missed_branches": "30>34 19>20",
            },
            "engine/gone.py": {
                "lines": 1,
                "all_lines": 3,
                "branches": 0,
                "all_branches": 0,
                "missed_lines": "2 4",
                "missed_branches": "",
            },
        },
        "refusals": cells(),
        "curve": curve(),
        "canaries": [{"harness": name, "plant": "residue", "found": True} for name in HARNESSES],
        "oracles": {"residue": 21_000, "memory": 12, "neighbour": 0},
        "untrusted": [],
        "notes": ["server-1: a process ended with a crash"],
        "findings": [],
    }


def finding(hostile: bool = False) -> dict[str, Any]:
    """A finding of a campaign."""
    name = f"x{HOSTILE}" if hostile else "1f2e3d4c5b6a7988"
    return {
        "harness": "server",
        "kind": "Broken",
        "oracle": "residue",
        "detail": HOSTILE if hostile else "residue: 3 bytes are left in state WANT_READ",
        "frames": [HOSTILE] if hostile else ["connection.py:check", "pool.py:settle"],
        "input": f"build/campaign/latest/findings/server/{name}.input",
        "replay": f"residue replay server build/campaign/latest/findings/server/{name}.input",
    }


def bucket(number: int = 0, state: str = "new") -> dict[str, Any]:
    """A bucket of `residue triage`."""
    name, harness = f"{0x9C41D0E57A36B281 + number * 0x1234567:016x}", HARNESSES[number + 1]
    return {
        "id": name,
        "harness": harness,
        "kind": ("oracle", "exception", "timeout")[number % 3],
        "oracle": ("residue", "", "")[number % 3],
        "refusal": "",
        "frames": ["receive.py:_on_record", "pool.py:settle"],
        "detail": ("residue: 48 bytes in state WANT_READ", "IndexError: index out of range", "")[
            number % 3
        ],
        "first_seen": "2026-11-28T01:12:00",
        "last_seen": "2026-11-30T02:31:00",
        "count": 3 + number,
        "size": 41,
        "input": "0.input",
        "seconds": 0.01,
        "memory_kb": 900,
        "minimised": True,
        "state": state,
        "reason": "a path that climbs in vain is slow by design" if state == "known" else "",
        "expires": "2027-01-31" if state == "known" else "",
        "reproduce": f"residue replay {harness} build/nightly/buckets/{name}.input",
        "traceback": ["Traceback (most recent call last):\n", '  File "pool.py", line 3\n'],
    }


def history(nights: int = 14) -> list[dict[str, Any]]:
    """The rows of so many nights, the last of which is this one."""
    return [
        {
            "night": f"202611{17 + at:02d}-010000",
            "started": f"2026-11-{17 + at:02d}T01:00:00",
            "seconds": 3_600,
            "exit": int(at in (4, 9)),
            "commit": "0123456789abcdef",
            "executions": {n: 900_000 * (p + 1) + 9_000 * at for p, n in enumerate(HARNESSES)},
            "edges": {name: 400 + 110 * p + 6 * at for p, name in enumerate(HARNESSES)},
            "inputs": {name: 60 + 20 * p + at for p, name in enumerate(HARNESSES)},
            "new": dict.fromkeys(HARNESSES, 2),
            "coverage": {"lines": 91.0 + 0.2 * at, "branches": 82.0 + 0.3 * at},
            "slice": {"name": f"{at % 7 + 1}/7", "score": 94.0 + at % 5},
            "findings": {"new": int(at in (4, 9)), "known": 1, "expired": 0, "fixed": at % 2},
        }
        for at in range(nights)
    ]


def night(results: str = "results.json", inputs: int = 150) -> dict[str, Any]:
    """A night that found two new buckets and knows one."""
    return {
        "kind": "nightly",
        "started": "2026-11-30T01:00:00",
        "finished": "2026-11-30T02:02:00",
        "spent": 3_720.0,
        "minutes": 60,
        "exit": 1,
        "notes": [],
        "resumed": 0,
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "steps": [
            {
                "name": name,
                "does": does,
                "state": state,
                "exit": code,
                "seconds": seconds,
                "why": why,
                "findings": found,
                "folder": name,
            }
            for name, does, state, code, seconds, why, found in (
                ("corpus", "replay the committed inputs", "done", 0, 31.0, "", 0),
                ("campaign", "fuzz all harnesses", "done", 1, 2_400.0, "", 2),
                ("mutation", "judge a slice of the mutants", "cut", None, 900.0, "out of time", 3),
                ("interop", "other servers", "skipped", None, 0.0, "openssl is not there", None),
            )
        ],
        "findings": [{"rule": "survivor", "message": "3 mutants survive", "detail": "- a\n+ b"}],
        "untrusted": [],
        "campaign": {**summary(inputs), "exit": 1},
        "buckets": [bucket(0), bucket(1), bucket(2, "known")],
        "mutation": {
            "slice": "3/7",
            "score": 96.4,
            "last_score": 95.9,
            "results": results,
            "counts": {"killed": 900, "survived": 30},
        },
        "history": history(),
    }


def results(mutants: int, every: int = 11) -> dict[str, Any]:
    """What `residue mutate --json` writes, of so many mutants; one in `every` is left."""
    left = (Verdict.SURVIVED, Verdict.SURVIVED, Verdict.NOT_RUN)
    table = []
    for at in range(mutants):
        file = f"engine/{('records', 'hello', 'pool', 'tickets', 'chains')[at % 5]}.py"
        line = 20 + at % 400
        verdict = left[at // every % 3] if at % every == 0 else Verdict.KILLED
        before, after = f"if length > {at}:", f"if length >= {at}:"
        table.append(
            {
                "name": f"{file}:{at}",
                "file": file,
                "function": f"Reader.step_{at % 23}",
                "line": line,
                "operator": ("guard forced true", "comparison", "statement deleted")[at % 3],
                "before": before,
                "after": after,
                "diff": f"--- {file}\n+++ {file}\n@@ -{line} +{line} @@\n     size = self.size\n"
                f"-    {before}\n+    {after}\n         return None\n",
                "verdict": verdict,
                "by": "tests/engine/test_hello.py::test_x" if verdict is Verdict.KILLED else "",
                "seconds": 0.1,
            }
        )
    return {
        "made": {},
        "due": mutants,
        "seconds": 700.0,
        "counts": {},
        "unmutable": {},
        "results": table,
    }
