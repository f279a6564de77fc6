"""The queue's Redis: it may lose everything, so little is asked of it."""

import asyncio
from contextlib import closing
from datetime import timedelta
from typing import Any

from redis import Redis
from redis.exceptions import RedisError, ResponseError
from rq import Worker

from prefold.config.addresses import tried
from prefold.config.flags import redacted_url
from prefold.config.settings import QueueSettings
from prefold.doctor.findings import Finding
from prefold.jobs import QUEUES, hint_queue, queue_connection
from prefold.storage.promises import OLDEST_VERSION

__all__ = ["look_at_queue"]

_PART = "queue"
_REPLY_TIMEOUT = timedelta(seconds=2)


async def look_at_queue(settings: QueueSettings) -> list[Finding]:
    """Findings of the queue. Never raises."""
    return await asyncio.to_thread(_look, settings)


def _look(settings: QueueSettings) -> list[Finding]:
    with closing(queue_connection(settings.queue_url, reply_timeout=_REPLY_TIMEOUT, retries=0)) as client:
        try:
            info: Any = client.info()
            return [
                Finding(_PART, "reachable", "ok", redacted_url(settings.queue_url)),
                *_settings(info),
                *_log(client, info),
                *_queues(client),
            ]
        except (RedisError, OSError) as error:
            mend = (
                "start it, or let PREFOLD_QUEUE_URL name the one that runs; until then turns are kept and not worked on"
            )
            return [
                Finding(_PART, "reachable", "wrong", f"{tried(settings, 'queue_url')} does not answer: {error}", mend)
            ]


def _settings(info: dict[str, Any]) -> list[Finding]:
    version, role, policy = str(info["redis_version"]), info["role"], str(info.get("maxmemory_policy", ""))
    is_new = tuple(int(part) for part in version.split(".")[:2]) >= OLDEST_VERSION
    keeps = policy == "noeviction"
    bounded = bool(info.get("maxmemory"))
    return [
        Finding(_PART, "version", "ok" if is_new else "wrong", version, "" if is_new else "run Redis 7.0 or later"),
        Finding(
            _PART,
            "role",
            "ok" if role == "master" else "wrong",
            "primary" if role == "master" else "replica",
            "" if role == "master" else "let PREFOLD_QUEUE_URL name the primary",
        ),
        Finding(
            _PART,
            "maxmemory-policy",
            "ok" if keeps else "wrong" if bounded else "note",
            policy,
            "" if keeps else "CONFIG SET maxmemory-policy noeviction: RQ does not expect its keys to vanish",
        ),
    ]


def _log(client: Redis, info: dict[str, Any]) -> list[Finding]:
    if not int(info.get("aof_enabled", 0)):
        return [Finding(_PART, "appendonly", "ok", "no")]
    try:
        fsync = dict(client.config_get("appendfsync")).get("appendfsync")
    except ResponseError:
        fsync = None
    mend = "CONFIG SET appendonly no: jobs are hints, and each costs some 60 commands that would all be written"
    return [Finding(_PART, "appendonly", "note", f"yes, appendfsync {fsync or 'not readable'}", mend)]


def _queues(client: Redis) -> list[Finding]:
    found = []
    for name in QUEUES:
        queue = hint_queue(name, client)
        workers, waiting = Worker.count(queue=queue), queue.count
        mend = "" if workers else f"start `prefold worker {name}`"
        found.append(
            Finding(_PART, name, "ok" if workers else "wrong", f"{workers} workers, {waiting} jobs wait", mend)
        )
    return found
