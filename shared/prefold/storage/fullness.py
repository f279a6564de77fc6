"""How near to their limits sessions are, many of them in one look."""

from collections.abc import Sequence
from dataclasses import dataclass

from redis.asyncio import Redis

from prefold.storage.client import redis_failures
from prefold.storage.keys import SessionKeys
from prefold.storage.routing import check_reach
from prefold.storage.state import SessionState

__all__ = ["Fullness", "fullness_of"]


@dataclass(frozen=True, slots=True)
class Fullness:
    """Of one session, as it stands."""

    tenant: str
    session: str
    tokens: int
    """Served tokens of its context."""
    hard_limit_tokens: int
    has_standby: bool
    is_degraded: bool
    limit_crossings: int
    """How often an append passed the hard limit so far."""
    ready_crossings: int
    """How many of them found a standby ready."""

    @property
    def share(self) -> float:
        """Of the limit that is used."""
        return self.tokens / self.hard_limit_tokens


async def fullness_of(client: Redis, sessions: Sequence[tuple[str, str]]) -> list[Fullness]:
    """Of those ``(tenant, session)`` that live: one field each, in one round trip. Raises ``UnavailableError``."""
    with redis_failures():
        async with client.pipeline(transaction=False) as pipe:
            for tenant, session in sessions:
                pipe.hget(SessionKeys.of(tenant, session).meta, "state")
            replies = await pipe.execute(raise_on_error=False)
        check_reach(replies)
    return [
        _fullness(tenant, session, SessionState.unpack(packed))
        for (tenant, session), packed in zip(sessions, replies, strict=True)
        if isinstance(packed, bytes)
    ]


def _fullness(tenant: str, session: str, state: SessionState) -> Fullness:
    return Fullness(
        tenant=tenant,
        session=session,
        tokens=state.served(state.tok + state.fix),
        hard_limit_tokens=state.hard,
        has_standby=bool(state.nx),
        is_degraded=bool(state.deg),
        limit_crossings=state.cross,
        ready_crossings=state.ready,
    )
