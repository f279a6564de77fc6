"""The server's own compaction in the fake, behind its beta: the block, its way back, and each refusal with its code."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
from anthropic.types.beta import BetaMessage

from tests.support.messages_api import MessagesApi, faults
from tests.support.messages_api.checks.compacting import compaction_block
from tests.support.messages_api.sdk import sdk_of

BETA = {"anthropic-beta": "compact-2026-09-04"}
BLOCK = compaction_block("They planned a dinner.")
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content) or "Hello."}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content) or "Good day."}


@pytest.fixture
def api() -> MessagesApi:
    return MessagesApi(brain=lambda wanted: "They planned a dinner.")


@pytest.fixture
async def client(api: MessagesApi) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with sdk_of(api) as client:
        yield client


async def ask(client: anthropic.AsyncAnthropic, messages: list[dict[str, Any]], **more: Any) -> BetaMessage:
    body = {"model": "claude-haiku-5-5", "max_tokens": 500, "messages": messages, **more}
    return await client.post("/v1/messages?beta=true", body=body, cast_to=BetaMessage, options={"headers": BETA})


async def test_a_conversation_is_compacted_into_one_signed_block_that_goes_on(client: anthropic.AsyncAnthropic) -> None:
    compacted = await ask(client, [user(), assistant()], compaction={"type": "summarize"})
    assert compacted.stop_reason == "compaction"
    (block,) = [part.model_dump(exclude_none=True) for part in compacted.content]
    assert (block["type"], block["content"]) == ("compaction", "They planned a dinner.")
    assert (await ask(client, [assistant(block), user()])).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("code", "messages", "more"),
    [
        ("compaction_block_ambiguous", [assistant(BLOCK), user(), assistant(BLOCK), user()], {}),
        ("compaction_block_misplaced", [user(), assistant(BLOCK), user()], {}),
        ("compaction_content_mismatch", [assistant({**BLOCK, "content": "They ate."}), user()], {}),
        ("compaction_signature_invalid", [assistant({**BLOCK, "signature": "mine"}), user()], {}),
        ("compaction_tool_changes_mismatch", [assistant({**BLOCK, "tool_changes": []}), user()], {}),
        ("compaction_incomplete_turn", [user(), assistant(CALL)], {"compaction": {"type": "summarize"}}),
        ("compaction_nothing_to_summarize", [assistant(BLOCK)], {"compaction": {"type": "summarize"}}),
    ],
)
async def test_what_is_wrong_with_compaction_has_a_code(
    client: anthropic.AsyncAnthropic, code: str, messages: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await ask(client, messages, **more)
    assert caught.value.error_code == code


async def test_compaction_can_be_unavailable(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    api.script(faults.compaction_unavailable())
    with pytest.raises(anthropic.APIStatusError) as caught:
        await ask(client, [user()], compaction={"type": "summarize"})
    assert (caught.value.status_code, caught.value.error_code) == (529, "compaction_unavailable")
