"""Answers that get lost, streams that break: the client asks again, and neither does anything twice nor misses any."""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import httpx
import pytest

from prefold.client import AsyncPrefold, Degraded, Erased, Prefold, RetryPolicy, StandbyReady, Swapped
from prefold.errors import ConflictError, NotFoundError, OverloadedError, UnavailableError
from tests.support.fake_gateway import FakeSession

SOON = RetryPolicy(deadline_seconds=5, first_pause_seconds=0.001, longest_pause_seconds=0.001)
Answer = Callable[[httpx.Request], httpx.Response]


def client_of(answer: Answer, retry: RetryPolicy = SOON) -> Prefold:
    return Prefold("http://gateway", retry=retry, transport=httpx.MockTransport(answer))


def problem(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"status": status, "code": code, "detail": code, "title": "", "type": ""})


def state(version: int, document: dict[str, Any]) -> httpx.Response:
    answer = {"version": version, "tokens": 9, "cap_tokens": 250, "state": document, "proposals": []}
    return httpx.Response(200, json=answer)


class LostWrite:
    """A gateway that writes what it is sent at once, whose first answer is lost; then its state has ``version``."""

    def __init__(self, now: httpx.Response) -> None:
        self._now = now
        self.writes = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return self._now
        assert request.headers["if-match"] == '"4"'
        self.writes += 1
        if self.writes == 1:
            raise httpx.ReadTimeout("lost", request=request)
        return problem(412, "version_conflict")


def test_a_guarded_write_whose_answer_was_lost_finds_itself_written() -> None:
    gateway = LostWrite(state(5, {"goal": "Ship", "plan": [{"step": "Pack", "done": False}]}))
    with client_of(gateway) as client:
        written = client.put_state("s", {"goal": "Ship", "plan": [{"step": "Pack"}], "decisions": []}, if_version=4)
        assert written.version == 5
        gateway.writes = 0
        assert client.patch_state("s", {"goal": "Ship", "constraints": None}, if_version=4).version == 5


@pytest.mark.parametrize(
    "now", [state(5, {"goal": "Another's"}), state(6, {"goal": "Ship"})], ids=["another's words", "a later version"]
)
def test_a_guarded_write_that_somebody_else_came_before_stays_a_conflict(now: httpx.Response) -> None:
    with client_of(LostWrite(now)) as client, pytest.raises(ConflictError):
        client.put_state("s", {"goal": "Ship"}, if_version=4)


def test_a_guarded_write_by_a_key_that_may_not_look_stays_a_conflict() -> None:
    with client_of(LostWrite(problem(403, "scope_missing"))) as client, pytest.raises(ConflictError):
        client.put_state("s", {"goal": "Ship"}, if_version=4)


def test_a_conflict_at_the_first_attempt_is_one_whatever_the_state_says() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return state(5, {"goal": "Ship"}) if request.method == "GET" else problem(412, "version_conflict")

    with client_of(answer) as client, pytest.raises(ConflictError):
        client.put_state("s", {"goal": "Ship"}, if_version=4)


def test_deleting_a_fact_whose_answer_was_lost_is_done() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        if request.method == "GET":
            return httpx.Response(200, json={"facts": [], "next_after": None})
        if len(asked) == 1:
            raise httpx.RemoteProtocolError("lost", request=request)
        return problem(404, "fact_not_found")

    with client_of(answer) as client:
        assert client.delete_fact("ann", "f1").facts_left == 0
    asked[:] = ["DELETE"]
    with client_of(answer) as client, pytest.raises(NotFoundError):
        client.delete_fact("ann", "f1")


def test_a_proposal_that_is_gone_after_a_mere_refusal_was_not_accepted_by_us() -> None:
    answers = [problem(429, "overloaded"), problem(404, "proposal_not_found")]

    with client_of(lambda request: answers.pop(0)) as client, pytest.raises(NotFoundError):
        client.accept_proposal("s", "p1")

    lost = [problem(503, "not_replicated"), problem(404, "proposal_not_found"), state(2, {"goal": "Ship"})]
    with client_of(lambda request: lost.pop(0)) as client:
        assert client.accept_proposal("s", "p1").state == {"goal": "Ship"}


def test_a_quota_that_asks_for_more_patience_than_the_deadline_is_told_at_once() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        refused = problem(429, "quota_exceeded")
        refused.headers["Retry-After"] = "3600"
        return refused

    with client_of(answer) as client, pytest.raises(OverloadedError) as caught:
        client.append("s", "user", "x")
    assert caught.value.code == "quota_exceeded"
    assert caught.value.retry_after is not None
    assert caught.value.retry_after.total_seconds() == 3600


def _session(swaps: int) -> httpx.Response:
    from tests.support.fake_gateway import session_answer

    fake = FakeSession(swaps=swaps, covers_to=swaps * 10, version=swaps + 1)
    return httpx.Response(200, json=session_answer("s", fake))


def _event(name: str, **data: Any) -> bytes:
    told = {"session": "s", "version": 1, "tokens": 5, **data}
    return b"event: %s\ndata: %s\n\n" % (name.encode(), json.dumps(told).encode())


class Broken(httpx.AsyncByteStream, httpx.SyncByteStream):
    """A stream that ends by a failure after its pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = list(pieces)

    def __iter__(self) -> Any:
        yield from self._pieces
        raise httpx.ReadError("broken")

    async def __aiter__(self) -> Any:
        for piece in self._pieces:
            yield piece
        raise httpx.ReadError("broken")


class Streams:
    """Connection after connection, with the count of swaps that the session has at each."""

    def __init__(self, connections: list[tuple[int, list[bytes]]]) -> None:
        self._left = iter(connections)
        self._swaps = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/events"):
            return _session(self._swaps)
        self._swaps, pieces = next(self._left)
        if not pieces:
            return problem(410, "session_erased")
        return httpx.Response(200, stream=Broken(pieces), headers={"Content-Type": "text/event-stream"})


CONNECTIONS = [
    (0, [b"retry: 2000\n\n", _event("standby_ready", covers_to=8), b": still here\n\n"]),
    (0, [_event("standby_ready", covers_to=8), _event("swapped", covers_to=8, swaps=1)[:20]]),
    (2, [_event("swapped", covers_to=20, swaps=2), _event("new_kind"), _event("degraded", version=3)]),
    (2, [_event("degraded", version=3), _event("swapped", covers_to=30, swaps=3, version=4)]),
    (3, []),
]
TOLD = [StandbyReady, Swapped, Degraded, Swapped, Erased]


def test_a_broken_stream_is_taken_up_again_without_a_repeat_or_a_missed_swap() -> None:
    with client_of(Streams(CONNECTIONS)) as client:
        told = list(client.events("s"))
    assert [type(event) for event in told] == TOLD
    assert [event.swaps for event in told if isinstance(event, Swapped)] == [2, 3]


async def test_the_same_with_asyncio() -> None:
    transport = httpx.MockTransport(Streams(CONNECTIONS))
    async with AsyncPrefold("http://gateway", retry=SOON, transport=transport) as client, asyncio.timeout(10):
        told = [event async for event in client.events("s")]
    assert [type(event) for event in told] == TOLD


def test_a_stream_that_nobody_answers_ends_with_the_deadline() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody", request=request)

    retry = RetryPolicy(deadline_seconds=0.02, first_pause_seconds=0.001)
    with client_of(answer, retry) as client, pytest.raises(UnavailableError):
        next(client.events("s"))
