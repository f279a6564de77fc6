"""The commit before this tree, unpacked, so that its processes can be run beside ours.

``PREFOLD_PREVIOUS_TREE`` names a folder that is taken in its place, whatever its layout: to try the test itself.
"""

import os
import re
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from prefold.storage.layout import LAYOUT
from tests.support.vectors import ROOT

_SOURCES = ("services", "workers", "shared")
_LAYOUT_FILE = "shared/prefold/storage/layout.py"
_LAYOUT_LINE = re.compile(r"^LAYOUT\b[^=\n]*=\s*(\d+)", re.MULTILINE)


def previous_tree(folder: Path) -> Path:
    """Where the newest commit that is not this tree is unpacked. Skips, with the reason, where there is none to run."""
    given = os.environ.get("PREFOLD_PREVIOUS_TREE")
    if given:
        return Path(given)
    revision = _revision()
    found = _layout_of(revision)
    if found != LAYOUT:
        told = "was before layouts were noted" if found is None else f"has layout {found}"
        pytest.skip(f"{revision[:12]} {told}, this tree has {LAYOUT}: they are not meant to work side by side")
    with tarfile.open(fileobj=BytesIO(_git("archive", "--format=tar", revision, *_SOURCES))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def python_path(tree: Path) -> str:
    """``PYTHONPATH`` by which its packages go before the installed ones."""
    return os.pathsep.join(str(tree / name) for name in _SOURCES)


def _revision() -> str:
    """The last commit, or the one before it where this tree is that commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("there is no git history to take the previous commit from")
    is_changed = bool(_git("status", "--porcelain", "--", *_SOURCES))
    newest = _git("rev-list", "--max-count=2", "HEAD").decode().split()
    if not is_changed and len(newest) < 2:
        pytest.skip("there is no commit before this one (a shallow clone?)")
    return newest[0 if is_changed else 1]


def _layout_of(revision: str) -> int | None:
    shown = subprocess.run(
        ["git", "-C", str(ROOT), "show", f"{revision}:{_LAYOUT_FILE}"], capture_output=True, text=True, check=False
    )
    line = _LAYOUT_LINE.search(shown.stdout) if shown.returncode == 0 else None
    return int(line[1]) if line else None


def _git(*arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"git does not tell of the history: {error}")
    return done.stdout
