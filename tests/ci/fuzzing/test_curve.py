"""The curve of a fuzzing phase."""

from types import SimpleNamespace

from ci.fuzzing.allocation import shares
from ci.fuzzing.curve import POINTS, Curve
from ci.fuzzing.supervisor import Phase


def shard(name, executions, edges):
    return SimpleNamespace(
        task=SimpleNamespace(harness=name), executions=executions, edges=edges, finished=False
    )


def test_a_point_sums_the_executions_of_a_harness_and_takes_its_most_edges():
    phase = Phase(60.0, 1, shares(["a"]), began=100.0)
    phase.shards = [shard("a", 10, 7), shard("a", 5, 9), shard("b", 1, 2)]
    curve = Curve({"a": 3, "b": 0}.__getitem__)
    curve(phase, 112.34)
    assert curve.points == [
        {"t": 12.3, "harness": "a", "executions": 15, "edges": 9, "finds": 3},
        {"t": 12.3, "harness": "b", "executions": 1, "edges": 2, "finds": 0},
    ]


def test_a_long_phase_has_no_more_points_than_can_be_drawn():
    phase = Phase(36000.0, 1, shares(["a"]), began=5.0)
    phase.shards = [shard("a", 1, 1)]
    curve = Curve(lambda harness: 0)
    for tick in range(360000):
        curve(phase, 5.0 + tick / 10)
    curve.end(phase, 36005.0)
    assert POINTS - 5 < len(curve.points) <= POINTS
    assert curve.points[-1]["t"] == 36000.0
