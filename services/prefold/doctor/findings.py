"""What the doctor finds: one line each."""

from collections.abc import Iterable
from dataclasses import dataclass

from prefold.storage.promises import Promise, State

__all__ = ["Finding", "found_by", "is_well"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    part: str
    """``sessions``, ``queue``, ``vectors``, ``model``, ``machine`` or ``work``, with the address of a server of a cluster."""
    name: str
    state: State
    found: str
    mend: str = ""
    """What to do about it."""


def found_by(part: str, promises: Iterable[Promise]) -> list[Finding]:
    """What the promises of a server look like."""
    return [Finding(part, one.name, one.state, one.found, one.mend) for one in promises]


def is_well(findings: Iterable[Finding]) -> bool:
    """True when everything is known to be as promised."""
    return all(one.state in ("ok", "note") for one in findings)
