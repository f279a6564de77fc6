"""What is known of users, in Redis. Rows are opaque bytes here: ``prefold.facts`` makes and reads them."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from prefold.errors import GoneError
from prefold.storage import limits
from prefold.storage.client import redis_failures
from prefold.storage.keys import UserKeys
from prefold.storage.lean import Lean
from prefold.storage.scripts import script

__all__ = ["ErasedUser", "Profile", "StoredUser", "Unindexed", "Users", "user_erased"]

_ENDS_MS = limits.milliseconds(limits.MEMORY_RETENTION)


@dataclass(frozen=True, slots=True)
class StoredUser:
    """All rows of a user. ``version`` 0: nothing was ever written."""

    version: int
    epoch: int
    """Raised by an erasure: a writer that began before it is refused."""
    rows: dict[str, bytes]
    suppressed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Profile:
    """The rendering of what is known of a user, to be shown as it is."""

    tokens: int
    """Raw tokens of ``text``."""
    text: str
    """One line a fact; empty: nothing is known."""
    holds_until_ms: int | None = None
    """From then on a line of it is out of date; None: only a write changes it."""
    yielded: int = 0
    """So many facts that it would show have no room within its cap."""

    def encode(self) -> bytes:
        """As it is stored: tokens, the time (0: none) and the text, with spaces between; empty for an empty one.

        ``400+41 0 …``: 41 facts yielded to the cap.
        """
        if not (self.text or self.yielded):
            return b""
        more = b"+%d" % self.yielded if self.yielded else b""
        return b"%d%b %d %b" % (self.tokens, more, self.holds_until_ms or 0, self.text.encode())

    @classmethod
    def decode(cls, stored: bytes | None) -> "Profile":
        """What ``encode`` made; an empty one of anything else."""
        head, _, rest = (stored or b"").partition(b" ")
        tokens, plus, yielded = head.partition(b"+")
        until, _, text = rest.partition(b" ")
        if not (tokens.isdigit() and until.isdigit() and (not plus or yielded.isdigit())):
            return cls(0, "")
        return cls(int(tokens), text.decode(errors="replace"), int(until) or None, int(yielded or 0))


@dataclass(frozen=True, slots=True)
class Unindexed:
    """Rows whose vectors are not as they are; a row that is gone needs its vector removed."""

    version: int
    """To be given back to ``mark_indexed``: what is written after it stays to be done."""
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ErasedUser:
    """What an erasure took out of Redis, and what a second look still found."""

    facts: int
    """Rows, history included."""
    sessions: tuple[str, ...]
    """Sessions that were noted as the user's: each has to be erased by itself."""
    keys_left: int
    """Keys of the user that still exist, the one with the epoch apart. 0, unless somebody began anew meanwhile."""


def user_erased() -> GoneError:
    """The user was erased after the writer began."""
    return GoneError("the user was erased meanwhile", code="user_erased")


class Users:
    """Users of all tenants. Every call raises ``UnavailableError`` or ``OverloadedError``."""

    def __init__(self, client: Redis, hot: Lean | None = None) -> None:
        self._client = client
        self._hot = hot

    async def snapshot(self, tenant: str, user: str) -> StoredUser:
        """Everything as it was at ``version`` or later, so that a write is refused unless it was at that very moment.

        A user whom nobody wrote of is an empty one. No transaction: one with a key that is not there is refused for as
        long as its slot of a cluster moves.
        """
        keys = UserKeys.of(tenant, user)
        epoch, version = await self.version(tenant, user)
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                pipe.hgetall(keys.facts)
                pipe.zrange(keys.suppressed, 0, -1)
                rows, suppressed = await pipe.execute()
        return StoredUser(
            version=version,
            epoch=epoch,
            rows={name.decode(errors="replace"): row for name, row in rows.items()},
            suppressed=frozenset(digest.decode(errors="replace") for digest in suppressed),
        )

    async def epoch(self, tenant: str, user: str) -> int:
        """The present epoch. Whoever reads turns first and writes facts later asks before the reading."""
        with redis_failures():
            found: Any = await self._client.hget(UserKeys.of(tenant, user).meta, "epoch")
        return int(found or 0)

    async def version(self, tenant: str, user: str) -> tuple[int, int]:
        """Epoch and version: as long as both stay, a snapshot is as it was."""
        with redis_failures():
            epoch, version = await self._client.hmget(UserKeys.of(tenant, user).meta, ("epoch", "version"))
        return int(epoch or 0), int(version or 0)

    async def erased_at_ms(self, tenant: str, user: str) -> int:
        """When the user was erased last, wall clock; 0: never, or longer ago than the mark is kept."""
        with redis_failures():
            found: Any = await self._client.hget(UserKeys.of(tenant, user).meta, "erased")
        return int(found or 0)

    async def write(
        self,
        tenant: str,
        user: str,
        *,
        expected_version: int,
        epoch: int,
        put: Mapping[str, bytes],
        drop: Sequence[str],
        profile: bytes,
        suppress: Sequence[str] = (),
        lift: Sequence[str] = (),
        unindexed: Sequence[str] = (),
        forgets: bool = False,
    ) -> bool:
        """Puts and drops rows, all or none; False: somebody wrote since ``expected_version``, look again.

        ``lift`` takes digests out of the suppressed ones. ``forgets``: the write takes something away, so it is done
        even when the store is full. ``GoneError`` (user_erased): the user was erased since ``epoch``. A write whose
        reply was lost and that is sent again is refused as another's; whoever looks again sees it done.
        """
        args: list[str | bytes | int] = [expected_version, epoch, _ENDS_MS, profile, len(put)]
        for name, row in put.items():
            args += (name, row)
        for names in (drop, suppress, lift, unindexed):
            args += (len(names), *names)
        verdict = await self._run("forget_user_rows" if forgets else "write_user", tenant, user, args)
        if verdict == -1:
            raise user_erased()
        return bool(verdict)

    @staticmethod
    def profile_command(tenant: str, user: str) -> tuple[str, str]:
        """What reads the profile: for a caller who sends it together with others. ``Profile.decode`` reads the reply."""
        return "GET", UserKeys.of(tenant, user).profile

    async def read_profile(self, tenant: str, user: str) -> Profile:
        """The profile as it was last written: one GET. See ``Profile.holds_until_ms``."""
        command = self.profile_command(tenant, user)
        with redis_failures():
            stored: Any = await (self._hot.execute(command) if self._hot else self._client.get(command[1]))
        return Profile.decode(stored)

    async def sessions(self, tenant: str, user: str) -> list[str]:
        """Sessions that were noted as the user's, the oldest note first; some may be gone by now."""
        with redis_failures():
            names: Any = await self._client.zrange(UserKeys.of(tenant, user).sessions, 0, -1)
        return [name.decode() for name in names]

    async def note_session(self, tenant: str, user: str, session: str) -> None:
        """Notes that the session is the user's. Twice is harmless; the first note's time stays."""
        key = UserKeys.of(tenant, user).sessions
        with redis_failures():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.zadd(key, {session: time.time_ns() // 1_000_000}, nx=True)
                pipe.pexpire(key, _ENDS_MS)
                await pipe.execute()

    async def drop_session(self, tenant: str, user: str, session: str) -> None:
        """Takes the note back: nothing of the session is left anywhere. Twice is harmless."""
        with redis_failures():
            await self._client.zrem(UserKeys.of(tenant, user).sessions, session)

    async def take_unindexed(self, tenant: str, user: str, limit: int = 100) -> Unindexed:
        """Rows whose vectors have to be made or removed, the longest waiting first. They stay so until they are marked."""
        _, version = await self.version(tenant, user)
        with redis_failures():
            ids: Any = await self._client.zrange(UserKeys.of(tenant, user).unindexed, 0, limit - 1)
        return Unindexed(version, tuple(name.decode() for name in ids))

    async def mark_indexed(self, tenant: str, user: str, ids: Iterable[str], version: int) -> int:
        """The rows' vectors are as the rows were at ``version``: how many are done; others were written since."""
        return int(await self._run("mark_user_indexed", tenant, user, [version, *ids]))

    async def erase(self, tenant: str, user: str) -> ErasedUser:
        """Removes what is known of the user and the list of their sessions, not these themselves. Twice is harmless."""
        keys = UserKeys.of(tenant, user)
        now_ms = time.time_ns() // 1_000_000
        facts, *sessions = await self._run("erase_user", tenant, user, [now_ms, _ENDS_MS])
        with redis_failures():
            left: int = await self._client.exists(*(key for key in keys.script_keys() if key != keys.meta))
        return ErasedUser(facts, tuple(name.decode() for name in sessions), left)

    async def _run(self, name: str, tenant: str, user: str, args: Sequence[str | bytes | int]) -> Any:
        with redis_failures():
            return await script(name).run(self._client, UserKeys.of(tenant, user).script_keys(), args)
