"""Where a served context says that the provider shall keep what stands before."""

import json
import random
from typing import Any

from prefold.assembly import RecalledItem, RecallInput, Ttl, assemble
from prefold.conversation import check_anthropic
from prefold.storage.types import StoredContext
from prefold.tokens import load_counter
from tests.support.contexts import ContextMaker, random_context

RECALLED = RecallInput([RecalledItem(999, "user", "", "an earlier turn about books " * 3, 0.9)])


def served(stored: StoredContext, cache: Ttl | None, recalled: RecallInput | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(assemble(stored, load_counter(), cache=cache, recalled=recalled).to_json())
    return answer


def without_marks(value: Any) -> Any:
    if isinstance(value, list):
        return [without_marks(one) for one in value]
    if isinstance(value, dict):
        return {name: without_marks(one) for name, one in value.items() if name != "cache_control"}
    return value


def marks_of(messages: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Message and block of each breakpoint, counted from the end."""
    return [
        (number - len(messages), place - len(message["content"]))
        for number, message in enumerate(messages)
        for place, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def talk(*roles: str) -> StoredContext:
    maker = ContextMaker(random.Random(7), most_words=10)
    for role in roles:
        maker.plain(role)
    return maker.stored(100_000, 1.0, "Be kind.")


def test_the_system_prompt_and_the_two_newest_user_messages_end_in_breakpoints() -> None:
    answer = served(talk("user", "assistant", "user", "assistant", "user"), "5m")
    assert answer["system"] == [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    assert marks_of(answer["messages"]) == [(-3, -1), (-1, -1)]
    assert answer["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


def test_neighbours_that_become_one_message_get_one_breakpoint_at_its_end() -> None:
    answer = served(talk("user", "user", "assistant", "assistant", "user", "user", "assistant"), "1h")
    assert marks_of(answer["messages"]) == [(-4, -1), (-2, -1)]
    assert answer["messages"][-2]["content"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


def test_what_is_recalled_stands_after_the_last_breakpoint() -> None:
    answer = served(talk("user", "assistant", "user"), "5m", RECALLED)
    assert answer["recalled"]
    assert marks_of(answer["messages"]) == [(-3, -1), (-1, -2)]


def test_without_a_system_prompt_there_is_no_block_of_it() -> None:
    maker = ContextMaker(random.Random(7), most_words=10)
    maker.plain("user")
    answer = served(maker.stored(100_000, 1.0), "5m")
    assert (answer["system"], marks_of(answer["messages"])) == ([], [(-1, -1)])


def test_breakpoints_change_nothing_else_and_keep_any_context_valid() -> None:
    for seed in range(60):
        stored = random_context(seed)
        plain, marked = served(stored, None), served(stored, "5m")
        assert without_marks(marked["messages"]) == plain["messages"], seed
        assert "".join(block["text"] for block in marked["system"]) == plain["system"], seed
        assert check_anthropic(marked["messages"], plain["system"]) == [], seed
        roles = [message["role"] for message in plain["messages"]]
        assert len(marks_of(marked["messages"])) == min(2, roles.count("user")), seed
