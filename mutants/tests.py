"""Some test files as a mutation run runs them, to the first failure: `python -m mutants.tests`.

The arguments are pytest's, and so is the exit code.
"""

from __future__ import annotations

import os
import sys

import pytest


def main(arguments: list[str]) -> int:
    """Run tests under the mutant that the environment names; pytest's exit code."""
    os.environ.pop("PYTHONPATH", None)
    quick = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", "--assert=plain"]
    return int(pytest.main([*quick, *arguments]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
