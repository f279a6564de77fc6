"""The probe of a process that serves nothing else."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import httpx
import pytest

from prefold.config.settings import ProbeSettings
from prefold.errors import ConfigurationError, UnavailableError
from prefold.stack.places import free_port
from prefold.telemetry import probe
from prefold.telemetry.probe import Ready, serving_probe
from tests.support.metrics import Scrape

HOST = "127.0.0.1"


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=10) as one:
        yield one


def settings(port: int) -> ProbeSettings:
    return ProbeSettings(probe_host=HOST, probe_port=port)


def telling(**checks: str) -> Ready:
    async def ready() -> Mapping[str, str]:
        return checks

    return ready


async def test_without_a_port_there_is_none() -> None:
    async with serving_probe(settings(0)) as url:
        assert url is None


async def test_a_process_lives_and_counts(client: httpx.AsyncClient) -> None:
    async with serving_probe(settings(free_port(HOST))) as url:
        assert (await client.get(f"{url}/livez")).json() == {"status": "ok", "checks": {}}
        served = await client.get(f"{url}/metrics?name=x")
        assert served.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert Scrape(served.text).samples()


@pytest.mark.parametrize(
    ("checks", "status"),
    [
        ({"sessions": "ok", "queue": "ok"}, 200),
        ({"sessions": "ok: 1 of 3 servers do not answer"}, 200),
        ({"sessions": "ok", "queue": "does not answer"}, 503),
        ({"sessions": "okay"}, 503),
    ],
)
async def test_it_is_ready_when_every_check_is(client: httpx.AsyncClient, checks: dict[str, str], status: int) -> None:
    async with serving_probe(settings(free_port(HOST)), telling(**checks)) as url:
        answer = await client.get(f"{url}/readyz")
        assert (answer.status_code, answer.json()["checks"]) == (status, checks)


@pytest.mark.parametrize("error", [UnavailableError("the store is away"), ValueError("some words")])
async def test_a_check_that_fails_is_answered_without_its_words(client: httpx.AsyncClient, error: Exception) -> None:
    async def ready() -> Mapping[str, str]:
        raise error

    async with serving_probe(settings(free_port(HOST)), ready) as url:
        answer = await client.get(f"{url}/readyz")
        assert answer.status_code == 503
        assert answer.json()["checks"]["checks"] in ("the store is away", "ValueError")


async def test_a_check_that_hangs_is_answered_for(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_READY_WITHIN_SECONDS", 0.05)

    async def ready() -> Mapping[str, str]:
        await asyncio.Event().wait()
        return {}

    async with serving_probe(settings(free_port(HOST)), ready) as url:
        answer = await client.get(f"{url}/readyz")
        assert (answer.status_code, answer.json()["checks"]) == (503, {"checks": "do not end in time"})


async def test_it_refuses_all_else(client: httpx.AsyncClient) -> None:
    async with serving_probe(settings(free_port(HOST))) as url:
        assert (await client.get(f"{url}/v1/sessions/s")).status_code == 404
        assert (await client.post(f"{url}/livez")).status_code == 405
        head = await client.head(f"{url}/livez")
        assert (head.status_code, head.content) == (200, b"")


async def test_whoever_sends_too_much_or_nothing_holds_up_nobody(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_HEAD_WITHIN_SECONDS", 0.2)
    port = free_port(HOST)
    async with serving_probe(settings(port)) as url:
        silent = [await asyncio.open_connection(HOST, port) for _ in range(8)]
        loud_reader, loud = await asyncio.open_connection(HOST, port)
        loud.write(b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
        assert (await client.get(f"{url}/livez")).status_code == 200
        assert await loud_reader.read() == b""
        for reader, _ in silent:
            assert await reader.read() == b""
        for writer in (loud, *(writer for _, writer in silent)):
            writer.close()


async def test_a_port_that_is_taken_is_said() -> None:
    port = free_port(HOST)
    async with serving_probe(settings(port)):
        with pytest.raises(ConfigurationError, match=f"cannot listen on {HOST}:{port}"):
            async with serving_probe(settings(port)):
                pass
