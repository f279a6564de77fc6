"""Shared prefixes with real processes: a chat that goes on while its summaries are written over its own prompt."""

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic

from prefold.client import Prefold
from prefold.stack.embedded import temporary_stack
from tests.support.messages_api import MessagesApi, Wanted, serving
from tests.support.messages_api.brains import brain_called
from tests.support.prefix_chat import ASKED, MODEL, SYSTEM, TOOLS
from tests.support.waiting import wait_until

SUPPORT = Path(__file__).parents[2] / "examples" / "support.jsonl"
FAITHFUL = brain_called("faithful")


def words_of(role: str) -> list[str]:
    """What was said in the support case, tools apart."""
    said = map(json.loads, SUPPORT.read_text("utf-8").splitlines())
    return [one["content"] for one in said if one["role"] == role and isinstance(one["content"], str)]


def has_what_it_needs(prefold: Prefold) -> bool:
    session = prefold.session("case")
    return session.build is None and (session.status != "soft" or session.standby is not None)


@pytest.mark.long
@pytest.mark.timeout(240)
def test_builds_of_a_running_stack_read_their_prompts_from_the_chats_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[str] = []

    def brain(wanted: Wanted) -> Any:
        for_a_build = wanted.body["model"] != MODEL or wanted.last_text.startswith(ASKED)
        return FAITHFUL(wanted) if for_a_build else answers[-1]

    api = MessagesApi(brain=brain)
    with serving(api) as url:
        for name, value in {
            "PREFOLD_SUMMARIZER": "anthropic",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-test",
            "PREFOLD_SUMMARIZER_PREFIX_MODELS": "claude-*",
        }.items():
            monkeypatch.setenv(name, value)
        with temporary_stack(durability="fast") as stack, Prefold(stack.gateway_url) as prefold, Anthropic() as model:
            setting: dict[str, Any] = {"hard_limit_tokens": 9000, "soft_ratio": 0.5, "shared_prefix": {"enabled": True}}
            prefold.create_session("case", model=MODEL, system=SYSTEM, tools=TOOLS, **setting)
            for asked, answer in zip(words_of("user"), words_of("assistant"), strict=False):
                answers.append(answer)
                prefold.append("case", "user", asked)
                request: dict[str, Any] = prefold.context("case", cache="5m").anthropic()
                said = model.messages.create(model=MODEL, max_tokens=500, tools=TOOLS, **request)  # type: ignore[arg-type]
                prefold.append("case", "assistant", [one.model_dump(exclude_none=True) for one in said.content])
                wait_until("nothing is to be built", lambda: has_what_it_needs(prefold), 60)
            session = prefold.session("case")
    builds = [entry.usage or {} for entry in api.journal.messages if ASKED.encode() in entry.body]
    read = [usage["cache_read_input_tokens"] for usage in builds]
    total = [usage["input_tokens"] + usage["cache_creation_input_tokens"] for usage in builds]
    shares = [one / (one + other) for one, other in zip(read, total, strict=True)]
    print(f"{len(builds)} builds, {session.swaps} swaps: {min(shares):.1%} to {max(shares):.1%} from the cache")  # noqa: T201
    assert session.swaps >= 1
    assert (session.active.engine, session.degraded) == ("anthropic", False)
    assert len(builds) >= 3
    assert sum(shares) / len(shares) >= 0.8
    assert session.usage is not None
    assert session.usage.cache_read_tokens >= sum(read) * 0.9
