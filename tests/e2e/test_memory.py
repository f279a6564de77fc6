"""What one session leaves for the next, through every process of the stack."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from prefold.stack.embedded import temporary_stack
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

TRIP = (
    "I live in Germany and I am allergic to peanuts.",
    "Let us plan ten days in Portugal: I decided to take the night train to Lisbon, with two stops on the way.",
    "The hotel in Porto should have a quiet room, and the ferry to the islands leaves only on Mondays.",
)
WORK = ("My email is mara@example.org, and I work as a nurse in a small hospital.", "Which shifts are free next week?")


@pytest.fixture(scope="module")
def api() -> Iterator[httpx.Client]:
    with temporary_stack() as stack, httpx.Client(base_url=stack.gateway_url, timeout=30) as client:
        yield client


def talk(api: httpx.Client, session: str, *said: str, **options: Any) -> None:
    api.put(f"/v1/sessions/{session}", json={"user": "mara", **options}).raise_for_status()
    for text in said:
        turns = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted, let me see what fits."}]
        api.post(f"/v1/sessions/{session}/turns", json={"turns": turns}).raise_for_status()


def known(api: httpx.Client) -> dict[str, str]:
    facts = api.get("/v1/users/mara/facts").raise_for_status().json()["facts"]
    return {one["relation"]: one["object"] for one in facts}


def digests(api: httpx.Client, question: str) -> dict[str, str]:
    """By session."""
    body = {"query": question, "user": "mara", "kinds": ["summary"]}
    found = api.post("/v1/search", json=body).raise_for_status().json()["results"]
    return {one["session"]: one["text"] for one in found}


def test_closed_sessions_are_known_to_the_next_one_of_their_user_and_gone_with_their_erasure(
    api: httpx.Client,
) -> None:
    talk(api, "trip", *TRIP)
    assert api.post("/v1/sessions/trip/close").raise_for_status().status_code in (200, 202)
    talk(api, "work", *WORK, close_after_seconds=1)
    wait_until("what was said in both is known", lambda: {"lives_in", "email"} <= set(known(api)), timeout=90)
    assert known(api)["lives_in"] == "Germany"
    assert known(api)["email"] == "mara@example.org"

    question = "How do I get to Lisbon, and where did I want to stay?"
    digest = wait_until("the trip has a digest", lambda: digests(api, question), timeout=60)["trip"]
    api.put("/v1/sessions/next", json={"user": "mara"}).raise_for_status()
    api.post("/v1/sessions/next/turns", json={"role": "user", "content": question}).raise_for_status()
    body = api.get("/v1/sessions/next/context", params={"query": question}).raise_for_status().json()
    assert next(one["session"] for one in body["recalled"] if one["kind"] == "summary") == "trip"
    for words in ("Germany", "only on Mondays"):
        assert words in digest and words in str(body["messages"])

    api.delete("/v1/sessions/trip").raise_for_status()
    assert "lives_in" not in known(api) and known(api)["email"] == "mara@example.org"
    assert "trip" not in digests(api, question)
    assert not any("Lisbon" in text for text in digests(api, question).values())


def test_a_session_of_one_sentence_is_recalled_in_a_later_one_and_gone_with_its_erasure(api: httpx.Client) -> None:
    talk(api, "short", "We decided to use Kumquatdb for billing.")
    assert api.post("/v1/sessions/short/close").raise_for_status().status_code in (200, 202)
    question = "Which database do we use for billing?"
    wait_until("it has a digest", lambda: digests(api, question).get("short"), timeout=60)
    api.put("/v1/sessions/later", json={"user": "mara"}).raise_for_status()
    api.post("/v1/sessions/later/turns", json={"role": "user", "content": question}).raise_for_status()
    body = api.get("/v1/sessions/later/context", params={"query": question}).raise_for_status().json()
    assert "short" in [one["session"] for one in body["recalled"] if one["kind"] == "summary"]
    assert "We decided to use Kumquatdb for billing." in str(body["messages"])
    for other in ("another", "nobodys"):
        api.put(f"/v1/sessions/{other}", json={"user": "ben"} if other == "another" else {}).raise_for_status()
        api.post(f"/v1/sessions/{other}/turns", json={"role": "user", "content": question}).raise_for_status()
        told = api.get(f"/v1/sessions/{other}/context", params={"query": question}).raise_for_status().text
        assert "Kumquatdb" not in told
    api.delete("/v1/sessions/short").raise_for_status()
    assert "short" not in digests(api, question)
