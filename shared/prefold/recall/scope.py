"""The one place that writes a filter, and it cannot write one without a tenant."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefold.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which turns a call may see or touch: a tenant's, or a part of them."""

    tenant: str
    user: str | None = None
    session: str | None = None
    incarnation: str | None = None
    other_than: str | None = None
    """A life to leave out."""
    first_seq: int | None = None
    last_seq: int | None = None

    def __post_init__(self) -> None:
        for name in ("tenant", "user", "session", "incarnation", "other_than"):
            if getattr(self, name) == "":
                raise InvalidInputError(f"an empty {name} would not narrow the search", field=name)

    def filter(self) -> dict[str, Any]:
        """Qdrant's filter. The tenant always stands first in ``must``."""
        narrower = {name: getattr(self, name) for name in ("user", "session", "incarnation")}
        must: list[dict[str, Any]] = [
            _is("tenant", self.tenant),
            *(_is(name, value) for name, value in narrower.items() if value is not None),
        ]
        bounds = {"gte": self.first_seq, "lte": self.last_seq}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        if given:
            must.append({"key": "seq", "range": given})
        spared = [] if self.other_than is None else [_is("incarnation", self.other_than)]
        return {"must": must, **({"must_not": spared} if spared else {})}

    def admits(self, payload: Mapping[str, Any]) -> bool:
        """True if a point of this payload belongs here: the check after the read."""
        wanted = {name: getattr(self, name) for name in ("tenant", "user", "session", "incarnation")}
        is_spared = self.other_than is not None and payload.get("incarnation") == self.other_than
        return not is_spared and all(value is None or payload.get(name) == value for name, value in wanted.items())


def _is(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "match": {"value": value}}
