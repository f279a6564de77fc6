"""Who a request comes from, once that is known."""

from dataclasses import dataclass
from typing import Final

from prefold.access import ALL_SCOPES, Scope

DEFAULT_TENANT: Final = "default"


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a credential, and what it allows."""

    tenant: str
    scopes: frozenset[Scope]
    key_id: str = ""
    """Of the API key; empty without keys."""


NOBODY: Final = Caller("", frozenset())
"""Of a request that needs no credential; what it is answered belongs to no tenant."""
THIS_MACHINE: Final = Caller(DEFAULT_TENANT, ALL_SCOPES)
