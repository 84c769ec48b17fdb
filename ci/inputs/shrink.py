"""The buckets of a store made smaller, each step of the way kept."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace

from ci.inputs import reference_tree
from triage.bucket import NOT_REPRODUCED, Bucket
from triage.intake import Probers
from triage.minimise import Minimiser, NotReproduced
from triage.prober import Prober
from triage.store import Store


def shrink_buckets(
    store: Store, probers: Probers, seconds: float, against: str | None, tell: Callable[[str], None]
) -> None:
    """Shrink every bucket that is not small yet, for so many seconds in all.

    A wrong outcome is left alone unless there is a tree `against` which it is seen to be wrong.
    """
    deadline = time.monotonic() + seconds
    with ExitStack() as stack:
        tree = stack.enter_context(reference_tree.tree(against)) if against is not None else None
        waiting = [
            made
            for made in store.buckets.values()
            if made.reproduced
            and not (made.minimised or made.fixed)
            and (made.signature.kind != "outcome" or tree is not None)
        ]
        for number, made in enumerate(waiting):
            share = (deadline - time.monotonic()) / (len(waiting) - number)
            if share <= 0:
                return
            prober = probers[made.signature.harness]
            beside = None
            if tree is not None and made.signature.kind == "outcome":
                beside = stack.enter_context(Prober(made.signature.harness, tree, prober.limits))
            with suppress(NotReproduced):  # its note says so
                shrink(store, made, prober, share, tell, beside)


def shrink(
    store: Store,
    made: Bucket,
    prober: Prober,
    seconds: float,
    tell: Callable[[str], None],
    beside: Prober | None = None,
) -> Minimiser:
    """Shrink one bucket's input; what an interruption leaves is the smallest so far.

    A bucket whose input does not show it each time is kept as it is, with a note that says so, and
    NotReproduced is raised.
    """
    data = store.data(made.id)
    work = Minimiser(
        prober,
        made.signature,
        data,
        seconds,
        report=lambda text: tell(f"{made.id}: {text}"),
        right=beside,
    )
    try:
        work.run()
    except NotReproduced as error:
        made = replace(made, note=f"{NOT_REPRODUCED}: {error}")
        store.put(made)
        raise
    finally:
        # Also when it was interrupted: what was reached until then is kept.
        if work.finished or work.checked not in (b"", data):
            # A committed input that was made smaller is another input.
            committed = made.committed if work.checked == data else ""
            made = replace(made, minimised=work.finished, committed=committed)
            store.put(made, work.checked)
    return work
