"""How much a tenant may spend a day."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from prefold.errors import ConfigurationError

__all__ = ["Budgets", "load_budgets"]

_MOST_USD = 1_000_000
_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Budgets:
    """Millionths of a USD a day (UTC). None: no limit."""

    for_all: int | None = None
    of_tenants: dict[str, int | None] = field(default_factory=dict)
    """What wins over ``for_all``."""

    def of(self, tenant: str) -> int | None:
        return self.of_tenants.get(tenant, self.for_all)

    @property
    def has_any(self) -> bool:
        """Some tenant is limited."""
        return self.for_all is not None or any(value is not None for value in self.of_tenants.values())


def load_budgets(for_all_usd: float | None, path: Path | None) -> Budgets:
    """The budgets as they are set. ``ConfigurationError`` says what is wrong with the file."""
    return Budgets(None if for_all_usd is None else round(for_all_usd * _MICRO), {} if path is None else _read(path))


def _read(path: Path) -> dict[str, int | None]:
    try:
        given = orjson.loads(path.read_bytes())
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise _wrong(path, f"is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise _wrong(path, 'must be an object of tenant and USD a day, as {"acme": 5, "trial": 0.5, "inner": null}')
    return {tenant: _micro_usd(path, tenant, usd) for tenant, usd in given.items()}


def _micro_usd(path: Path, tenant: str, usd: object) -> int | None:
    if usd is None:
        return None
    is_number = isinstance(usd, int | float) and not isinstance(usd, bool) and math.isfinite(usd)
    if not is_number or not 0 <= float(str(usd)) <= _MOST_USD:
        raise _wrong(path, f"{tenant!r}: USD a day is a number from 0 to {_MOST_USD}, or null for no limit")
    return round(float(str(usd)) * _MICRO)


def _wrong(path: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(
        f"PREFOLD_SUMMARIZER_BUDGETS_FILE: {path} {problem}", field="PREFOLD_SUMMARIZER_BUDGETS_FILE"
    )
