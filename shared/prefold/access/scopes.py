"""What a key may do."""

from collections.abc import Iterable
from typing import Final, Literal, get_args

from prefold.errors import InvalidInputError

Scope = Literal["append", "read", "erase", "admin"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""``append`` adds and opens; ``read`` reads and searches; ``erase`` takes away or overwrites what was said or learnt;
``admin`` reads what is counted and billed, and implies all others."""
ALL_SCOPES: Final = frozenset(SCOPES)


def scopes_of(names: Iterable[object]) -> frozenset[Scope]:
    """The scopes of these names, what they imply included. Raises ``InvalidInputError`` for none, and for one unknown."""
    given = list(names)
    known = frozenset(one for one in SCOPES if one in given)
    if not given or any(name not in SCOPES for name in given):
        raise InvalidInputError(f"scopes are one or more of {', '.join(SCOPES)}", field="scopes")
    return ALL_SCOPES if "admin" in known else known
