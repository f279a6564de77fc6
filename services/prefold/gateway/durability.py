"""What an acknowledged turn really survives: the class that was asked for, if the server is set up for it."""

import structlog
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.gateway.answers import Durability
from prefold.storage.client import redis_failures

log = structlog.get_logger(__name__)


async def verified_durability(redis: Redis, wanted: Durability) -> Durability:
    """``durable`` only if that is wanted and the server writes every command to its log before it answers.

    What is not as promised is logged as a warning. Raises ``UnavailableError`` when the server does not answer.
    """
    settings = await _settings(redis)
    if settings is None:
        log.warning("store_settings_unknown", reason="the server does not allow CONFIG GET", durability="fast")
        return "fast"
    if settings.get("maxmemory", "0") != "0" and settings.get("maxmemory-policy") != "noeviction":
        log.warning("store_may_evict", policy=settings.get("maxmemory-policy"), wanted="noeviction")
    is_durable = settings.get("appendonly") == "yes" and settings.get("appendfsync") == "always"
    if wanted == "durable" and not is_durable:
        log.warning(
            "store_is_not_durable",
            appendonly=settings.get("appendonly"),
            appendfsync=settings.get("appendfsync"),
            wanted="appendonly yes, appendfsync always",
            durability="fast",
        )
    if wanted == "durable" and is_durable and await _has_replicas(redis):
        # A failover could lose what a replica has not got yet, and we do not wait for replicas.
        log.warning("store_has_replicas", durability="fast")
        return "fast"
    return "durable" if wanted == "durable" and is_durable else "fast"


async def _has_replicas(redis: Redis) -> bool:
    with redis_failures():
        replication = await redis.info("replication")
    return int(replication.get("connected_slaves", 0)) > 0


async def _settings(redis: Redis) -> dict[str, str] | None:
    with redis_failures():
        try:
            given = await redis.config_get("append*", "maxmemory*")
        except ResponseError:
            return None
    return {_text(name): _text(value) for name, value in given.items()}


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""
