"""The example of each command's --help, as a command line with smaller numbers."""

import shlex
from glob import glob

from ci.command import COMMANDS
from ci.process import ROOT


def words(name: str, **numbers: str) -> list[str]:
    """The words after `residue`, as a shell in the checkout would give them; of `numbers` each is
    an option whose value takes the example's place, or is added."""
    residue, *given = shlex.split(COMMANDS[name].example)
    assert residue == "residue"
    for option, value in numbers.items():
        flag = f"--{option}"
        if flag in given:
            given[given.index(flag) + 1] = value
        else:
            given += [flag, value]
    return [file for word in given for file in sorted(glob(word, root_dir=ROOT)) or [word]]
