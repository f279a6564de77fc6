"""How far a session is embedded, and what changes of its turns left to be done again."""

from collections.abc import Sequence
from typing import Any, cast

from redis.asyncio import Redis

from prefold.storage.client import redis_failures
from prefold.storage.embed_types import EmbedDebt, MarkOutcome, Purge
from prefold.storage.keys import SessionKeys
from prefold.storage.log import stored_turn
from prefold.storage.nodes import on_node_of
from prefold.storage.state import SessionState
from prefold.storage.types import SessionRef, StoredTurn

__all__ = ["mark_args", "parse_mark", "read_debt", "read_turn"]

_DEBT_FIELDS = ("state", "user", "embedded", "redo", "purge")


async def read_debt(client: Redis, ref: SessionRef, collection: str, now_ms: int | None) -> EmbedDebt | None:
    """One look; None: this life of the session is over. ``now_ms`` replaces the server's clock."""
    keys = SessionKeys.of(ref.tenant, ref.session)
    with redis_failures():
        packed, user, embedded, redo, purges = await cast("Any", client.hmget(keys.meta, _DEBT_FIELDS))
        now_ms = await _clock(client, keys.meta) if purges and now_ms is None else now_ms
    state = SessionState.unpack(packed) if packed else None
    if state is None or state.incarnation != ref.incarnation:
        return None
    return EmbedDebt(
        head_seq=state.head,
        embedded_to=_marks(embedded or b"").get(collection, 0),
        user=(user or b"").decode(),
        changes=state.chg,
        redo=tuple(map(int, (redo or b"").split())),
        purges=tuple(_purge(word) for word in (purges or b"").decode().split()),
        read_at_ms=now_ms or 0,
    )


async def read_turn(client: Redis, ref: SessionRef, seq: int) -> StoredTurn | None:
    """The turn of this life as it stands now; None: it was taken back, or this life is over."""
    keys = SessionKeys.of(ref.tenant, ref.session)
    with redis_failures():
        async with client.pipeline(transaction=True) as pipe:
            pipe.hget(keys.meta, "incarnation")
            pipe.xrange(keys.turns, min=f"{seq}-0", max=f"{seq}-0", count=1)
            incarnation, entries = await pipe.execute()
    if incarnation is None or incarnation.decode() != ref.incarnation or not entries:
        return None
    return stored_turn(*entries[0])


def mark_args(
    ref: SessionRef,
    upto_seq: int,
    collection: str,
    *,
    grace_ms: int,
    changes: int | None,
    redone: Sequence[int],
    purged: Sequence[Purge],
) -> list[str | int]:
    """Arguments of ``mark_embedded`` after the clock and the label."""
    expected = "" if changes is None else changes
    entries = [f"{purge.first_seq}-{purge.last_seq}@{purge.asked_at_ms}" for purge in purged]
    return [ref.incarnation, upto_seq, collection, grace_ms, expected, *redone, *entries]


def parse_mark(reply: Any) -> MarkOutcome:
    """What the script answered."""
    return cast("MarkOutcome", reply.decode())


def _marks(stored: bytes) -> dict[str, int]:
    """Seq by collection: ``12 turns_a_4 40 turns_b_4``."""
    words = stored.decode().split()
    return {name: int(seq) for seq, name in zip(words[::2], words[1::2], strict=True)}


async def _clock(client: Redis, key: str) -> int:
    seconds, micros = await cast("Any", client).execute_command("TIME", **on_node_of(client, key))
    return int(seconds) * 1000 + int(micros) // 1000


def _purge(word: str) -> Purge:
    turns, asked_at_ms = word.split("@")
    first, last = turns.split("-")
    return Purge(int(first), int(last), int(asked_at_ms))
