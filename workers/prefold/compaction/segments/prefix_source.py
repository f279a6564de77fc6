"""Asks for the summary of new turns on the chat's own cached prefix; see ``shared_prefix``."""

import time
from collections import OrderedDict
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import structlog

from prefold.compaction.engine import SummaryInput
from prefold.compaction.segments.prompt import prefix_instruction
from prefold.compaction.segments.shared_prefix import PrefixRequest, prefix_request, setting_of, words_of
from prefold.errors import PrefoldError
from prefold.messages import AnswerRefusedError, Ask, Reply
from prefold.pricing import load_prices
from prefold.storage.types import ModelUsage, SessionRef, SessionView, StoredContext, StoredTurn
from prefold.tokens import TokenCounter

if TYPE_CHECKING:
    from prefold.worker.runtime import Runtime

__all__ = ["MISSES_ALLOWED", "SharedPrefix", "create_prefix", "read_share"]

T = TypeVar("T")

log = structlog.get_logger(__name__)

MISSES_ALLOWED = 2
"""Calls in a row that found nothing cached, or brought no answer, before a session's builds go without."""
_SKIPPED_AFTER = 8
"""Builds that go without then, before the next try."""
_LEAST_READ = 0.5
"""Share of the input below which a call counts as a miss: the mode costs more than it saves."""
_REMEMBERED = 4096
_LEAST_ANSWER_TOKENS = 4096
"""Room for what a model thinks before it answers."""
_MOST_ANSWER_TOKENS = 20_000


class ReadsSessions(Protocol):
    """What is needed of ``prefold.storage.Sessions``; see there."""

    async def view(self, tenant: str, session: str) -> SessionView: ...
    async def read_context(self, tenant: str, session: str) -> StoredContext: ...


class AsksModels(Protocol):
    """What is needed of ``prefold.messages.Messages``; see there."""

    async def ask(self, ask: Ask) -> Reply: ...


class SharedPrefix:
    """Summaries of new turns by the session's own model, at the price of a cache read.

    ``segment`` gives None whenever that cannot be had, also when the model is away or too dear: another may not be.
    It raises only what the storage raises.
    """

    def __init__(
        self,
        storage: ReadsSessions,
        messages: AsksModels,
        counter: TokenCounter,
        *,
        may_ask: Callable[[str], bool] = lambda _: True,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """``may_ask``: whether the operator pays for a session's model."""
        self._storage = storage
        self._messages = messages
        self._counter = counter
        self._may_ask = may_ask
        self._now_ms = now_ms
        self._misses = _Misses()
        self._useless = _Misses()
        """Answers that the gate refused."""
        self._versions: _Recent[tuple[int, int]] = _Recent()
        """Of a session's context, and the newest turn when it was first seen."""

    async def segment(self, wanted: SummaryInput, first_seq: int, last_seq: int, cap_tokens: int) -> str | None:
        """What the model wrote about turns ``first_seq`` to ``last_seq``, unchecked; None: not in this way."""
        view = await self._storage.view(wanted.ref.tenant, wanted.ref.session)
        if not setting_of(view).enabled:
            return None
        turns = [turn for turn in wanted.turns if first_seq <= turn.seq <= last_seq]
        request = await self._request(view, turns)
        if isinstance(request, str):
            log.info("prefix_not_shared", reason=request)
            return None
        ask = self._ask(wanted, request, turns, cap_tokens)
        wanted.tally.sent_tokens += ask.input_tokens
        try:
            reply = await self._messages.ask(ask)
        except PrefoldError as error:
            self._refused(wanted, error, request.model)
            return None
        wanted.tally.add_call(reply.usage, reply.request_id)
        share = read_share(reply.usage)
        self._misses.note(wanted.ref, has_missed=share is not None and share < _LEAST_READ)
        log.info("prefix_shared", read_share=share, model=reply.model, request_id=reply.request_id)
        return reply.text

    def refused(self, ref: SessionRef) -> None:
        """The gate refused what ``segment`` gave: a large prefix is not paid for in each build for nothing."""
        self._useless.note(ref, has_missed=True)

    def _refused(self, wanted: SummaryInput, error: PrefoldError, model: str) -> None:
        if isinstance(error, AnswerRefusedError):
            self._misses.note(wanted.ref, has_missed=True)  # it was paid for, and may come again with each build
            if error.reply is not None:
                wanted.tally.add_call(error.reply.usage, error.reply.request_id)
        wanted.tally.refused.append(error.code)
        log.warning("prefix_refused", reason=error.code, model=model)

    async def _request(self, view: SessionView, turns: list[StoredTurn]) -> PrefixRequest | str:
        if view.model and not self._may_ask(view.model):
            return "model_not_allowed"
        if self._misses.is_resting(view.ref) or self._useless.is_resting(view.ref):
            return "misses"
        context = await self._storage.read_context(view.ref.tenant, view.ref.session)
        return prefix_request(context, view, turns, now_ms=self._now_ms(), same_since=self._same_since(context))

    def _same_since(self, context: StoredContext) -> int | None:
        version, head_seq = self._versions.get(context.ref, (0, 0))
        if version == context.version:
            return head_seq
        self._versions.put(context.ref, (context.version, context.head_seq))
        return None

    def _ask(self, wanted: SummaryInput, request: PrefixRequest, turns: list[StoredTurn], cap_tokens: int) -> Ask:
        said = prefix_instruction(words_of(turns[0]), words_of(turns[-1]), wanted.language, cap_tokens)
        instruction = {"role": "user", "content": [{"type": "text", "text": said}]}
        return Ask(
            tenant=wanted.ref.tenant,
            session=wanted.ref.session,
            incarnation=wanted.ref.incarnation,
            purpose="prefix",
            system=list(request.system) or None,
            messages=[*request.messages, instruction],
            max_tokens=min(_MOST_ANSWER_TOKENS, request.thinking_tokens + max(_LEAST_ANSWER_TOKENS, 2 * cap_tokens)),
            input_tokens=request.tokens + self._counter.count(said),
            model=request.model,
            tools=request.tools,
            extra=request.members,
        )


def create_prefix(shared: "Runtime") -> SharedPrefix:
    """Of a worker process: for models that the operator allows and whose calls can be counted against a budget.

    ``ConfigurationError`` when the price table cannot be read.
    """
    prices = load_prices(shared.settings.prices_file)
    allowed = [pattern.strip() for pattern in shared.settings.summarizer_prefix_models.split(",")]

    def may_ask(model: str) -> bool:
        return prices.find(model) is not None and any(fnmatchcase(model, pattern) for pattern in allowed)

    return SharedPrefix(shared.sessions, shared.messages, shared.counter, may_ask=may_ask)


def read_share(usage: ModelUsage) -> float | None:
    """Share of the input that came from the provider's cache; None: the server does not say."""
    total = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return round(usage.cache_read_tokens / total, 3) if total else None


class _Recent(Generic[T]):
    """What is remembered of sessions, of the latest ones alone."""

    def __init__(self) -> None:
        self._kept: OrderedDict[SessionRef, T] = OrderedDict()

    def get(self, ref: SessionRef, default: T) -> T:
        return self._kept.get(ref, default)

    def put(self, ref: SessionRef, value: T) -> None:
        self._kept[ref] = value
        self._kept.move_to_end(ref)
        if len(self._kept) > _REMEMBERED:
            self._kept.popitem(last=False)


class _Misses:
    """Per session: misses in a row, and how many builds are still to go without. Of this process alone."""

    def __init__(self) -> None:
        self._counts: _Recent[tuple[int, int]] = _Recent()

    def note(self, ref: SessionRef, *, has_missed: bool) -> None:
        before, _ = self._counts.get(ref, (0, 0))
        misses = before + 1 if has_missed else 0
        if misses or before:
            self._counts.put(ref, (misses, _SKIPPED_AFTER if misses >= MISSES_ALLOWED else 0))

    def is_resting(self, ref: SessionRef) -> bool:
        """Counts down; False once the next call may be tried."""
        misses, left = self._counts.get(ref, (0, 0))
        if left:
            self._counts.put(ref, (misses, left - 1))
        return left > 0
