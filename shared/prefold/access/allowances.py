"""How much a tenant may use, as the key file says it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from prefold.conversation.ids import check_name
from prefold.errors import ConfigurationError, InvalidInputError

EVERYBODY: Final = "*"
"""In place of a tenant's name: whoever has no entry of that quota."""

_MOST: Final[Mapping[str, tuple[type, float]]] = MappingProxyType(
    {
        "turns_per_second": (float, 1e6),
        "sessions": (int, 1e9),
        "tokens_per_day": (int, 1e15),
        "builds_per_hour": (int, 1e9),
    }
)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one tenant may use. None: no limit; 0: nothing at all."""

    turns_per_second: float | None = None
    """Appended turns; for two seconds' worth at once."""
    sessions: int | None = None
    """Stored at a time: neither erased nor past their retention."""
    tokens_per_day: int | None = None
    """Appended, as they were counted here, in a day of UTC."""
    builds_per_hour: int | None = None
    """Summaries begun, in an hour of UTC."""


UNLIMITED: Final = Allowance()
"""Whoever has no limit has this very object."""


@dataclass(frozen=True, slots=True)
class Allowances:
    """Of all tenants."""

    of_tenants: Mapping[str, Allowance] = field(default_factory=dict)
    """Each with what is granted to everybody already in it."""
    for_all: Allowance = UNLIMITED

    def of(self, tenant: str) -> Allowance:
        return self.of_tenants.get(tenant, self.for_all)


def parse_allowances(given: object) -> Allowances:
    """The member ``quotas`` of a key file. Raises ``ConfigurationError`` that names tenant and quota."""
    if not isinstance(given, dict):
        raise ConfigurationError("key file, quotas: must be an object of tenants, or of * for everybody")
    shared = _numbers(EVERYBODY, given.get(EVERYBODY, {}))
    own = {_tenant(name): shared | _numbers(name, quotas) for name, quotas in given.items() if name != EVERYBODY}
    return Allowances({name: _allowance(numbers) for name, numbers in own.items()}, _allowance(shared))


def _allowance(numbers: Mapping[str, Any]) -> Allowance:
    allowance = Allowance(**numbers)
    return UNLIMITED if allowance == UNLIMITED else allowance


def _tenant(name: str) -> str:
    try:
        return check_name(name, "quotas")
    except InvalidInputError as error:
        raise ConfigurationError(f"key file, quotas: {error.detail}") from error


def _numbers(tenant: str, given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ConfigurationError(f"key file, quotas of {tenant!r}: must be an object of quota and number")
    for name in given:
        if name not in _MOST:
            known = ", ".join(_MOST)
            raise ConfigurationError(f"key file, quotas of {tenant!r}: there is no quota {name!r}; there are {known}")
    return {name: _number(tenant, name, value) for name, value in given.items()}


def _number(tenant: str, name: str, value: object) -> float | int | None:
    if value is None:
        return None
    kind, most = _MOST[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 <= float(str(value)) <= most or (kind is int and not isinstance(value, int)):
        what = "a whole number" if kind is int else "a number"
        raise ConfigurationError(
            f"key file, quotas of {tenant!r}: {name} is {what} from 0 to {most:.0f}, or null for no limit"
        )
    return kind(str(value))  # type: ignore[no-any-return]
