"""The README's requests are sent, its answers compared, its Python run; and the Python of the page on summaries."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from prefold.stack.embedded import temporary_stack
from tests.support.messages_api import MessagesApi, serving, text
from tests.support.pages import ADDRESS, checked_blocks, curl

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
SUMMARIES = (ROOT / "docs" / "summaries.md").read_text("utf-8")


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    with temporary_stack(durability="durable") as stack:
        yield stack.gateway_url


def blocks(kind: str, page: str = README) -> list[str]:
    return [block for name, block in checked_blocks(page) if name == kind]


@pytest.mark.timeout(120)
def test_the_answers_of_the_readme_are_those_of_the_gateway(gateway: str) -> None:
    requests, answers = blocks("request"), blocks("answer")
    assert len(requests) == len(answers) == 2
    for request, answer in zip(requests, answers, strict=True):
        assert curl(request, gateway) == json.loads(answer)


@pytest.mark.timeout(120)
def test_the_backend_of_the_readme_keeps_a_conversation(gateway: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def create(**request: Any) -> Any:
        asked.append(request)
        return SimpleNamespace(content=[SimpleNamespace(type="text", text=f"answer {len(asked)}")])

    provider = ModuleType("anthropic")
    provider.Anthropic = lambda: SimpleNamespace(messages=SimpleNamespace(create=create))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "anthropic", provider)
    (code,) = blocks("python")
    names: dict[str, Any] = {}
    exec(code.replace(ADDRESS, gateway), names)
    assert [names["reply"]("chat-7", text) for text in ("Hello", "And now?")] == ["answer 1", "answer 2"]
    assert [message["role"] for message in asked[1]["messages"]] == ["user", "assistant", "user"]
    assert asked[1]["messages"][1]["content"][0]["text"] == "answer 1"
    names["memory"].close()


@pytest.mark.timeout(120)
def test_the_backend_of_the_page_on_summaries_has_its_prompts_read_from_the_cache(
    gateway: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = MessagesApi(brain=lambda wanted: text(f"answer {len(wanted.body['messages'])}"))
    (code,) = blocks("python", SUMMARIES)
    names: dict[str, Any] = {}
    with serving(api) as provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        exec(code.replace(ADDRESS, gateway), names)
        names["begin"]("chat-8", "Be kind, exact and brief. " * 200)
        assert [names["reply"]("chat-8", said) for said in ("Hello", "And now?")] == ["answer 1", "answer 3"]
        names["model"].close()
        names["memory"].close()
    first, second = (entry.usage or {} for entry in api.journal.messages)
    assert first["cache_creation_input_tokens"] > 1000
    assert second["cache_read_input_tokens"] >= first["cache_creation_input_tokens"]


def test_the_first_screen_is_short_and_the_whole_stays_readable() -> None:
    assert len(README.splitlines()) < 200
    assert "./run demo" in README.split("## Try it")[0]
