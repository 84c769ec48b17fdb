"""Path validation keeps each of its rules: every case has the one answer that the rules give."""

import pytest

from engine.x509 import paths, stores
from tests.engine.x509 import constraint_cases  # noqa: F401  (adds its cases)
from tests.engine.x509.chain_cases import CASES, OK


@pytest.mark.parametrize("title", CASES)
def test_each_chain_has_its_answer(title):
    expected, make = CASES[title]
    case = make()
    store = stores.load(b"".join(root.pem for root in case.roots))
    answer = paths.verify(list(case.chain), store, case.now)
    if expected != OK:
        assert answer == expected
        return
    assert isinstance(answer, paths.Verified), answer
    assert answer.leaf == case.chain[0]
    assert answer.path[-1].der in {root.der for root in case.roots}
