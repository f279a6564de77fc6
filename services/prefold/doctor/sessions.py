"""The session store: its settings, its clock, and the work that it says is still to be done."""

import time
from datetime import timedelta

from redis.asyncio import Redis

from prefold.config.addresses import tried
from prefold.config.flags import redacted_url
from prefold.doctor.findings import Finding, found_by
from prefold.doctor.settings import DoctorSettings
from prefold.doctor.work import look_at_work
from prefold.errors import ConfigurationError, UnavailableError
from prefold.storage.client import connect, redis_failures
from prefold.storage.cluster import Server, servers_of
from prefold.storage.layout import LAYOUT, check_layout
from prefold.storage.promises import promises_of
from prefold.storage.server import ServerFacts, read_servers

__all__ = ["look_at_sessions"]

_PART = "sessions"
_REPLY_TIMEOUT = timedelta(seconds=2)
_MOST_SKEW_SECONDS = 1.0
"""Turns are stamped with a gateway's clock, leases and due times with the server's."""


async def look_at_sessions(settings: DoctorSettings) -> list[Finding]:
    """Findings of every server of the store; one, that it cannot be reached, when none answers. Never raises."""
    async with connect(settings.redis_url, max_connections=8, timeout=_REPLY_TIMEOUT, retries=0) as client:
        try:
            seen = await read_servers(client)
            needed = _needed(settings, seen.facts)
            findings = [one for facts in seen.facts for one in _of_server(facts, settings, needed)]
            findings += [_away(f"{_PART} {address}", "it does not answer") for address in seen.away]
            layout = await _layout(client)
            return [*findings, layout, *await _clocks(client, seen.away), *await look_at_work(client)]
        except (UnavailableError, ConfigurationError) as error:
            return [_away(_PART, f"{tried(settings, 'redis_url')}: {error.detail}")]


def _away(part: str, why: str) -> Finding:
    return Finding(part, "reachable", "wrong", why, "start it, or let PREFOLD_REDIS_URL name the one that runs")


async def _layout(client: Redis) -> Finding:
    try:
        await check_layout(client)
    except ConfigurationError as error:
        return Finding(_PART, "layout", "wrong", error.detail, "run the version of Prefold that wrote the store")
    except UnavailableError as error:  # of a cluster: the one server that knows it
        return Finding(_PART, "layout", "unknown", error.detail, "start the server that is away")
    return Finding(_PART, "layout", "ok", f"{LAYOUT}, as this version works with")


def _needed(settings: DoctorSettings, facts: list[ServerFacts]) -> int:
    """As a gateway that starts now would ask for."""
    if settings.durability == "fast":
        return 0
    return settings.replicas or min(1, max(one.confirming for one in facts))


def _of_server(facts: ServerFacts, settings: DoctorSettings, needed: int) -> list[Finding]:
    part = f"{_PART} {facts.address}".strip()
    return [
        Finding(part, "reachable", "ok", facts.address or redacted_url(settings.redis_url)),
        *found_by(part, promises_of(facts, settings.durability, needed)),
    ]


async def _clocks(client: Redis, away: list[str]) -> list[Finding]:
    with redis_failures():
        servers = [server for server in await servers_of(client) if server.name not in away]
        return [await _clock(server) for server in servers]


async def _clock(server: Server) -> Finding:
    before = time.time()
    seconds, micros = await server.client.time()
    after = time.time()
    skew = seconds + micros / 1e6 - (before + after) / 2
    is_right = abs(skew) - (after - before) / 2 < _MOST_SKEW_SECONDS
    return Finding(
        "machine",
        f"clock {server.name}".strip(),
        "ok" if is_right else "wrong",
        f"{skew:+.3f} s between the session store and this machine",
        "" if is_right else "let both follow a time server (NTP)",
    )
