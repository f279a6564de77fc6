"""Who there is, and the words that only one of them ever says."""

import hashlib
import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path

USERS = 3
SESSIONS = 6
_CANARY = re.compile(rb"quor(\d\d)x(\d)zel", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class Person:
    """A user of a tenant. Users and sessions have the same names at every tenant."""

    tenant_number: int
    number: int

    @property
    def tenant(self) -> str:
        return f"tenant{self.tenant_number:02}"

    @property
    def name(self) -> str:
        return f"u{self.number}"

    @property
    def canary(self) -> str:
        """A word that only this person says. No turn of the walk is without its speaker's."""
        return f"Quor{self.tenant_number:02}x{self.number}zel"

    @property
    def sessions(self) -> list[str]:
        return [f"s{number}" for number in range(self.number, SESSIONS, USERS)]


def everyone(tenants: int) -> list[Person]:
    return [Person(*numbers) for numbers in product(range(tenants), range(USERS))]


def owner_of_session(tenant: str, session: str) -> Person:
    """``s4`` and what is forked from it belong to the same user at every tenant."""
    return Person(int(tenant.removeprefix("tenant")), int(session[1]) % USERS)


def people_in(content: bytes) -> set[Person]:
    """Whose words stand in it."""
    return {Person(int(tenant), int(number)) for tenant, number in _CANARY.findall(content)}


def key_of(tenant: str) -> str:
    return f"key-of-{tenant}-which-nobody-else-knows"


def write_keys(path: Path, tenants: int) -> Path:
    """The file of hashed keys."""
    names = sorted({person.tenant for person in everyone(tenants)})
    path.write_text("".join(f"{name} {hashlib.sha256(key_of(name).encode()).hexdigest()}\n" for name in names))
    return path
