"""``DELETE …?before=``: an erasure that is applied again after a restore takes what had begun by then, and nothing else."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from tests.support.gateway import Served, served_gateway

SESSION, TURN, USER = "/v1/sessions/s1", "/v1/sessions/s1/turns/t1", "/v1/users/ada"
LIVES = {"relation": "lives_in", "object": "Germany", "is_entity": True}


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        yield running


async def talk(served: Served) -> None:
    assert (await served.client.put(SESSION, json={"user": "ada"})).status_code == 200
    said = await served.client.post(f"{SESSION}/turns", json={"id": "t1", "role": "user", "content": "I live here."})
    assert said.status_code == 201
    assert (await served.client.post(f"{USER}/facts", json=LIVES)).status_code == 201


def moment(hours: float = 0) -> dict[str, str]:
    return {"before": (datetime.now(UTC) + timedelta(hours=hours)).isoformat()}


async def status_of(served: Served, path: str, given: dict[str, str]) -> tuple[int, str]:
    answer = await served.client.delete(path, params=given)
    return answer.status_code, answer.json().get("code", "")


@pytest.mark.parametrize("path", [SESSION, TURN])
async def test_a_session_that_was_begun_later_is_spared_and_an_earlier_one_is_not(served: Served, path: str) -> None:
    await talk(served)
    assert await status_of(served, path, moment(-1)) == (409, "begun_since")
    assert (await served.client.get(f"{SESSION}/turns")).json()["turns"][0]["content"] == "I live here."
    assert await status_of(served, path, moment(1)) == (200, "")
    assert (await served.client.get(SESSION)).status_code == (410 if path == SESSION else 200)


async def test_a_session_that_is_erased_already_is_finished_and_an_unknown_one_is_not_there(served: Served) -> None:
    await talk(served)
    await served.client.delete(SESSION)
    assert await status_of(served, SESSION, moment(-1)) == (200, "")
    assert await status_of(served, "/v1/sessions/unheard", moment()) == (404, "session_not_found")
    assert await status_of(served, "/v1/sessions/unheard", {"before": "0326-09-22T06:42:53Z"}) == (
        404,
        "session_not_found",
    )


async def test_a_user_who_was_erased_since_may_have_begun_anew_and_is_spared(served: Served) -> None:
    await talk(served)
    given = moment()
    assert await status_of(served, USER, given) == (200, "")
    await served.client.delete(SESSION)
    await talk(served)
    assert await status_of(served, USER, given) == (409, "erased_since")
    assert len((await served.client.get(f"{USER}/facts")).json()["facts"]) == 1
    assert await status_of(served, USER, moment(1)) == (200, "")
    assert (await served.client.get(f"{USER}/facts")).json()["facts"] == []


async def test_what_is_no_time_with_a_zone_is_refused_before_anything_is_erased(served: Served) -> None:
    await talk(served)
    for path, given in product(
        (SESSION, TURN, USER), ("yesterday", "2026-11-30T10:00:00", "", "9999-12-31T23:59:59-23:00")
    ):
        answer = await served.client.delete(path, params={"before": given})
        assert (answer.status_code, answer.json()["field"]) == (422, "before"), (path, given)
    assert (await served.client.get(f"{SESSION}/turns")).json()["turns"][0]["content"] == "I live here."
