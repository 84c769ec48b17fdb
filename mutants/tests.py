"""Some test files as a mutation run runs them, to the first failure: `python -m mutants.tests`.

The arguments are pytest's, and so is the exit code.
"""

from __future__ import annotations

import os
import sys

import pytest

from mutants import profile


def main(arguments: list[str]) -> int:
    """Run them."""
    os.environ.pop("PYTHONPATH", None)
    profile.register()
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--tb=line", *arguments]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
