"""``/livez``, ``/readyz``, ``/metrics``, ``/openapi.json``."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from redis.asyncio import Redis
from starlette.responses import Response

from prefold.errors import PrefoldError
from prefold.gateway.answers import Health
from prefold.gateway.background import InBackground
from prefold.gateway.bodies import json_response, raw_response
from prefold.gateway.exchange import Exchange
from prefold.gateway.metrics import Metrics
from prefold.storage.client import redis_failures
from prefold.storage.cluster import servers_of
from prefold.storage.scripts import script
from prefold.tokens import TokenCounter

_CHECK_WITHIN_SECONDS = 1.0
_FULL = "is full"
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class HealthCalls:
    """What an operator asks. None of it belongs to a tenant."""

    def __init__(
        self, redis: Redis, counter: InBackground[TokenCounter], metrics: Metrics, openapi: Callable[[], bytes]
    ) -> None:
        self._redis = redis
        self._counter = counter
        self._metrics = metrics
        self._openapi = openapi

    async def livez(self, exchange: Exchange) -> Response:
        """The process serves requests."""
        exchange.query()
        return raw_response(b'{"status":"ok","checks":{}}')

    async def readyz(self, exchange: Exchange) -> Response:
        """Sessions can be served: the store answers, runs the append script and takes writes; the counter is loaded.

        One server of a cluster suffices: refusing all sessions because of some would make an outage larger. A full
        store is named, and ready: no other gateway would find it less full, and contexts and erasures go on.
        """
        exchange.query()
        states = await self._check_sessions()
        checks = {"sessions": _summary(states), "counter": "ok" if self._counter.is_ready else "loading"}
        is_ready = not {"ok", _FULL}.isdisjoint(states.values()) and self._counter.is_ready
        return json_response(Health(status="ok" if is_ready else "unready", checks=checks), 200 if is_ready else 503)

    async def metrics(self, exchange: Exchange) -> Response:
        """Counts in Prometheus' text format."""
        exchange.query()
        return Response(self._metrics.render(), media_type=_METRICS_TYPE)

    async def openapi(self, exchange: Exchange) -> Response:
        """The description of this API."""
        exchange.query()
        return raw_response(self._openapi())

    async def _check_sessions(self) -> dict[str, str]:
        """State of each server, by its address; of one that has none: by an empty name."""
        try:
            async with asyncio.timeout(_CHECK_WITHIN_SECONDS):
                with redis_failures():
                    servers = await servers_of(self._redis)
        except TimeoutError:
            return {"": "does not answer in time"}
        except PrefoldError as error:
            return {"": error.detail}
        states = await asyncio.gather(*(_check(server.client) for server in servers))
        return {server.name: state for server, state in zip(servers, states, strict=True)}


async def _check(redis: Redis) -> str:
    try:
        async with asyncio.timeout(_CHECK_WITHIN_SECONDS):
            with redis_failures():
                # SCRIPT LOAD also answers when scripts were flushed, and fails where scripts cannot run.
                await redis.script_load(script("append").source)
                return _state_of(await redis.info("persistence", "memory"))
    except TimeoutError:
        return "does not answer in time"
    except PrefoldError as error:
        return error.detail


def _summary(states: Mapping[str, str]) -> str:
    """``ok``, or what is wrong, of a cluster with the server of which that is said."""
    wrong = [f"{name} {state}".strip() for name, state in states.items() if state != "ok"]
    return "; ".join(wrong) or "ok"


def _state_of(server: Mapping[str, Any]) -> str:
    if server.get("loading"):
        return "is loading its data"
    if server.get("aof_last_write_status", "ok") != "ok":
        return "cannot write its log"
    # With any other policy the server makes room, as long as it can.
    if server.get("maxmemory_policy") == "noeviction" and 0 < server.get("maxmemory", 0) < server.get("used_memory", 0):
        return _FULL
    return "ok"
