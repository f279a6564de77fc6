"""Dead letters of the ingest streams: entries that can never be applied, each with the reason, bounded in number and age.

A letter keeps its entry as it was published, so that it can be replayed, unless keeping it would keep what somebody had
erased. ``IngestLetter`` itself holds no word of it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import orjson
from redis.asyncio import Redis

from prefold.storage import limits
from prefold.storage.client import redis_failures
from prefold.storage.ingest import is_wrong_type
from prefold.storage.keys import TenantKeys, tenant_of
from prefold.storage.scripts import script

__all__ = ["IngestLetter", "IngestLetters", "Refusal"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an entry cannot be applied. Without words of its turn."""

    reason: str
    """The code of the error."""
    field: str
    """The place in the entry, or empty."""
    size_bytes: int
    """Of the entry."""
    version: str
    """Of the Prefold that refused it."""


@dataclass(frozen=True, slots=True)
class IngestLetter:
    """One entry that was set aside."""

    at_ms: int
    tenant: str
    session: str
    """Empty when the entry named none that could be one."""
    entry_id: str
    refusal: Refusal
    has_text: bool
    """False: the entry itself was not kept, so it cannot be replayed."""
    kind: Literal["ingest"] = "ingest"

    @property
    def name(self) -> str:
        """In the store."""
        return f"{self.entry_id} {self.session}"


class IngestLetters:
    """Those of all tenants. Every call may raise ``UnavailableError``."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def set_aside(
        self, tenant: str, entry_id: str, session: str, refusal: Refusal, *, keep_text: bool
    ) -> int | None:
        """Moves the entry here; how many of the oldest letters were given up for it. None: the entry is gone, no letter."""
        bounds = (limits.milliseconds(limits.LETTERS_KEPT), limits.INGEST_LETTERS, limits.INGEST_LETTER_BYTES)
        why = orjson.dumps(asdict(refusal))
        done = await self._run("refuse_ingest", tenant, [entry_id, session, why, int(keep_text), *bounds])
        return None if done < 0 else int(done)

    async def tenants(self) -> list[str]:
        """Tenants with letters."""
        with redis_failures():
            found = {key async for key in self._client.scan_iter(match=TenantKeys.with_letters(), count=1_000)}
        return sorted(tenant_of(key.decode()) for key in found)

    async def letters(self, tenant: str | None = None, session: str | None = None) -> list[IngestLetter]:
        """All letters, or those of a tenant, a session; the oldest first.

        A tenant whose keys are of another type, by its own hand, has none.
        """
        tenants = await self.tenants() if tenant is None else [tenant]
        found = [letter for one in tenants for letter in await self._of(one)]
        return sorted(
            (one for one in found if session in (None, one.session)), key=lambda one: (one.at_ms, one.entry_id)
        )

    async def replay(self, letter: IngestLetter) -> bool:
        """Publishes the entry again, behind all others; False: the letter is gone, or has no text. Twice is harmless."""
        return await self._run("replay_ingest", letter.tenant, [letter.name]) not in (b"gone", b"no_text")

    async def remove(self, letter: IngestLetter) -> bool:
        """The letter goes, its entry too; False: it was gone."""
        return bool(await self._run("forget_letters", letter.tenant, ["one", letter.name]))

    async def erase(self, tenant: str, session: str, *, before_ms: int | None = None) -> int:
        """Removes the letters of the session, or those set aside up to ``before_ms``; how many they were."""
        if before_ms is not None:
            old = [one for one in await self.letters(tenant, session) if one.at_ms <= before_ms]
            return sum([await self.remove(one) for one in old])
        return int(await self._run("forget_letters", tenant, ["session", session]))

    async def end_old(self, tenant: str) -> int:
        """Removes those whose time is over; how many they were."""
        return int(await self._run("forget_letters", tenant, ["older", limits.milliseconds(limits.LETTERS_KEPT)]))

    async def count(self, tenant: str, session: str) -> int:
        """Letters of the session."""
        return len(await self.letters(tenant, session))

    async def number(self, tenants: Sequence[str]) -> int:
        """Letters of these tenants, for whoever watches."""
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for tenant in tenants:
                    pipe.zcard(TenantKeys.of(tenant).letter_keys()[1])
                counts = await pipe.execute(raise_on_error=False) if tenants else []
            return sum(int(_known(one)) for one in counts if not is_wrong_type(one))

    async def _of(self, tenant: str) -> list[IngestLetter]:
        _, dead, why, text = TenantKeys.of(tenant).letter_keys()
        with redis_failures():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.zrange(dead, 0, -1, withscores=True)
                pipe.hgetall(why)
                pipe.hkeys(text)
                found = await pipe.execute(raise_on_error=False)
            if any(map(is_wrong_type, found)):
                return []
            names, reasons, kept = map(_known, found)
        texts = set(kept)
        return [_letter(tenant, name, int(at), reasons[name], name in texts) for name, at in names]

    async def _run(self, name: str, tenant: str, args: Sequence[str | bytes | int]) -> Any:
        with redis_failures():
            return await script(name).run(self._client, TenantKeys.of(tenant).letter_keys(), args)


def _known(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply


_KNOWN = {field.name for field in fields(Refusal)}


def _letter(tenant: str, name: bytes, at_ms: int, why: bytes, has_text: bool) -> IngestLetter:
    entry_id, _, session = name.decode().partition(" ")
    refusal = Refusal(**{name: value for name, value in orjson.loads(why).items() if name in _KNOWN})
    return IngestLetter(at_ms, tenant, session, entry_id, refusal, has_text)
