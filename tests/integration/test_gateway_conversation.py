"""A whole conversation with tool rounds, published turn by turn and read under budgets after each."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prefold.conversation import check_anthropic, check_openai
from tests.support.gateway import served_gateway

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("PREFOLD_DATA", ROOT.parent / "shared" / "data"))
RECORDED = ("tau-airline-2-1.jsonl", "code-sweagent-marshmallow.jsonl")


def turns_of(path: Path) -> Iterator[dict[str, Any]]:
    known = ("id", "role", "content", "ts", "name", "tool_calls", "tool_call_id")
    for line in path.read_text("utf-8").splitlines():
        turn = json.loads(line)
        yield {name: turn[name] for name in known if name in turn}


async def publish_and_check(redis_url: str, path: Path, limit: int, every: int) -> None:
    async with served_gateway(redis_url) as served:
        await served.client.put("/v1/sessions/s", json={"hard_limit_tokens": limit})
        for number, turn in enumerate(turns_of(path)):
            answer = await served.client.post("/v1/sessions/s/turns", json=turn)
            assert answer.status_code == 201, answer.json()
            if number % every:
                continue
            for budget in (None, 300, 777, limit // 2):
                query = "" if budget is None else f"&budget_tokens={budget}"
                for form in ("anthropic", "openai"):
                    body = (await served.client.get(f"/v1/sessions/s/context?format={form}{query}")).json()
                    assert body["tokens"]["total"] <= min(budget or limit, limit)
                    if form == "anthropic":
                        assert check_anthropic(body["messages"], body["system"]) == []
                    else:
                        assert check_openai(body["messages"]) == []


async def test_the_example_is_valid_and_within_every_budget_all_the_way(redis_url: str) -> None:
    await publish_and_check(redis_url, ROOT / "examples" / "support.jsonl", 2000, every=5)


@pytest.mark.parametrize("name", RECORDED)
async def test_a_recorded_conversation_is_valid_and_within_every_budget_all_the_way(redis_url: str, name: str) -> None:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is not here: set PREFOLD_DATA to the folder of recorded conversations")
    await publish_and_check(redis_url, path, 2000, every=2)
