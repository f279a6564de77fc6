"""The SDK against a gateway that speaks the documented API: both clients, every call."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from prefold.client import AsyncPrefold, Prefold, RetryPolicy
from prefold.client.connecting import client_options
from prefold.errors import InvalidInputError, NotFoundError
from tests.support.fake_gateway import FakeGateway, running_fake_gateway

Caller = Callable[..., Any]


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_fake_gateway() as fake:
        yield fake


def call_blocking(url: str, name: str, *args: Any, **options: Any) -> Any:
    with Prefold(url, api_key="key-1") as client:
        return getattr(client, name)(*args, **options)


def call_async(url: str, name: str, *args: Any, **options: Any) -> Any:
    async def call() -> Any:
        async with AsyncPrefold(url, api_key="key-1") as client:
            return await getattr(client, name)(*args, **options)

    return asyncio.run(call())


@pytest.fixture(params=[call_blocking, call_async], ids=["blocking", "async"])
def call(request: pytest.FixtureRequest) -> Caller:
    caller: Caller = request.param
    return caller


def test_an_append_tells_the_seq_and_where_the_context_stands(gateway: FakeGateway, call: Caller) -> None:
    appended = call(gateway.url, "append", "chat", "user", "Hello", id="a", ts="2026-01-01T00:00:00Z")

    assert [(turn.id, turn.seq, turn.duplicate) for turn in appended.turns] == [("a", 1, False)]
    assert appended.context.hard_limit_tokens == 100_000
    assert appended.durability == "fast"
    sent = {"id": "a", "role": "user", "content": "Hello", "ts": "2026-01-01T00:00:00Z"}
    assert gateway.requests == [("POST", "/v1/sessions/chat/turns", {"turns": [sent]})]


def test_several_turns_go_out_in_one_request_and_those_without_an_id_get_one(
    gateway: FakeGateway, call: Caller
) -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}]
    gateway.answer = lambda *_: (201, {"turns": [], "context": {}, "durability": "fast"})  # type: ignore[method-assign]
    with pytest.raises(Exception, match="does not answer as a Prefold gateway"):
        call(gateway.url, "append_many", "chat", turns)

    (_, _, body) = gateway.requests[0]
    assert body is not None
    first, second = body["turns"]
    assert len(first["id"]) == 32
    assert first["id"] != second["id"]
    assert second["content"] is None


def test_a_context_is_ready_for_each_providers_create_call(gateway: FakeGateway, call: Caller) -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    call(gateway.url, "append_many", "chat", turns)

    anthropic = call(gateway.url, "context", "chat")
    openai = call(gateway.url, "context", "chat", format="openai")

    said = [{"type": "text", "text": "Hello"}]
    assert anthropic.anthropic() == {"system": "Be brief.", "messages": [{"role": "user", "content": said}]}
    assert openai.openai() == {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    }
    assert anthropic.tokens == sum(anthropic.sections.values())


def test_a_context_without_a_system_prompt_has_no_system_argument(gateway: FakeGateway, call: Caller) -> None:
    call(gateway.url, "append", "chat", "user", "Hello")

    assert call(gateway.url, "context", "chat").anthropic().keys() == {"messages"}


def test_a_context_of_one_provider_is_not_given_to_the_other(gateway: FakeGateway, call: Caller) -> None:
    call(gateway.url, "append", "chat", "user", "Hello")

    with pytest.raises(ValueError, match="read it with format='openai'"):
        call(gateway.url, "context", "chat").openai()
    with pytest.raises(ValueError, match="read it with format='anthropic'"):
        call(gateway.url, "context", "chat", format="openai").anthropic()


def test_a_context_passes_query_budget_and_cache_on(gateway: FakeGateway, call: Caller) -> None:
    call(gateway.url, "append", "chat", "user", "Hello")
    call(gateway.url, "context", "chat", query="what & who", budget_tokens=900, cache="5m")

    target = gateway.requests[-1][1]
    assert target.partition("?")[2] == "format=anthropic&query=what+%26+who&budget_tokens=900&cache=5m"


def test_creating_a_session_sends_only_what_is_given(gateway: FakeGateway, call: Caller) -> None:
    session = call(gateway.url, "create_session", "chat", hard_limit_tokens=4000, user="ada")

    assert gateway.requests[0][2] == {"user": "ada", "hard_limit_tokens": 4000}
    assert (session.hard_limit_tokens, session.soft_threshold_tokens, session.standby) == (4000, 2400, None)


def test_a_soft_ratio_is_given_up_by_its_own_word_and_a_shared_prefix_by_an_empty_one(
    gateway: FakeGateway, call: Caller
) -> None:
    call(gateway.url, "create_session", "chat", soft_ratio="adaptive", shared_prefix={})

    assert gateway.requests[0][2] == {"soft_ratio": None, "shared_prefix": {}}


def test_a_gateway_that_tells_less_of_its_summaries_is_understood(gateway: FakeGateway, call: Caller) -> None:
    session = call(gateway.url, "create_session", "chat")

    assert (session.soft_threshold, session.usage, session.shared_prefix, session.active.engine) == (None,) * 4


def test_the_log_comes_page_by_page(gateway: FakeGateway, call: Caller) -> None:
    call(gateway.url, "append_many", "chat", [{"id": f"t{n}", "role": "user", "content": "x"} for n in range(5)])

    page = call(gateway.url, "turns", "chat", after_seq=2, limit=2)

    assert [(turn["seq"], turn["id"]) for turn in page] == [(3, "t2"), (4, "t3")]


def test_a_search_gives_hits_and_sends_only_what_is_given(gateway: FakeGateway, call: Caller) -> None:
    (hit,) = call(gateway.url, "search", "locker", user="ada", limit=3)

    assert (hit.kind, hit.turn_id, hit.score) == ("turn", "t", 0.5)
    assert gateway.requests[0] == ("POST", "/v1/search", {"query": "locker", "user": "ada", "limit": 3})


def test_the_key_goes_out_as_a_bearer_token(gateway: FakeGateway, call: Caller) -> None:
    call(gateway.url, "append", "chat", "user", "Hello")

    assert gateway.headers[0]["authorization"] == "Bearer key-1"


def test_an_unknown_session_is_not_found_and_keeps_its_code(gateway: FakeGateway, call: Caller) -> None:
    with pytest.raises(NotFoundError) as caught:
        call(gateway.url, "context", "nobody")

    assert caught.value.code == "session_not_found"


@pytest.mark.parametrize(
    ("session", "path"),
    [("a/b c", "a%2Fb%20c"), ("..", "%2E%2E"), ("é", "%C3%A9"), ("a?x=1#y", "a%3Fx%3D1%23y")],
)
def test_a_session_name_stays_one_segment_of_the_path(
    gateway: FakeGateway, call: Caller, session: str, path: str
) -> None:
    call(gateway.url, "append", session, "user", "Hello")

    assert gateway.requests[0][1] == f"/v1/sessions/{path}/turns"


@pytest.mark.parametrize("session", ["", "\ud800"])
def test_a_session_name_that_no_path_can_carry_is_refused_here(
    gateway: FakeGateway, call: Caller, session: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        call(gateway.url, "append", session, "user", "Hello")

    assert caught.value.field == "session"
    assert gateway.requests == []


NESTED: list[Any] = []
for _ in range(100_000):
    NESTED = [NESTED]


@pytest.mark.parametrize("content", [{1, 2}, [{"type": "text", "text": float("nan")}], NESTED], ids=type)
def test_content_that_is_no_json_is_refused_before_anything_is_sent(
    gateway: FakeGateway, call: Caller, content: Any
) -> None:
    with pytest.raises(InvalidInputError):
        call(gateway.url, "append", "chat", "user", content)

    assert gateway.requests == []


def test_publishing_nothing_is_refused(gateway: FakeGateway, call: Caller) -> None:
    with pytest.raises(InvalidInputError, match="no turn"):
        call(gateway.url, "append_many", "chat", [])


def test_a_forked_process_does_not_read_the_answers_of_its_parent(gateway: FakeGateway) -> None:
    """On a connection that both use, each would get some of the other's contexts."""
    program = f"""
import os
from prefold.client import Prefold

client = Prefold({gateway.url!r})
client.append("ours", "user", "Hello", id="a")
child = os.fork()
client.append("ours" if child else "theirs", "user", "x", id="b")
if child:
    assert os.waitpid(child, 0)[1] == 0
client.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    assert len(gateway.connections) == 2
    assert {name: len(one.turns) for name, one in gateway.sessions.items()} == {"ours": 2, "theirs": 1}


def test_a_key_that_was_read_with_its_line_end_is_sent_without_it() -> None:
    assert client_options("http://host", "pf_id_word\r\n")["headers"]["Authorization"] == "Bearer pf_id_word"


@pytest.mark.parametrize("key", ["pf_id_w\u00f6rd", "pf_id\nword", "pf_id\x00word"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_quoted(key: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Prefold("http://host", api_key=key)

    assert caught.value.field == "api_key"
    assert "pf_id" not in str(caught.value)


@pytest.mark.parametrize("url", ["127.0.0.1:7077", "ftp://host", "http://", "http://host:port"])
def test_a_url_that_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Prefold(url)

    assert caught.value.field == "url"


def test_closing_twice_is_legal(gateway: FakeGateway) -> None:
    client = Prefold(gateway.url)
    client.close()
    client.close()


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    gateway: FakeGateway, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)

    assert call(gateway.url, "append", "chat", "user", "Hello").turns


def _signature(member: Callable[..., object]) -> str:
    return str(inspect.signature(member)).replace("async_buffer.", "buffer.").replace("Async", "")


def test_both_clients_have_the_same_calls() -> None:
    def calls_of(kind: type) -> dict[str, str]:
        public = inspect.getmembers(kind, inspect.isfunction)
        return {
            name.removeprefix("a") if name == "aclose" else name: _signature(member)
            for name, member in public
            if not name.startswith("_")
        }

    assert calls_of(Prefold) == calls_of(AsyncPrefold)


def test_the_client_imports_nothing_but_the_base_dependencies() -> None:
    program = "import sys, prefold.client; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    assert "httpx" in loaded
    extras = {"fastapi", "hiredis", "msgspec", "numpy", "orjson", "pydantic", "rq", "structlog", "tiktoken"}
    assert not extras & set(loaded)


def test_the_default_deadline_is_the_documented_one() -> None:
    assert RetryPolicy().deadline_seconds == 30
