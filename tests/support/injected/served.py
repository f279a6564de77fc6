"""Sessions on a real server whose summaries a hostile model writes, up to the context that is served."""

import re
from collections.abc import Sequence
from typing import Any

import orjson

from prefold.assembly import assemble
from prefold.compaction.build import SessionBuilder
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.segments.engine import SegmentedSummarizer
from prefold.conversation import check_anthropic
from prefold.messages import Messages
from prefold.storage import Sessions
from prefold.storage.types import SessionOptions
from prefold.tokens import load_counter
from tests.support.compaction import new_cache
from tests.support.storage import TENANT, append, turn

LIMIT = 3_200
_FILLER = (
    "The harbour at Porto was busy on day {0}, and the crane number {0} moved boxes from one ship to another. " * 3
)
_PART = re.compile(
    r"\[Prefold: (summary|ledger) of turns [^\]\n]*\]\n(.*?)\n\[Prefold: end of (?:summary|ledger)\]", re.DOTALL
)


def builder_with(messages: Messages, sessions: Sessions) -> SessionBuilder:
    """The worker's builder: the model's engine, and the offline one behind it."""
    counter, cache = load_counter(), new_cache()
    engine = SegmentedSummarizer(messages, sessions, counter, chunk_tokens=60_000, most_output_tokens=4_000)
    return SessionBuilder(sessions, engine, cache, counter, fallback=ExtractiveSummarizer(cache, counter))


async def swapped(
    sessions: Sessions, builder: SessionBuilder, name: str, turns: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The record of the summary that stands after the first swap, and the context served then, by format."""
    await sessions.open(TENANT, name, SessionOptions(hard_limit_tokens=LIMIT, soft_ratio=0.4))
    said = [turn(one["role"], one["content"], **_others(one)) for one in turns]
    answer = await append(sessions, *said, *(_filler(number) for number in range(16)), session=name)
    outcome = await builder.build(answer.ref)
    assert outcome in ("standby", "swapped"), outcome
    number = 100
    while not (await sessions.view(TENANT, name)).swaps:
        answer = await append(sessions, *(_filler(number + one) for one in range(4)), session=name)
        number += 4
    stored = await sessions.read_context(TENANT, name)
    served = {form: assemble(stored, load_counter(), form=form) for form in ("anthropic", "openai")}
    assert check_anthropic(orjson.loads(served["anthropic"].messages)) == []
    assert all(one.system == "" for one in served.values())
    view = await sessions.view(TENANT, name)
    assert view.active is not None and view.active.covers_to > len(turns)
    return orjson.loads(view.active.record), {form: _text(one.messages) for form, one in served.items()}


def parts_of(context: str) -> list[str]:
    """What Prefold wrote into ``context`` in words of others: the summary and the ledger, without their marks."""
    return [body for _, body in _PART.findall(context)]


def _others(one: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key not in ("role", "content")}


def _filler(number: int) -> Any:
    return turn("user" if number % 2 == 0 else "assistant", _FILLER.format(number))


def _text(messages: bytes) -> str:
    """All texts of a served context."""
    texts: list[str] = []
    stack: list[Any] = [orjson.loads(messages)]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, dict):
            stack += [value for key, value in reversed(node.items()) if key in ("content", "text")]
        elif isinstance(node, str):
            texts.append(node)
    return "\n".join(texts)
