"""The ``anthropic`` engine and a whole stack on a small local model: nothing of what it writes is known beforehand.

Runs where ``PREFOLD_LOCAL_MODEL_URL`` names a server that speaks OpenAI's chat completions and the Messages API, as
llama.cpp's ``llama-server`` does (``PREFOLD_LOCAL_MODEL_KEY``: its key, ``sk-local`` unless set). The model answers
behind the strict fake, freely or held to the form by a grammar, and then directly. Only what must hold whatever a
model says is asserted: turns never wait, one swap, no turn lost, a valid context, and who stands in when the answers
are no good.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from prefold.client import Prefold
from prefold.conversation.check import check_anthropic
from prefold.stack.embedded import temporary_stack
from tests.support.messages_api import MessagesApi, serving, verdict
from tests.support.messages_api.brains.llama import FORM, llama
from tests.support.messages_api.verdict import asked
from tests.support.seeds import tell
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]

SUPPORT = Path(__file__).parents[2] / "examples" / "support.jsonl"
LIMIT = 4000
PATIENCE_SECONDS = 1800
"""A small model on a busy machine reads some ten tokens a second, and may be asked four times."""
SETTINGS = {
    "PREFOLD_SUMMARIZER": "anthropic",
    "PREFOLD_SUMMARIZER_READ_SECONDS": "600",
    "PREFOLD_SUMMARIZER_DEADLINE_SECONDS": "600",
    "PREFOLD_SUMMARIZER_MAX_OUTPUT_TOKENS": "400",
    "PREFOLD_WORKER_STOP_SECONDS": "2",
}


@pytest.fixture
def model_url() -> str:
    url = os.environ.get("PREFOLD_LOCAL_MODEL_URL")
    if not url:
        pytest.skip("no local model: set PREFOLD_LOCAL_MODEL_URL to its server's base URL, without /v1")
    return url.rstrip("/")


@pytest.fixture
def key() -> str:
    return os.environ.get("PREFOLD_LOCAL_MODEL_KEY", "sk-local")


@contextmanager
def stack_on(url: str, key: str, model: str = "claude-haiku-5-5") -> Iterator[Prefold]:
    """A stack whose summaries are asked for at ``url``."""
    with pytest.MonkeyPatch.context() as patch:
        addresses = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key, "PREFOLD_SUMMARIZER_MODEL": model}
        for name, value in {**SETTINGS, **addresses}.items():
            patch.setenv(name, value)
        with temporary_stack(durability="fast") as stack, Prefold(stack.gateway_url) as prefold:
            yield prefold


class Talk:
    """The support case of the examples, tools apart, said turn by turn."""

    def __init__(self, prefold: Prefold) -> None:
        told = [json.loads(line) for line in SUPPORT.read_text("utf-8").splitlines()]
        self._told = iter([one for one in told if one["role"] != "system" and isinstance(one["content"], str)])
        self._prefold = prefold
        self.ids: list[str] = []
        self.slowest_seconds = 0.0
        prefold.create_session("case", hard_limit_tokens=LIMIT, soft_ratio=0.4, system="You are kind.")

    def say(self) -> str:
        """One turn more; the context's status after it."""
        turn = next(self._told)
        began = time.monotonic()
        appended = self._prefold.append_many("case", [{name: turn[name] for name in ("id", "role", "content")}])
        self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
        self.ids.append(turn["id"])
        return appended.context.status

    def say_until(self, status: str) -> None:
        while self.say() != status:
            pass

    def check(self) -> None:
        """No turn is lost or doubled, and the context is one that the chat's model takes."""
        kept = [turn["id"] for turn in self._prefold.turns("case")]
        assert kept == self.ids
        context = self._prefold.context("case")
        assert check_anthropic(list(context.messages), context.system) == []
        assert context.tokens <= LIMIT


def converse(prefold: Prefold) -> Any:
    """From the first turn over a build to the swap, and some turns on; the session at its end."""
    talk = Talk(prefold)
    talk.say_until("soft")
    for _ in range(3):
        talk.say()
    talk.check()
    wait_until("a summary is ready", lambda: prefold.session("case").standby is not None, PATIENCE_SECONDS)
    talk.say_until("swapped")
    session = prefold.session("case")
    for _ in range(3):
        talk.say()
    talk.check()
    assert (session.swaps, session.degraded, session.ready_crossings) == (1, False, 1)
    assert prefold.session("case").swaps == 1
    tell(f"{session.active}, {session.usage}; slowest append {talk.slowest_seconds:.3f} s")
    return session


def check_engine(session: Any) -> None:
    """Whatever the model said: it passed the gate, or it was refused for a reason and the other engine wrote."""
    assert session.usage is not None
    assert session.usage.calls >= 1
    if session.active.engine == "anthropic":
        assert session.active.because is None
        return
    assert (session.active.engine, session.active.instead_of) == ("extractive", "anthropic")
    assert session.active.because.startswith(("summary_", "answer_", "input_too_long"))


@pytest.mark.parametrize("more", [{}, {"grammar": FORM}], ids=["freely", "in the form"])
def test_a_conversation_gets_its_summary_from_a_real_model_behind_the_strict_api(
    model_url: str, key: str, more: dict[str, Any]
) -> None:
    api = MessagesApi(brain=llama(model_url, key, **more))
    with serving(api) as url, stack_on(url, "sk-ant-test") as prefold:
        check_engine(converse(prefold))
    calls = api.journal.messages
    tell(f"{[(entry.status, entry.stop_reason, round((entry.ended or 0) - entry.arrived)) for entry in calls]}")
    assert {entry.status for entry in calls if not entry.hung_up} <= {200}
    assert verdict(calls, same=asked) == []


def test_a_conversation_gets_its_summary_from_a_server_that_is_asked_directly(model_url: str, key: str) -> None:
    with stack_on(model_url, key, model="local") as prefold:
        check_engine(converse(prefold))


def test_turns_are_said_while_a_call_runs_and_a_stack_that_stops_then_leaves_it(model_url: str, key: str) -> None:
    api = MessagesApi(brain=llama(model_url, key))
    with serving(api) as url:
        with stack_on(url, "sk-ant-test") as prefold:
            talk = Talk(prefold)
            talk.say_until("soft")
            wait_until("a call runs", lambda: api.journal.running, PATIENCE_SECONDS)
            running = api.journal.messages[-1]
            for _ in range(5):
                talk.say()
            assert running.ended is None, "the call was over before the turns were said"
            talk.check()
            began = time.monotonic()
        took = time.monotonic() - began
        tell(f"stopped within {took:.1f} s; slowest append {talk.slowest_seconds:.3f} s")
        wait_until("the server sees that nobody waits", lambda: not api.journal.running, 60)
    assert running.hung_up
    assert took < 30
