"""Quotas without a round trip for each request: credits are leased in batches and spent here.

A process asks for the next batch while it spends the last one, and may meanwhile spend up to a batch that nobody granted
yet: that is counted with the next lease. So with G processes a tenant gets, in any span of T seconds, at most
``rate * (T + 2) + G * (2 * batch + one request)`` turns, and of a day's tokens at most the limit and ``G * (batch + one
request)``; in the long run what the quota says, for what was too much is owed. Batches are half a second's turns, and a
two hundredth of a day's tokens (at most 200,000).

Where the counts cannot be reached, each process alone grants itself the rate, so appends go on: a quota is there to
share, not to bill by. Tokens spent meanwhile are counted afterwards.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import structlog
from redis.exceptions import RedisError

from prefold.access import UNLIMITED, Allowance, Allowances
from prefold.errors import PrefoldError
from prefold.quotas.errors import QuotaError
from prefold.quotas.live import LiveSessions
from prefold.quotas.purse import Purse
from prefold.storage.quotas import Leased, Owed, QuotaCounts
from prefold.telemetry.metrics import QUOTA_REFUSALS

__all__ = ["Quotas", "TenantLease"]

log = structlog.get_logger(__name__)

BURST_SECONDS: Final = 2
BATCH_SECONDS: Final = 0.5
_LASTS_SECONDS: Final = 2.0
"""Turns left over longer than that have come back to the others meanwhile."""
_DAY_PARTS: Final = 200
_MOST_TOKENS: Final = 200_000
_ANSWER_SECONDS: Final = 1.0
_ALONE_SECONDS: Final = 0.5
"""Until the counts are asked again that did not answer."""
_FULL_RETRY_SECONDS: Final = 60.0
_NEVER_SECONDS: Final = 3600.0
"""When to come back to a quota of nothing: it may have been changed."""

_AWAY: Final = (PrefoldError, RedisError, TimeoutError)
"""Whatever keeps us from counting: a server that is away, or one that refuses (its ACL, a key of another type)."""

Clock = Callable[[], float]


class Quotas:
    """The tenants' leases of one process. ``allowances`` is asked for each request, and must be cheap."""

    def __init__(
        self, counts: QuotaCounts, allowances: Callable[[], Allowances], *, clock: Clock = time.monotonic
    ) -> None:
        self._counts = counts
        self._allowances = allowances
        self._clock = clock
        self._leases: dict[str, TenantLease] = {}
        self._live = LiveSessions()

    def of(self, tenant: str) -> "TenantLease | None":
        """What the tenant spends from; None: it has no quota."""
        allowance = self._allowances().of(tenant)
        if allowance is UNLIMITED:
            return None
        lease = self._leases.get(tenant)
        if lease is None or (lease.allowance is not allowance and lease.allowance != allowance):
            lease = self._leases[tenant] = TenantLease(tenant, allowance, self._counts, self._live, self._clock)
        return lease

    async def forget_session(self, tenant: str, session: str) -> None:
        """The session is erased: it is counted no more. Never raises; what could not be told ends with its retention."""
        self._live.forget(tenant, session)
        try:
            await self._counts.forget_session(tenant, session)
        except _AWAY as error:
            log.warning("quota_counts_away", tenant=tenant, error=type(error).__qualname__)

    async def close(self) -> None:
        """Gives back what was leased and not spent."""
        leases, self._leases = list(self._leases.values()), {}
        await asyncio.gather(*(lease.give_back() for lease in leases))


class TenantLease:
    """What one tenant may spend here."""

    def __init__(
        self, tenant: str, allowance: Allowance, counts: QuotaCounts, live: LiveSessions, clock: Clock
    ) -> None:
        self.allowance = allowance
        self._live = live
        self._tenant = tenant
        self._counts = counts
        self._clock = clock
        self._rate = allowance.turns_per_second or None
        limit = allowance.tokens_per_day
        self._turns = None if self._rate is None else Purse(max(1, int(self._rate * BATCH_SECONDS)))
        self._tokens = None if not limit else Purse(max(1, min(limit // _DAY_PARTS, _MOST_TOKENS)))
        self._purses = [purse for purse in (self._turns, self._tokens) if purse is not None]
        self._leasing: asyncio.Task[None] | None = None
        self._is_known = self._turns is None and self._tokens is None
        self._is_alone = False
        """The counts did not answer."""
        self._ask_again = 0.0

    def check(self) -> None:
        """Raises ``QuotaError`` where nothing may be spent now. Costs nothing but a look at a clock."""
        allowance, now = self.allowance, self._clock()
        if (wait := _wait(allowance.turns_per_second, self._turns, now)) > 0:
            said = f"the tenant may append {allowance.turns_per_second:g} turns a second"
            raise _refused("turns_per_second", said, wait)
        if (wait := _wait(allowance.tokens_per_day, self._tokens, now)) > 0:
            said = f"the tenant may append {allowance.tokens_per_day} tokens a day"
            raise _refused("tokens_per_day", said, wait)

    def is_spent(self) -> bool:
        """Whether ``check`` would raise."""
        now, allowance = self._clock(), self.allowance
        return bool(
            _wait(allowance.turns_per_second, self._turns, now) or _wait(allowance.tokens_per_day, self._tokens, now)
        )

    async def take(self, turns: int, tokens: int) -> None:
        """Spends them. Raises ``QuotaError``; whoever is let in may take more than is left, and the others wait for it.

        Waits for the counts only at the tenant's first request, and while a whole batch is spent that is not granted yet.
        """
        self.check()
        while not self._is_known or any(purse.is_deep for purse in self._purses):
            await asyncio.shield(self._lease())
            self.check()
        self._spend(turns, tokens, self._clock())

    def take_now(self, session: str, turns: int, tokens: int) -> bool:
        """The same and ``admit``, where nothing has to be asked; False: nothing was spent, whatever the reason."""
        now = self._clock()
        is_seen = self.allowance.sessions is None or self._live.has(self._tenant, session, now)
        if not is_seen or not self._is_known or self.is_spent() or any(purse.is_deep for purse in self._purses):
            return False
        self._spend(turns, tokens, now)
        return True

    async def take_for(self, session: str, turns: int, tokens: int, exists: Callable[[], Awaitable[bool]]) -> None:
        """``take`` and ``admit``; where the session is not let in, nothing was spent."""
        await self.take(turns, tokens)
        try:
            await self.admit(session, exists)
        except QuotaError:
            self.put_back(turns, tokens)
            raise

    def put_back(self, turns: int, tokens: int) -> None:
        """What was taken for turns that were not stored."""
        for purse, spent in ((self._turns, turns), (self._tokens, tokens)):
            if purse is not None:
                purse.credits += spent

    async def admit(self, session: str, exists: Callable[[], Awaitable[bool]], *, is_new: bool = False) -> None:
        """Counts the session as live. Raises ``QuotaError`` where it is not stored yet and there are as many as may be.

        Asks the counts only for a session that was not seen here for half a day, and for one that ``is_new`` at any rate.
        """
        limit, now = self.allowance.sessions, self._clock()
        if limit is None or (not is_new and self._live.has(self._tenant, session, now)):
            return
        try:
            is_admitted = await self._counts.admit_session(self._tenant, session, limit)
            if not is_admitted:
                if not await exists():
                    raise _refused("sessions", f"the tenant may have {limit} sessions", _FULL_RETRY_SECONDS)
                await self._counts.admit_session(self._tenant, session, None)
        except QuotaError:
            raise
        except _AWAY as error:
            self._tell_away(type(error).__qualname__)
            return
        self._tell_back()
        self._live.note(self._tenant, session, now)

    async def recount(self, session: str, exists: Callable[[], Awaitable[bool]]) -> None:
        """What ``admit`` let in was refused by the store: it is counted only if it is stored. Never raises."""
        if self.allowance.sessions is None:
            return
        try:
            if not await exists():
                self._live.forget(self._tenant, session)
                await self._counts.forget_session(self._tenant, session)
        except _AWAY as error:
            self._tell_away(type(error).__qualname__)

    def _spend(self, turns: int, tokens: int, now: float) -> None:
        for purse, spent in ((self._turns, turns), (self._tokens, tokens)):
            if purse is not None:
                purse.credits -= spent
        if now >= self._ask_again and any(purse.is_low(now) for purse in self._purses):
            self._lease()

    async def give_back(self) -> None:
        """What was leased and not spent is the others' again. Never raises."""
        if self._leasing is not None:
            await asyncio.wait([self._leasing])
        if any(purse.credits for purse in self._purses):
            owed = [None if purse is None else -purse.credits for purse in (self._turns, self._tokens)]
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._ask(Owed(owed[0] or 0, 0), Owed(owed[1] or 0, 0))
            except _AWAY:
                return

    def _lease(self) -> "asyncio.Task[None]":
        """Asks for more, once for all who need it."""
        if self._leasing is None or self._leasing.done():
            self._leasing = asyncio.create_task(self._lease_now())
        return self._leasing

    async def _lease_now(self) -> None:
        turns, tokens = (_owed(purse) for purse in (self._turns, self._tokens))
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                leased = await self._ask(turns, tokens)
        except _AWAY as error:
            self._go_alone(type(error).__qualname__)
        else:
            self._fill(leased, turns, tokens)
        self._is_known = True

    async def _ask(self, turns: Owed, tokens: Owed) -> Leased:
        rate, limit = self._rate, self.allowance.tokens_per_day or None
        burst = max(1.0, BURST_SECONDS * (rate or 0.0))
        return await self._counts.lease(
            self._tenant, rate=rate, burst=burst, turns=turns, day_limit=limit, tokens=tokens
        )

    def _fill(self, leased: Leased, turns: Owed, tokens: Owed) -> None:
        self._ask_again = 0.0
        self._tell_back()
        now, day_left = self._clock(), leased.day_left_ms / 1000
        if self._turns is not None:
            wait = leased.turns_wait_ms / 1000
            self._turns.fill(turns.used, leased.turns, now=now, lasts=_LASTS_SECONDS, wait=wait)
        if self._tokens is not None:
            self._tokens.fill(tokens.used, leased.tokens, now=now, lasts=day_left, wait=day_left)

    def _tell_away(self, why: str) -> None:
        """Once, until they answer again."""
        if not self._is_alone:
            self._is_alone = True
            log.warning("quota_counts_away", tenant=self._tenant, error=why)

    def _tell_back(self) -> None:
        if self._is_alone:
            self._is_alone = False
            log.info("quota_counts_back", tenant=self._tenant)

    def _go_alone(self, why: str) -> None:
        """A batch of turns for as long as they last at the rate; tokens stay owed."""
        self._tell_away(why)
        now = self._clock()
        self._ask_again = now + _ALONE_SECONDS
        if self._turns is not None and self._rate is not None:
            self._turns.fill_alone(self._rate, now)
        if self._tokens is not None:
            self._tokens.let_through()


def _refused(quota: str, detail: str, seconds: float) -> QuotaError:
    QUOTA_REFUSALS.labels(quota).inc()
    return QuotaError(quota, detail, timedelta(seconds=seconds))


def _wait(limit: float | None, purse: Purse | None, now: float) -> float:
    if limit == 0:
        return _NEVER_SECONDS
    return 0.0 if purse is None else purse.seconds_to_wait(now)


def _owed(purse: Purse | None) -> Owed:
    return Owed(0, 0) if purse is None else Owed(purse.debt, purse.wanted)
