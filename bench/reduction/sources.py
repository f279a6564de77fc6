"""The conversations that are played: files of a folder, or the project's own sample."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prefold.conversation import prepare_turn
from prefold.conversation.turns import PreparedTurn
from prefold.replay.reading import read_conversation
from prefold.tokens import load_counter

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "examples" / "support.jsonl"


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    turns: tuple[PreparedTurn, ...]

    @property
    def tokens(self) -> int:
        """Raw."""
        return sum(turn.tokens for turn in self.turns)


def data_folder() -> Path | None:
    """``PREFOLD_DATA``, or where it stands beside the repository; None: not there."""
    folder = Path(os.environ.get("PREFOLD_DATA") or ROOT.parent / "shared" / "data")
    return folder if folder.is_dir() else None


def conversations(paths: Sequence[Path] = ()) -> list[Conversation]:
    """Those of ``paths``; without any, those of the data folder, else the sample."""
    folder = data_folder()
    found = list(paths) or (sorted(folder.glob("*.jsonl")) if folder else [SAMPLE])
    return [read(path) for path in found]


def read(path: Path) -> Conversation:
    counter = load_counter()
    turns = (prepare_turn(one.published, 0, counter, lambda: "") for one in read_conversation(path))
    return Conversation(path.stem, tuple(turns))
