"""Contexts as this gateway read them last, so that a read asks the store only for what came since.

Within a version a context only grows at its end (the same rule that makes its ETag strong and a provider's prompt cache
hit). So what is known is good as long as the store says, in the same round trip, that the session's life and version
are what they were; nothing is ever served from here alone. A memory of bounded size: the least recently read goes first.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from prefold.assembly import Spliced
from prefold.gateway.context_calls import PlainAnswer

__all__ = ["KnownContext", "KnownContexts", "messages_within"]

MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_OF_ONE: Final = MOST_BYTES // 16
_BESIDE_BYTES: Final = 4_096
"""What an entry takes beside the answer's body."""

_MEMBER: Final = b',"messages":'


class KnownContext(NamedTuple):
    """What is known of a context string, and what was answered from it."""

    incarnation: str
    version: int
    length: int
    """Of the part of the string that is known, in bytes."""
    answer: PlainAnswer
    messages: tuple[int, int]
    """Where in the answer's body the messages stand, without their end."""
    sections: Mapping[str, int]
    role: int
    summary: str
    """Which summary stands in it; empty without one."""
    found: Sequence[Any]
    """What the store says as long as nothing has changed."""

    @property
    def spliced(self) -> Spliced:
        """The fragments that are known."""
        begin, end = self.messages
        return Spliced(self.answer.body[begin:end], self.sections, self.role)


def messages_within(answer: PlainAnswer, spliced: Spliced) -> tuple[int, int]:
    """Where they stand: no string of JSON holds a bare quote, so the first member of that name is the member."""
    begin = answer.body.index(_MEMBER) + len(_MEMBER)
    return begin, begin + len(spliced.messages)


class KnownContexts:
    """By tenant and session."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._known: OrderedDict[tuple[str, str], KnownContext] = OrderedDict()

    def of(self, tenant: str, session: str) -> KnownContext | None:
        """What is known; read now, it goes later than the others."""
        known = self._known.get((tenant, session))
        if known is not None:
            self._known.move_to_end((tenant, session))
        return known

    def keep(self, tenant: str, session: str, known: KnownContext) -> None:
        """Knows this from now on, as the latest; not what is too long."""
        self.forget(tenant, session)
        size = _size(known)
        if size > min(_MOST_OF_ONE, self._most):
            return
        self._known[tenant, session] = known
        self._bytes += size
        while self._bytes > self._most:
            _, gone = self._known.popitem(last=False)
            self._bytes -= _size(gone)

    def forget(self, tenant: str, session: str) -> None:
        """Knows nothing of it any more."""
        gone = self._known.pop((tenant, session), None)
        if gone is not None:
            self._bytes -= _size(gone)


def _size(known: KnownContext) -> int:
    return len(known.answer.body) + _BESIDE_BYTES
