"""The one place that writes a filter, and it cannot write one without a tenant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefold.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class TurnRange:
    """Turns by number, both ends in."""

    first_seq: int
    last_seq: int
    below_revision: int | None = None
    """Only what an earlier revision of a turn left; None: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which turns a call may see or touch: a tenant's, or a part of them."""

    tenant: str
    user: str | None = None
    session: str | None = None
    incarnation: str | None = None
    turns: Sequence[TurnRange] | None = None
    """What lies in any of these ranges. Never empty: that would be nothing, and reads like everything."""

    def __post_init__(self) -> None:
        for name in ("tenant", "user", "session", "incarnation", "turns"):
            value = getattr(self, name)
            if value is not None and not value:
                raise InvalidInputError(f"an empty {name} would not narrow the search", field=name)

    def filter(self) -> dict[str, Any]:
        """Qdrant's filter. The tenant always stands first in ``must``."""
        narrower = {name: getattr(self, name) for name in ("user", "session", "incarnation")}
        must: list[dict[str, Any]] = [
            _is("tenant", self.tenant),
            *(_is(name, value) for name, value in narrower.items() if value is not None),
        ]
        if self.turns is not None:
            must.append({"should": [_within(turns) for turns in self.turns]})
        return {"must": must}

    def admits(self, payload: Mapping[str, Any]) -> bool:
        """True if a point of this payload belongs here: the check after the read."""
        wanted = {name: getattr(self, name) for name in ("tenant", "user", "session", "incarnation")}
        is_within = self.turns is None or any(_has(turns, payload) for turns in self.turns)
        is_ours = all(value is None or payload.get(name) == value for name, value in wanted.items())
        return is_ours and is_within


def _is(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "match": {"value": value}}


def _within(turns: TurnRange) -> dict[str, Any]:
    must = [{"key": "seq", "range": {"gte": turns.first_seq, "lte": turns.last_seq}}]
    if turns.below_revision is not None:
        must.append({"key": "revision", "range": {"lt": turns.below_revision}})
    return {"must": must}


def _has(turns: TurnRange, payload: Mapping[str, Any]) -> bool:
    is_earlier = turns.below_revision is None or payload["revision"] < turns.below_revision
    return bool(turns.first_seq <= payload["seq"] <= turns.last_seq and is_earlier)
