"""The digest of a session that said little: its own few turns, word for word.

A summary of them would be no shorter, and leave something out. What is made here is as safe to be quoted as what an
engine writes: see ``prefold.compaction.reading.source``.
"""

from collections.abc import Sequence
from typing import Final

from prefold.compaction.reading.source import PartKind, SourceTurn, read_source
from prefold.conversation.turns import TurnKind
from prefold.recall.keeping import why_not
from prefold.storage.types import StoredTurn
from prefold.tokens import TokenCounter

__all__ = ["said_in"]

_ASKING: Final = ("?", "？", "؟")


def said_in(turns: Sequence[StoredTurn], counter: TokenCounter, most_tokens: int) -> str:
    """One line a turn of what users and assistants said, as engines write it; empty where that is nothing.

    Without greetings, acknowledgements and whatever else is not embedded. Nothing was said where the user said
    nothing, or where everything is a question. Over ``most_tokens`` raw tokens the assistant's lines go, and then the
    user's are too many as well: empty.
    """
    said = [(one, _text_of(one)) for one in map(read_source, _worth_keeping(turns))]
    said = [(one, text) for one, text in said if text]
    own = [(one, text) for one, text in said if one.role == "user"]
    if not own or all(text.endswith(_ASKING) for _, text in said):
        return ""
    texts = ["\n".join(f"[{one.seq} {one.speaker}] {text}" for one, text in lines) for lines in (said, own)]
    return next((text for text in texts if counter.count(text) <= most_tokens), "")


def _worth_keeping(turns: Sequence[StoredTurn]) -> list[StoredTurn]:
    """Plain turns that are embedded."""
    spoken = [turn.verbatim_json for turn in turns]
    row = [None, *spoken, None]
    return [
        turn
        for at, turn in enumerate(turns)
        if turn.kind == TurnKind.PLAIN and why_not(turn.verbatim_json, row[at], row[at + 2]) is None
    ]


def _text_of(turn: SourceTurn) -> str:
    """Its words on one line."""
    return " ".join(" ".join(part.text for part in turn.parts if part.kind is PartKind.TEXT).split())
