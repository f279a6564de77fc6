"""One question to the model, and its answer."""

from dataclasses import dataclass, field
from typing import Any

from prefold.storage.types import ModelUsage, SessionRef

__all__ = ["Ask", "Reply"]


@dataclass(frozen=True, slots=True)
class Ask:
    """One call. Who it is for is counted here and never sent to the provider."""

    tenant: str
    session: str
    incarnation: str
    purpose: str
    """``segment``, ``merge`` or ``prefix``: for logs."""
    system: str | list[dict[str, Any]] | None
    messages: list[dict[str, Any]]
    max_tokens: int
    """Room of the answer, thinking included."""
    input_tokens: int
    """Estimate of the whole input in raw tokens, for limiter and budget."""
    model: str | None = None
    """None: the configured one."""
    tools: list[dict[str, Any]] | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    """Further members of the body, as they are; they win over what we would send."""

    @property
    def ref(self) -> SessionRef:
        """The life of the session that pays."""
        return SessionRef(self.tenant, self.session, self.incarnation)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said."""

    text: str
    """All text blocks joined. Not blank, unless it is the ``reply`` of an ``AnswerRefusedError``."""
    model: str
    request_id: str
    """Empty: the server gave none."""
    usage: ModelUsage
    seconds: float
