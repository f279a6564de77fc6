"""``DELETE /v1/sessions/{session}`` on a real Redis."""

from collections.abc import AsyncIterator

import pytest

from prefold.gateway.finding import Hit
from tests.support.gateway import Served, served_gateway

SESSION = "/v1/sessions/s1"
TURN = {"id": "m1", "role": "user", "content": "CANARY-7731 is my secret"}


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        yield running


async def test_an_erased_session_is_gone_and_the_receipt_says_what_was_looked_at(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits.append(("default", Hit("s1", "x", 1, 0, 1.0)))
    answer = await served.client.delete(SESSION)
    receipt = answer.json()
    assert answer.status_code == 200
    assert (receipt["turns"], receipt["keys_left"], receipt["vectors_left"]) == (1, 0, 0)
    assert next(one["where"] for one in receipt["remains"]) == "redis append-only file"
    assert served.index.hits == []
    keys = [key async for key in served.sessions.client.scan_iter("*")]
    dumps = [await served.sessions.client.dump(key) or b"" for key in keys]
    assert not any(b"CANARY" in dump for dump in dumps)


@pytest.mark.parametrize("path", ["", "/context", "/turns"])
async def test_what_was_erased_reads_as_erased(served: Served, path: str) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    answer = await served.client.get(SESSION + path)
    assert (answer.status_code, answer.json()["code"]) == (410, "session_erased")


async def test_an_append_is_refused_until_the_session_is_put_anew(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    refused = await served.client.post(f"{SESSION}/turns", json=TURN)
    assert (refused.status_code, refused.json()["code"]) == (410, "session_erased")
    assert (await served.client.put(SESSION, json={})).status_code == 200
    again = await served.client.post(f"{SESSION}/turns", json=TURN)
    assert again.json()["turns"] == [
        {"id": "m1", "seq": 1, "tokens": again.json()["turns"][0]["tokens"], "duplicate": False}
    ]


async def test_erasing_twice_is_safe_and_an_unknown_session_is_not_found(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    again = await served.client.delete(SESSION)
    assert (again.status_code, again.json()["turns"]) == (200, 0)
    unknown = await served.client.delete("/v1/sessions/never")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "session_not_found")


async def test_vectors_that_cannot_be_deleted_now_are_deleted_by_the_repeat(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits.append(("default", Hit("s1", "x", 1, 0, 1.0)))
    served.index.is_down = True
    refused = await served.client.delete(SESSION)
    assert (refused.status_code, refused.json()["code"]) == (503, "erasure_incomplete")
    served.index.is_down = False
    assert (await served.client.delete(SESSION)).json()["vectors_left"] == 0
    assert served.index.hits == []
