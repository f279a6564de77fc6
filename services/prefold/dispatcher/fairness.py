"""Whose work goes first: tenants take turns, and one that asks for little does not stand behind one that asks for much."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Protocol, TypeVar

from prefold.storage.types import SessionRef

__all__ = ["OfTenant", "Shares", "in_turn", "tenant_of"]


class OfTenant(Protocol):
    """Work for one session."""

    @property
    def ref(self) -> SessionRef: ...


T = TypeVar("T", bound=OfTenant)

_FORGOTTEN_BELOW = 0.5


def tenant_of(piece: OfTenant) -> str:
    """Whose it is."""
    return piece.ref.tenant


def in_turn(pieces: Sequence[T]) -> list[T]:
    """The pieces with one of each tenant at a time, in the order of each; tenants in the order of their first."""
    by_tenant: defaultdict[str, list[T]] = defaultdict(list)
    for piece in pieces:
        by_tenant[piece.ref.tenant].append(piece)
    if len(by_tenant) <= 1:
        return list(pieces)
    return [piece for turn in zip_longest(*by_tenant.values()) for piece in turn if piece is not None]


@dataclass(slots=True)
class Shares:
    """How much each tenant has asked for lately; what is ``half_life_ms`` old counts half.

    In memory only: after a restart everybody is new.
    """

    half_life_ms: int = 30_000
    _asked: dict[str, float] = field(default_factory=dict)
    _since_ms: int = 0

    def note(self, amounts: Iterable[tuple[str, int]], now_ms: int) -> None:
        """Adds what tenants ask for now."""
        self._fade(now_ms)
        for tenant, amount in amounts:
            self._asked[tenant] = self._asked.get(tenant, 0.0) + amount

    def modest(self, tenants: Iterable[str], now_ms: int) -> frozenset[str]:
        """Those of them that asked for less than half of what tenants ask for on average.

        So their work together is less than half of all, and whoever has to wait for it still gets the other half.
        """
        self._fade(now_ms)
        bound = sum(self._asked.values()) / max(1, len(self._asked)) / 2
        return frozenset(tenant for tenant in tenants if self._asked.get(tenant, 0.0) < bound)

    def __len__(self) -> int:
        return len(self._asked)

    def __iter__(self) -> Iterator[str]:
        return iter(self._asked)

    def _fade(self, now_ms: int) -> None:
        """Not at each call: a hundredth of the half-life is near enough."""
        passed = now_ms - self._since_ms
        if passed < self.half_life_ms // 100:
            return
        self._since_ms = now_ms
        left = 0.5 ** (passed / self.half_life_ms)
        faded = ((tenant, asked * left) for tenant, asked in self._asked.items())
        self._asked = {tenant: asked for tenant, asked in faded if asked >= _FORGOTTEN_BELOW}
