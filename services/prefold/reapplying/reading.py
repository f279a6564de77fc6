"""Which erasures an audit log tells of, since a time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from prefold.audit import AuditEntry, BrokenLine, read_audit

__all__ = ["Erasure", "Found", "erasures_since", "time_of"]

Kind = Literal["session", "user", "turn", "fact"]

_SUBJECTS: Final[Mapping[str, tuple[Kind, tuple[str, ...]]]] = {
    "session_erased": ("session", ("session",)),
    "user_erased": ("user", ("user",)),
    "turn_removed": ("turn", ("session", "turn")),
    "fact_deleted": ("fact", ("user", "fact")),
}
"""Action → what it removed, and the members of its subject that name it."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """Something that a tenant had removed."""

    kind: Kind
    tenant: str
    names: tuple[str, ...]
    """As they stand in the path of the call: a session; a user; a session and a turn's id; a user and a fact's id."""
    at: datetime
    """When it was removed last."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the files tell."""

    erasures: tuple[Erasure, ...]
    """Each once, in the order of time."""
    earlier: int
    """Entries from before: the backup knows of them."""
    entries: int
    """Of any kind. None at all: these are not the audit logs, or nothing of them was kept."""
    broken: tuple[str, ...]
    """``FILE:LINE`` of what is no entry, or names nothing: an erasure may have stood there."""


def time_of(text: str) -> datetime:
    """A time in ISO 8601 with its zone. ``ValueError`` for anything else."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time such as 2026-11-30T10:00:00Z") from None
    if at.tzinfo is None:
        raise ValueError("the time must name its zone, as 2026-11-30T10:00:00Z")
    return at.astimezone(UTC)


def erasures_since(paths: Iterable[Path], since: datetime | None) -> Found:
    """What was erased at ``since`` or later (None: ever), from logs of one or several gateways. Raises ``OSError``."""
    latest: dict[tuple[Kind, str, tuple[str, ...]], Erasure] = {}
    broken: list[str] = []
    earlier = entries = 0
    for path in paths:
        for number, entry in enumerate(read_audit(path), 1):
            if isinstance(entry, BrokenLine):
                broken.append(f"{path}:{entry.number}")
                continue
            entries += 1
            if entry.action not in _SUBJECTS:
                continue
            erasure = _erasure(entry)
            if erasure is None:
                broken.append(f"{path}: entry {number}")
            elif since is not None and erasure.at < since:
                earlier += 1
            else:
                key = (erasure.kind, erasure.tenant, erasure.names)
                latest[key] = max(latest.get(key, erasure), erasure, key=lambda one: one.at)
    return Found(tuple(sorted(latest.values(), key=lambda one: one.at)), earlier, entries, tuple(broken))


def _erasure(entry: AuditEntry) -> Erasure | None:
    kind, members = _SUBJECTS[entry.action]
    names = tuple(entry.subject.get(member, "") for member in members)
    try:
        at = time_of(entry.at)
    except ValueError:
        return None
    return Erasure(kind, entry.tenant, names, at) if all((*names, entry.tenant)) else None
