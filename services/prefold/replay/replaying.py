"""Publishes a conversation turn by turn, and looks at the context after each."""

import itertools
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefold.client import Appended, Context, Prefold, Session
from prefold.client.results import Format
from prefold.conversation import check_anthropic, check_openai
from prefold.errors import InvalidInputError, NotFoundError, PrefoldError
from prefold.replay.figures import Figures
from prefold.replay.log_check import log_faults, read_log
from prefold.replay.pace import CrossingLog
from prefold.replay.reading import FileTurn
from prefold.replay.recount import Recount

_FORMATS: tuple[Format, ...] = ("anthropic", "openai")
_KEPT_FAULTS = 20


@dataclass(frozen=True, slots=True)
class Step:
    """One published turn and what was read after it."""

    number: int
    """From 1."""
    turn: Mapping[str, Any]
    appended: Appended
    append_ms: float
    swapped: bool
    """This very append swapped."""
    tokens_before: int
    """Of the context read before it; 0 at first."""
    context: Context
    """In Anthropic's form."""


class Replay:
    """One conversation under one limit, in a session of its own. Run ``steps`` to its end, then ``finish``."""

    def __init__(
        self,
        client: Prefold,
        turns: Sequence[FileTurn],
        recount: Recount,
        *,
        session: str,
        hard_limit_tokens: int,
        rate: float,
    ) -> None:
        """``rate``: turns per second; 0 publishes as fast as the gateway answers."""
        self._client = client
        self._turns = turns
        self._recount = recount
        self._pause = 1.0 / rate if rate > 0 else 0.0
        self.session = session
        self.figures = Figures(hard_limit_tokens)
        self._last: Context | None = None
        self._swaps = 0
        self._log_tokens = 0
        self._soft_tokens = 0
        self._crossings = CrossingLog()

    def steps(self) -> Iterator[Step]:
        """Publish each turn, check the context in both formats, and tell of it.

        Raises InvalidInputError for a session that has turns already, and for a turn that is refused, with its place.
        """
        self._open()
        due = time.monotonic()
        for number, turn in enumerate(self._turns, 1):
            time.sleep(max(0.0, due - time.monotonic()))
            due = max(due, time.monotonic()) + self._pause
            yield self._publish(number, turn)

    def finish(self) -> Figures:
        """Compare the log with what was published, take the session's own counts, and give all figures."""
        figures, state = self.figures, self.state()
        figures.limit_crossings, figures.ready_crossings = state.limit_crossings, state.ready_crossings
        figures.swaps, figures.crossings = state.swaps, self._crossings.crossings
        faults = log_faults([turn.published for turn in self._turns], read_log(self._client, self.session))
        figures.lost_turns = len(faults)
        self._tell(faults)
        return figures

    def state(self) -> Session:
        """The session as it stands."""
        return self._client.session(self.session)

    def _open(self) -> None:
        try:
            head_seq = self.state().head_seq
        except NotFoundError:
            head_seq = 0
        if head_seq:
            told = f"the session {self.session!r} has {head_seq} turns already; choose another name"
            raise InvalidInputError(told, field="session")
        state = self._client.create_session(self.session, hard_limit_tokens=self.figures.hard_limit_tokens)
        self._soft_tokens = state.soft_threshold_tokens

    def _publish(self, number: int, turn: FileTurn) -> Step:
        self._count_model_call(turn.published)
        started = time.perf_counter()
        try:
            appended = self._client.append_many(self.session, [turn.published])
        except PrefoldError as error:
            error.detail = f"{turn.place}: {error.detail}"
            raise
        append_ms = (time.perf_counter() - started) * 1000
        swapped = self._swapped_in(appended)
        self._count(number, appended, append_ms, swapped=swapped)
        self._follow(number, appended)
        tokens_before = self._last.tokens if self._last else 0
        context = self._read(turn.place)
        return Step(number, turn.published, appended, append_ms, swapped, tokens_before, context)

    def _count(self, number: int, appended: Appended, append_ms: float, *, swapped: bool) -> None:
        figures, tokens = self.figures, appended.turns[0].tokens
        figures.turns, figures.durability = number, appended.durability
        figures.degraded += appended.context.status == "degraded"
        figures.turn_tokens.append(tokens)
        self._log_tokens += tokens
        (figures.swap_append_ms if swapped else figures.append_ms).append(append_ms)

    def _follow(self, number: int, appended: Appended) -> None:
        context = appended.context
        if self._last is None or context.version == self._last.version:
            self._crossings.take(number, context.tokens, self._soft_tokens)
            return
        state = self.state()
        self._soft_tokens = state.soft_threshold_tokens
        counts = (state.limit_crossings, state.ready_crossings)
        self._crossings.take_new_version(number, context.tokens, self._soft_tokens, *counts)

    def _swapped_in(self, appended: Appended) -> bool:
        # A summary that is finished while the context is degraded swaps at once, by itself.
        rose = appended.context.swaps > self._swaps
        self._swaps = appended.context.swaps
        return rose and self._last is not None and self._last.status != "degraded"

    def _count_model_call(self, turn: Mapping[str, Any]) -> None:
        if turn["role"] != "assistant" or self._last is None:
            return
        figures, context = self.figures, self._last
        figures.model_calls += 1
        figures.model_input_tokens += context.tokens
        figures.model_largest = max(figures.model_largest, context.tokens)
        figures.naive_input_tokens += self._log_tokens
        figures.naive_largest = self._log_tokens

    def _read(self, place: str) -> Context:
        contexts = [self._read_as(form, place) for form in _FORMATS]
        self._last = contexts[0]
        return contexts[0]

    def _read_as(self, form: Format, place: str) -> Context:
        figures = self.figures
        started = time.perf_counter()
        context = self._client.context(self.session, format=form)
        figures.context_read_ms.append((time.perf_counter() - started) * 1000)
        figures.max_context_tokens = max(figures.max_context_tokens, context.tokens)
        tokens = max(context.tokens, self._recount.of(context))
        if tokens > figures.hard_limit_tokens:
            figures.over_limit_reads += 1
            self._tell([f"{place}: the {form} context has {tokens:,} tokens"])
        faults = _validity_faults(context)
        if faults:
            figures.invalid_contexts += 1
            self._tell(f"{place}: the {form} context is invalid: {fault}" for fault in faults)
        return context

    def _tell(self, faults: Iterable[str]) -> None:
        kept = self.figures.faults
        kept.extend(itertools.islice(faults, max(0, _KEPT_FAULTS - len(kept))))


def session_name(stem: str) -> str:
    """A new session's name, with the file's name in it as far as it is made of plain letters."""
    return f"replay-{re.sub('[^A-Za-z0-9_-]+', '-', stem)[:40]}-{uuid.uuid4().hex[:8]}"


def _validity_faults(context: Context) -> list[str]:
    if context.format == "anthropic":
        return check_anthropic(list(context.messages), context.system or None)
    return check_openai(list(context.messages))
