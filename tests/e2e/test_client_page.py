"""The Python of the page on the client runs, against a real gateway and a real Redis."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from prefold.client import AsyncPrefold
from tests.support.gateway_thread import gateway_thread
from tests.support.pages import ADDRESS, checked_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text("utf-8")
REDIS = "redis://127.0.0.1:6379/0"


def blocks(kind: str) -> list[str]:
    return [block for name, block in checked_blocks(PAGE) if name == kind]


@pytest.fixture
def gateway(redis_url: str) -> Iterator[str]:
    with gateway_thread(redis_url) as address:
        yield address


def provided(monkeypatch: pytest.MonkeyPatch, module: str, **members: Any) -> None:
    provider = ModuleType(module)
    vars(provider).update(members)
    monkeypatch.setitem(sys.modules, module, provider)


async def test_the_ten_lines_keep_a_conversation_and_report_usage(
    gateway: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    async def create(**request: Any) -> Any:
        asked.append(request)
        said = SimpleNamespace(type="text", text=f"answer {len(asked)}")
        usage = SimpleNamespace(input_tokens=20, output_tokens=3)
        return SimpleNamespace(id=f"msg_{len(asked)}", role="assistant", content=[said], usage=usage)

    model = SimpleNamespace(messages=SimpleNamespace(create=create))
    provided(monkeypatch, "anthropic", AsyncAnthropic=lambda: model)
    names: dict[str, Any] = {}
    exec(blocks("python")[0].replace(ADDRESS, gateway), names)
    assert [await names["reply"]("chat-1", text) for text in ("Hello", "And now?")] == ["answer 1", "answer 2"]
    assert [message["role"] for message in asked[1]["messages"]] == ["user", "assistant", "user"]
    logged = await names["memory"].turns("chat-1")
    assert logged[1]["usage"] == {"input_tokens": 20, "output_tokens": 3}
    await names["memory"].aclose()


def test_the_lines_for_openai_keep_a_conversation(gateway: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def create(**request: Any) -> Any:
        asked.append(request)
        message = SimpleNamespace(role="assistant", content=f"answer {len(asked)}", tool_calls=None, refusal=None)
        usage = SimpleNamespace(prompt_tokens=20, completion_tokens=3)
        return SimpleNamespace(id=f"chatcmpl-{len(asked)}", choices=[SimpleNamespace(message=message)], usage=usage)

    model = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    provided(monkeypatch, "openai", OpenAI=lambda: model)
    names: dict[str, Any] = {}
    exec(blocks("python")[1].replace(ADDRESS, gateway), names)
    assert [names["reply"]("chat-2", text) for text in ("Hello", "And now?")] == ["answer 1", "answer 2"]
    assert [message["content"] for message in asked[1]["messages"]] == ["Hello", "answer 1", "And now?"]
    names["memory"].close()


async def test_the_buffer_and_the_events_of_the_page_run(gateway: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with AsyncPrefold(gateway) as memory:
        await memory.create_session("chat-9", hard_limit_tokens=1000)
        buffer, events = blocks("async")
        assert (await _run(buffer, memory))["seq"] == 1
        for _ in range(3):
            await memory.append("chat-9", "user", "word " * 450)
        await _run(events, memory)
    assert "turns are left out" in capsys.readouterr().out


def _run(block: str, memory: AsyncPrefold) -> Any:
    names: dict[str, Any] = {"memory": memory}
    exec(f"async def run():\n{indent(block, '    ')}\n    return locals()", names)
    return names["run"]()


def test_the_direct_client_of_the_page_publishes_and_reads(redis_url: str) -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[2].replace(REDIS, redis_url), names)
    assert names["context"].messages[0]["content"][0]["text"] == "Hello"
    names["memory"].close()
