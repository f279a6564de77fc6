"""Planted statements through a real session: turns in, builds when due, and what a read of the context shows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from prefold.assembly import assemble
from prefold.compaction.build import SessionBuilder
from prefold.storage import Sessions
from prefold.storage.types import SessionOptions
from prefold.tokens import load_counter
from tests.support.planted.talks import Said
from tests.support.planted.wordings import Planted
from tests.support.storage import TENANT, turn

COUNTER = load_counter()
_MOST_TURNS = 4000
"""A session that gets no summary any more ends here, and what was asked of it is missing in the counts."""
MARKS = ("replaces", "取代", "旧")
"""How a line of the ledger says that it stands in place of a value."""
OUTDATED = ("is replaced by", "已被取代", "変更あり", ": → [")
"""How a line says that a value in it has been replaced."""


@dataclass
class Served:
    """The contexts of one session after some of its swaps."""

    limit: int
    texts: dict[int, str] = field(default_factory=dict)
    """After so many swaps: every text of the context, of both forms."""
    over_limit: int = 0
    swaps: int = 0


async def serve(
    sessions: Sessions, builder: SessionBuilder, name: str, talk: Iterator[Said], limit: int, looks: Sequence[int]
) -> Served:
    """Publishes ``talk`` until the last of ``looks`` swaps and reads the context after each of them."""
    await sessions.open(TENANT, name, SessionOptions(hard_limit_tokens=limit, soft_ratio=0.8))
    served = Served(limit)
    waiting = False
    for said in islice(talk, _MOST_TURNS):
        result = await sessions.append(TENANT, name, [turn(**said)])
        swaps = result.swaps
        if result.status in ("soft", "degraded") and not waiting:
            outcome = await builder.build(result.ref)
            waiting = outcome == "standby"
            swaps += outcome == "swapped"
        if swaps == served.swaps:
            continue
        served.swaps, waiting = swaps, False
        text = await _read(sessions, name, served)
        if served.swaps in looks:
            served.texts[served.swaps] = text
        if served.swaps >= max(looks):
            break
    return served


async def _read(sessions: Sessions, name: str, served: Served) -> str:
    """Both forms must say it: what only one has is not counted."""
    stored = await sessions.read_context(TENANT, name)
    forms = [assemble(stored, COUNTER, form=form) for form in ("anthropic", "openai")]
    served.over_limit += any(one.total_tokens > served.limit for one in forms)
    one, other = ("\n".join(_texts(orjson.loads(form.messages))) for form in forms)
    lines = set(other.splitlines())
    return "\n".join(line for line in one.splitlines() if line in lines)


def _texts(messages: Sequence[Any]) -> Iterator[str]:
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            yield content
        elif content is not None:
            yield from (str(block["text"]) for block in content if block.get("type") == "text")


def is_shown(planted: Planted, text: str) -> bool:
    return planted.shown in text


def is_shown_as_current(planted: Planted, text: str) -> bool:
    """Whether a line tells the value that was taken back as if it held.

    A line may name it where the user's own correction does, or where the ledger says that it was replaced.
    """
    lines = [line for line in text.splitlines() if planted.gone and planted.gone in line]
    return any(not _is_marked(planted, line) for line in lines)


def _is_marked(planted: Planted, line: str) -> bool:
    if planted.corrected in line or any(mark in line for mark in OUTDATED):
        return True
    return any(f'{mark} "{planted.gone}' in line for mark in MARKS)
