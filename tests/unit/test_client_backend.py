"""A chat backend in ten lines, as the README shows it, with a model that checks what it is sent."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from prefold.client import Prefold
from prefold.conversation import check_anthropic, check_openai
from tests.support.fake_gateway import FakeGateway, running_fake_gateway


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_fake_gateway() as fake:
        yield fake


class Model:
    """Answers like the SDKs' clients, and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def create(self, *, model: str, max_tokens: int, messages: list[Any], system: str = "") -> Any:
        assert check_anthropic(messages, system or None) == []
        self.sent.append({"system": system, "messages": messages})
        usage = SimpleNamespace(to_dict=lambda: {"input_tokens": 10, "output_tokens": 2})
        blocks = [SimpleNamespace(type="thinking"), SimpleNamespace(type="text", text=f"answer {len(self.sent)}")]
        return SimpleNamespace(content=blocks, usage=usage)

    def complete(self, *, model: str, messages: list[Any]) -> str:
        assert check_openai(messages) == []
        self.sent.append({"messages": messages})
        return "answer"


def test_a_backend_that_publishes_reads_and_answers_keeps_its_conversation(gateway: FakeGateway) -> None:
    prefold, model = Prefold(gateway.url), Model()

    def reply(chat: str, text: str) -> str:
        prefold.append(chat, "user", text)
        context = prefold.context(chat)
        answer = model.create(model="any", max_tokens=1024, **context.anthropic())
        said = "".join(block.text for block in answer.content if block.type == "text")
        prefold.append(chat, "assistant", said, usage=answer.usage.to_dict())
        return said

    prefold.create_session("chat", hard_limit_tokens=1000)
    answers = [reply("chat", f"question {n} " + "word " * 40) for n in range(1, 30)]
    prefold.close()

    assert answers[-1] == "answer 29"
    assert model.sent[-1]["messages"][-1]["content"][0]["text"].startswith("question 29")
    assert gateway.sessions["chat"].swaps > 0
    assert len(model.sent[-1]["messages"]) < 20
    assert gateway.sessions["chat"].turns[1]["usage"] == {"input_tokens": 10, "output_tokens": 2}


def test_the_same_backend_speaks_to_openais_format(gateway: FakeGateway) -> None:
    model = Model()
    with Prefold(gateway.url) as prefold:
        prefold.append("chat", "system", "Be brief.")
        prefold.append("chat", "user", "Hello")
        answer = model.complete(model="any", **prefold.context("chat", format="openai").openai())

    assert answer == "answer"
    assert model.sent == [
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]}
    ]
