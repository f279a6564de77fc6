"""The one place that writes a filter, and it cannot write one without a tenant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from prefold.errors import InvalidInputError
from prefold.recall.names import turn_place

_NAMES: Final = ("user", "session", "incarnation")
_NARROWING: Final = (*_NAMES, "turns", "kinds", "keys", "not_session", "places")


@dataclass(frozen=True, slots=True)
class TurnRange:
    """Turns by number, both ends in."""

    first_seq: int
    last_seq: int
    below_revision: int | None = None
    """Only what an earlier revision of a turn left; None: any."""


Place = tuple[str, str, int]
"""Session, life and number of a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which turns a call may see or touch: a tenant's, or a part of them."""

    tenant: str
    user: str | None = None
    session: str | None = None
    incarnation: str | None = None
    turns: Sequence[TurnRange] | None = None
    """What lies in any of these ranges. Never empty: that would be nothing, and reads like everything."""
    kinds: Sequence[str] | None = None
    """Of derived texts: any of these. Never empty, as all that follow."""
    keys: Sequence[str] | None = None
    not_session: str | None = None
    """All but what came from this session."""
    places: frozenset[Place] | None = None
    """Any of these turns."""
    _is_narrowed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = [name for name in ("tenant", *_NARROWING) if getattr(self, name) is not None]
        for name in given:
            if not getattr(self, name):
                raise InvalidInputError(f"an empty {name} would not narrow the search", field=name)
        object.__setattr__(self, "_is_narrowed", len(given) > 1)

    def filter(self) -> dict[str, Any]:
        """Qdrant's filter. The tenant always stands first in ``must``."""
        must: list[dict[str, Any]] = [_is("tenant", self.tenant)]
        must += [_is(name, value) for name in _NAMES if (value := getattr(self, name)) is not None]
        must += [_any(key, values) for key, values in (("kind", self.kinds), ("key", self.keys)) if values is not None]
        if self.turns is not None:
            must.append({"should": [_within(turns) for turns in self.turns]})
        if self.places is not None:
            must.append(_any("place", [turn_place(*place) for place in sorted(self.places)]))
        return {"must": must, **({"must_not": [_is("session", self.not_session)]} if self.not_session else {})}

    def admits(self, payload: Mapping[str, Any]) -> bool:
        """True if a point of this payload belongs here: the check after the read."""
        return payload.get("tenant") == self.tenant and (not self._is_narrowed or self._has(payload))

    def _has(self, payload: Mapping[str, Any]) -> bool:
        get = payload.get
        return (
            (self.user is None or get("user") == self.user)
            and (self.session is None or get("session") == self.session)
            and (self.incarnation is None or get("incarnation") == self.incarnation)
            and (self.kinds is None or get("kind") in self.kinds)
            and (self.keys is None or get("key") in self.keys)
            and (self.turns is None or any(_has(turns, payload) for turns in self.turns))
            and (self.places is None or (get("session"), get("incarnation"), get("seq")) in self.places)
            and (self.not_session is None or get("session") != self.not_session)
        )


def _is(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "match": {"value": value}}


def _any(key: str, values: Sequence[str] | Sequence[int]) -> dict[str, Any]:
    return {"key": key, "match": {"any": list(values)}}


def _within(turns: TurnRange) -> dict[str, Any]:
    must = [{"key": "seq", "range": {"gte": turns.first_seq, "lte": turns.last_seq}}]
    if turns.below_revision is not None:
        must.append({"key": "revision", "range": {"lt": turns.below_revision}})
    return {"must": must}


def _has(turns: TurnRange, payload: Mapping[str, Any]) -> bool:
    is_earlier = turns.below_revision is None or payload["revision"] < turns.below_revision
    return bool(turns.first_seq <= payload["seq"] <= turns.last_seq and is_earlier)
