"""Conversations with questions whose answers stand in known turns: ``NAME.jsonl`` and ``NAME.qa.json``."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_SET: Final = re.compile(r"^(locomo|beam-\d+k|tau|code|memorybank-[a-z]+|trip-90)")
APART: Final = "adversarial"
"""Questions about what was never said that way: the turn that tempts is not evidence."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the places (from 0) of the turns that answer it."""

    id: str
    text: str
    evidence: frozenset[int]
    category: str


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation as it is published, and what is asked of it."""

    name: str
    turns: tuple[dict[str, Any], ...]
    asked: tuple[Asked, ...]

    @property
    def set(self) -> str:
        """The set that it belongs to; its own name where that is none of the known ones."""
        found = _SET.match(self.name)
        return found[0] if found else self.name


def data_folder() -> Path | None:
    """``PREFOLD_DATA``, or where it stands beside the repository; None: not there."""
    folder = Path(os.environ.get("PREFOLD_DATA") or Path(__file__).parents[3] / "shared" / "data")
    return folder if folder.is_dir() else None


def talks(folder: Path, names: Sequence[str] = ()) -> list[Talk]:
    """Those of the folder whose name begins with any of ``names``; all that have questions without any."""
    paths = sorted(folder.glob("*.qa.json"))
    stems = [path.name.removesuffix(".qa.json") for path in paths]
    return [read(folder, stem) for stem in stems if not names or stem.startswith(tuple(names))]


def read(folder: Path, stem: str) -> Talk:
    """One of them."""
    lines = (folder / f"{stem}.jsonl").read_text("utf-8").splitlines()
    turns = tuple(_published(json.loads(line)) for line in lines if line.strip())
    place = {str(turn["id"]): number for number, turn in enumerate(turns)}
    questions = json.loads((folder / f"{stem}.qa.json").read_text("utf-8"))["questions"]
    asked = (
        Asked(
            str(one.get("id", number)),
            one["question"],
            frozenset(place[turn] for turn in one.get("evidence", ())),
            str(one.get("category", "")),
        )
        for number, one in enumerate(questions)
    )
    return Talk(stem, turns, tuple(one for one in asked if one.evidence and one.category != APART))


def _published(line: dict[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in ("id", "role", "name", "ts", "content") if name in line}
