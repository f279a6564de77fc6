"""Whatever fits ``/openapi.json``, and what does not, gets an answer that it describes, and never one of 500 or more."""

from collections.abc import Iterator

import pytest

from prefold.stack.redis_server import session_options
from tests.support.gateway_process import running_gateway
from tests.support.generated_requests import Sent, described, follow, fuzz
from tests.support.redis import running_redis
from tests.support.seeds import seed_of_run, tell
from tests.support.vectors import running_vectors


@pytest.fixture(scope="module")
def gateway_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("generated")
    with running_redis(session_options("fast")) as store, running_vectors(folder / "vectors") as vectors:
        flags = ("--redis-url", store.url, "--qdrant-url", vectors.url, "--durability", "fast")
        with running_gateway(folder, *flags) as (_, url):
            yield url


@pytest.mark.timeout(200)
def test_some_requests_get_answers_that_are_described(gateway_url: str) -> None:
    number = seed_of_run("these requests")
    sent = Sent()
    schema = described(gateway_url)
    fuzz(schema, sent, each=4, number=number)
    follow(schema, sent, runs=3, steps=12, number=number)
    tell(f"{sent.total} requests: {dict(sent.statuses)}")
    assert sent.total > 100


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_twenty_thousand_requests_get_answers_that_are_described(gateway_url: str) -> None:
    number = seed_of_run("these requests")
    sent = Sent()
    schema = described(gateway_url)
    while sent.total < 20_000:
        fuzz(schema, sent, each=100, number=number)
        follow(schema, sent, runs=60, steps=40, number=number)
        number += 1
    tell(f"{sent.total} requests: {dict(sent.statuses)}")
