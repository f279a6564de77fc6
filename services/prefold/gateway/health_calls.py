"""``/livez``, ``/readyz``, ``/metrics``, ``/openapi.json``."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError
from starlette.responses import Response

from prefold.errors import PrefoldError
from prefold.gateway.answers import Health
from prefold.gateway.background import InBackground
from prefold.gateway.bodies import json_response, raw_response
from prefold.gateway.exchange import Exchange
from prefold.gateway.metrics import Metrics
from prefold.storage.canary import try_scripts
from prefold.storage.client import redis_failures
from prefold.storage.cluster import Server, servers_of
from prefold.storage.layout import check_layout
from prefold.tokens import TokenCounter

_CHECK_WITHIN_SECONDS = 1.0
_FULL = "is full"
_FULL_SHARE = 0.95
"""Of the store's memory: from here on a larger turn is refused, though a canary still finds room."""
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
        self._looking: asyncio.Task[dict[str, str]] | None = None

    async def livez(self, exchange: Exchange) -> Response:
        """The process serves requests."""
        exchange.query()
        return raw_response(b'{"status":"ok","checks":{}}')

    async def readyz(self, exchange: Exchange) -> Response:
        """Sessions can be served: the store has our layout and appends a turn and gives its context, by the real scripts.

        What that writes is removed in the same transaction; callers at once share one look. One server of a cluster
        suffices: refusing all sessions because of some would make an outage larger. A full store is named, and ready:
        no other gateway would find it less full, and contexts and erasures go on.
        """
        exchange.query()
        is_ready, checks = await self._state()
        return json_response(Health(status="ok" if is_ready else "unready", checks=checks), 200 if is_ready else 503)

    async def checks(self) -> Mapping[str, str]:
        """The same for the probe's port: ``ok`` stands before what is wrong and keeps nobody from being served."""
        is_ready, checks = await self._state()
        return {name: f"ok: {told}" if is_ready and told != "ok" else told for name, told in checks.items()}

    async def _state(self) -> tuple[bool, dict[str, str]]:
        states = await self._look()
        layout = await _outcome(lambda: check_layout(self._redis))
        checks = {
            "sessions": _summary(states),
            "layout": layout if layout == "ok" or "layout" in layout else "unknown",
            "counter": "ok" if self._counter.is_ready else "loading",
        }
        can_serve = not {"ok", _FULL}.isdisjoint(states.values())
        return can_serve and checks["layout"] in ("ok", "unknown") and self._counter.is_ready, checks

    async def _look(self) -> dict[str, str]:
        """Looks once for all who ask meanwhile."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._check_sessions())
        return await asyncio.shield(self._looking)

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
        states = await asyncio.gather(*(_outcome(partial(_check, self._redis, server)) for server in servers))
        return {server.name: state for server, state in zip(servers, states, strict=True)}


async def _outcome(check: Callable[[], Awaitable[str | None]]) -> str:
    """``ok``, what the check says, or why it failed."""
    try:
        async with asyncio.timeout(_CHECK_WITHIN_SECONDS):
            return await check() or "ok"
    except TimeoutError:
        return "does not answer in time"
    except PrefoldError as error:
        return _FULL if error.code == "store_full" else error.detail
    except ResponseError as error:  # such as a right that this user lacks; a pipeline's begins with what was sent
        return f"refuses what is needed: {str(error).rpartition('caused error: ')[2][:200]}"


async def _check(redis: Redis, server: Server) -> str | None:
    with redis_failures():
        state = _state_of(await server.client.info("persistence", "memory"))
    if state is None:
        await try_scripts(redis, server)
    return state


def _summary(states: Mapping[str, str]) -> str:
    """``ok``, or what is wrong, of a cluster with the server of which that is said."""
    wrong = [f"{name} {state}".strip() for name, state in states.items() if state != "ok"]
    return "; ".join(wrong) or "ok"


def _state_of(server: Mapping[str, Any]) -> str | None:
    """What is wrong by the server's own account; a full one refuses the scripts, so they are not tried."""
    if server.get("loading"):
        return "is loading its data"
    if server.get("aof_last_write_status", "ok") != "ok":
        return "cannot write its log"
    most = _FULL_SHARE * server.get("maxmemory", 0)
    # With any other policy the server makes room, as long as it can.
    if server.get("maxmemory_policy") == "noeviction" and 0 < most < server.get("used_memory", 0):
        return _FULL
    return None
