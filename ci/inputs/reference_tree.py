"""A tree that is right, beside which a wrong outcome is seen to be wrong."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ci import extras
from ci.exits import Untrusted, UsageError
from ci.process import ROOT, git
from mutants.settings import SUITE

# What a harness needs, as it was then; and what runs it, as it is now.
THEN, NOW = SUITE.planted, "triage"


@contextmanager
def tree(named: str) -> Iterator[Path]:
    """The tree of a folder or of a git revision, as long as it is needed; UsageError for neither.

    The folder is a checkout, and used where it lies. A revision's tree is a copy that goes away.
    """
    folder = Path(named)
    if folder.is_dir():
        if not (folder / NOW / "probe.py").is_file():
            raise UsageError(f"{named} is no checkout: it has no {NOW}/probe.py")
        yield folder.resolve()
        return
    extras.need("git")
    try:
        wanted = f"{named}^{{commit}}"
        commit = git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", wanted, root=ROOT
        ).strip()
    except Untrusted:
        raise UsageError(f"{named} is neither a folder nor a revision of this checkout") from None
    with tempfile.TemporaryDirectory(prefix="residue-") as made:
        archive = subprocess.run(
            ["git", "archive", commit, *THEN], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "-x", "-C", made], input=archive.stdout, check=True)
        shutil.copytree(ROOT / NOW, Path(made) / NOW, ignore=shutil.ignore_patterns("*.pyc"))
        signature = Path(SUITE.harnesses, "signature.py")
        if not (Path(made) / signature).exists():
            shutil.copy(ROOT / signature, Path(made) / signature)
        yield Path(made)
