"""The command `residue` as it is installed: the suite itself is a checkout, and stays one.

It is this module alone that a wheel of the suite would have. The corpus, the recordings, the tests
and the engine's own text are what the suite works on, and no wheel has them.
"""

import importlib.util
import sys


def main() -> int:
    """Run the command of the checkout; 2 and a line that says how where there is none."""
    if importlib.util.find_spec("ci") is None:
        print(
            "residue: needs a checkout: make environment there, or pip install -e '.[suite]'",
            file=sys.stderr,
        )
        return 2
    from ci.command import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
