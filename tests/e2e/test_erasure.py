"""Erasure on the whole stack: what was said is found nowhere afterwards."""

from typing import Any

import httpx
import pytest
from redis import Redis

from prefold.client import Prefold
from prefold.errors import GoneError
from prefold.stack.embedded import EmbeddedStack, temporary_stack
from prefold.storage.keys import SessionKeys
from tests.support.waiting import wait_until

CANARY = "the heron password is CANARY-7731"


@pytest.mark.timeout(120)
def test_an_erased_session_is_in_no_store_and_in_no_answer() -> None:
    with temporary_stack(durability="durable") as stack, Prefold(stack.gateway_url) as prefold:
        prefold.append("gone", "user", CANARY)
        prefold.append("kept", "user", "The parcel is at the neighbour's.")
        for session in ("gone", "kept"):
            wait_until("the turn is embedded", lambda one=session: prefold.session(one).embedded_to == 1)  # type: ignore[misc]
        assert [hit.session for hit in prefold.search("heron password", limit=1)] == ["gone"]
        receipt = httpx.delete(f"{stack.gateway_url}/v1/sessions/gone", timeout=10).raise_for_status().json()
        counts = {name: count for name, count in receipt.items() if name.endswith("_left")}
        assert (receipt["turns"], receipt["not_checked"]) == (1, [])
        assert counts == dict.fromkeys(
            (
                "keys_left",
                "events_left",
                "due_left",
                "dead_letters_left",
                "commands_left",
                "jobs_left",
                "vectors_left",
                "facts_left",
            ),
            0,
        )
        assert [hit.session for hit in prefold.search("heron password")] == ["kept"]
        with pytest.raises(GoneError):
            prefold.context("gone")
        for url in (stack.redis_url, stack.queue_url):
            with Redis.from_url(url) as redis:
                dumps = [redis.dump(key) or b"" for key in redis.scan_iter("*")]
                assert not any(b"CANARY" in dump for dump in dumps)
        due = SessionKeys.of("default", "gone").due
        with Redis.from_url(stack.redis_url) as redis:  # the worker looks again when jobs under way have ended
            assert any(one.startswith(b"expire:") for one in redis.zrange(due, 0, -1))
        refused = httpx.get(f"{stack.qdrant_url}/collections", timeout=10)
        assert refused.status_code == 401


@pytest.mark.timeout(120)
def test_a_session_whose_time_has_come_is_erased_with_its_vectors() -> None:
    alone: dict[str, Any] = {"compact_workers": 0, "memory_workers": 0}  # the embed worker does it
    with temporary_stack(durability="fast", **alone) as stack, Prefold(stack.gateway_url) as prefold:
        prefold.append("old", "user", CANARY)
        wait_until("the turn is embedded", lambda: prefold.session("old").embedded_to == 1)
        assert points_in(stack) == 1
        keys = SessionKeys.of("default", "old")
        with Redis.from_url(stack.redis_url) as redis:
            (entry,) = [one for one in redis.zrange(keys.due, 0, -1) if one.startswith(b"expire:")]
            redis.zadd(keys.due, {entry: 1})
            wait_until("the session has ended", lambda: not redis.exists(keys.meta))
            wait_until("its vectors are gone", lambda: points_in(stack) == 0)
            wait_until("nothing is due any more", lambda: redis.zcard(keys.due) == 0)
        assert prefold.append("old", "user", "Hello again").turns[0].seq == 1


def points_in(stack: EmbeddedStack) -> int:
    """Points in all collections."""
    with httpx.Client(base_url=stack.qdrant_url, headers={"api-key": stack.qdrant_api_key or ""}) as client:
        names = client.get("/collections").json()["result"]["collections"]
        answers = [client.post(f"/collections/{one['name']}/points/count", json={}).json() for one in names]
    return sum(answer["result"]["count"] for answer in answers)
