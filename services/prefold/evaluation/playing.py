"""Runs a case step by step and judges what it shows."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prefold.client import Fact, Prefold
from prefold.errors import NotFoundError, PrefoldError
from prefold.evaluation.cases import Case
from prefold.evaluation.contexts import seen_context
from prefold.evaluation.played import PlayedSession, erase, open_sessions
from prefold.evaluation.seen import Seen, fault_of
from prefold.evaluation.shapes import (
    AnyStep,
    Ask,
    AssistantTurn,
    Close,
    CorrectFact,
    DeleteFact,
    Edit,
    EraseUser,
    Expectation,
    Facts,
    Fill,
    FillToSwaps,
    FillToTurn,
    Remove,
    Search,
    State,
    UserTurn,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """One expectation and what came of it."""

    step: int
    """Place in the file, from 0."""
    asked: str
    expected: Expectation
    fault: str | None
    """None: it is so."""
    tokens: int | None = None


@dataclass(slots=True)
class Outcome:
    """What came of one case."""

    case: Case
    judged: list[Judged] = field(default_factory=list)
    error: str | None = None
    """Why it could not be played to its end."""
    skipped: str | None = None
    turns: int = 0
    swaps: int = 0
    seconds: float = 0.0
    left_behind: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.error is None and all(one.fault is None for one in self.judged)


@dataclass(frozen=True, slots=True)
class Rules:
    """How cases are played."""

    seed: int = 1
    patience_seconds: float = 60.0
    """Longest wait for the workers, each time."""
    erases: bool = True
    """Sessions and users are removed again afterwards."""


def play(case: Case, clients: Mapping[str, Prefold], rules: Rules) -> Outcome:
    """Run one case. Never raises what Prefold answers: that is the outcome's ``error``."""
    outcome = Outcome(case)
    missing = sorted(case.tenants - clients.keys())
    if missing:
        outcome.skipped = f"no key for tenant {', '.join(missing)}"
        return outcome
    sessions = open_sessions(case, clients, uuid.uuid4().hex[:8], rules.seed, rules.patience_seconds)
    started = time.monotonic()
    try:
        _Player(sessions, outcome).play(case.steps)
    finally:
        outcome.seconds = time.monotonic() - started
        outcome.turns = sum(played.head for played in sessions.values())
        outcome.swaps = sum(played.swaps for played in sessions.values())
        if rules.erases:
            outcome.left_behind = erase(sessions)
    return outcome


class _Player:
    """Plays the steps of one case."""

    def __init__(self, sessions: Mapping[str, PlayedSession], outcome: Outcome) -> None:
        self._sessions = sessions
        self._outcome = outcome
        self._created: set[str] = set()

    def play(self, steps: Sequence[AnyStep]) -> None:
        for number, step in enumerate(steps):
            try:
                self._do(number, step, self._session(step))
            except PrefoldError as error:
                self._outcome.error = f"steps[{number}]: {error.detail}"
                return

    def _session(self, step: AnyStep) -> PlayedSession:
        assert step.session is not None
        played = self._sessions[step.session]
        if step.session not in self._created:
            played.create()
            self._created.add(step.session)
        return played

    def _do(self, number: int, step: AnyStep, played: PlayedSession) -> None:
        match step:
            case Ask() | Facts() | Search():
                self._judge(number, step, played)
            case UserTurn():
                played.say("user", step.user, turn_id=step.id, at=step.at)
            case AssistantTurn():
                played.say("assistant", step.assistant, turn_id=step.id, at=step.at)
            case Fill():
                played.fill(step.fill, step)
            case FillToTurn():
                played.fill(step.fill_to_turn - played.head, step)
            case FillToSwaps():
                played.fill_to_swaps(step.fill_to_swaps, step)
            case _:
                self._change(step, played)

    def _change(self, step: AnyStep, played: PlayedSession) -> None:
        match step:
            case Close():
                played.close()
            case Edit():
                played.client.edit_turn(played.real_name, step.edit, "user", step.text)
                played.is_touched = True
            case Remove():
                played.client.remove_turn(played.real_name, step.remove)
                played.is_touched = True
            case State():
                played.client.put_state(played.real_name, step.state)
            case DeleteFact():
                self._settle()
                _each_fact(played, step.delete_fact, lambda user, row: played.client.delete_fact(user, row.id))
            case CorrectFact():
                self._settle()
                _each_fact(
                    played,
                    step.correct_fact,
                    lambda user, row: played.client.correct_fact(user, row.id, object=step.to),
                )
            case EraseUser():
                self._erase_user(played)
            case _:
                raise AssertionError(f"{type(step).__name__} is not played")

    def _erase_user(self, played: PlayedSession) -> None:
        user = _user(played)
        played.client.erase_user(user)
        for name in self._created:
            other = self._sessions[name]
            if (other.real_user, other.asked.tenant) == (user, played.asked.tenant):
                other.is_touched = False  # it is gone: nothing is owed for it

    def _judge(self, number: int, step: Ask | Facts | Search, played: PlayedSession) -> None:
        self._settle()
        asked, seen = _look(step, played)
        for expected in step.expect:
            self._outcome.judged.append(Judged(number, asked, expected, fault_of(expected, seen), seen.tokens))

    def _settle(self) -> None:
        for name in self._created:
            self._sessions[name].settle()


def _look(step: Ask | Facts | Search, played: PlayedSession) -> tuple[str, Seen]:
    match step:
        case Ask():
            return step.ask, _context(step, played)
        case Facts():
            return f"facts of {played.asked.user}", _facts(step, played)
        case Search():
            return step.search, _hits(step, played)


def _context(step: Ask, played: PlayedSession) -> Seen:
    if step.publish:
        played.say("user", step.ask)
    query = step.ask if step.query is None else step.query
    return seen_context(played.context(query, step.budget_tokens))


def _facts(step: Facts, played: PlayedSession) -> Seen:
    rows = _rows(played, history=step.facts == "history")
    return Seen(_grouped((row.category, _sentence(row)) for row in rows))


def _hits(step: Search, played: PlayedSession) -> Seen:
    found = played.client.search(
        step.search,
        user=played.real_user if step.scope == "user" else None,
        session=played.real_name if step.scope == "session" else None,
        kinds=step.kinds,
        limit=step.limit,
    )
    return Seen(_grouped((hit.kind, hit.text) for hit in found), [hit.kind for hit in found])


def _each_fact(played: PlayedSession, words: str, change: Callable[[str, Fact], object]) -> None:
    user = _user(played)
    rows = [row for row in _rows(played) if words.casefold() in _sentence(row).casefold()]
    if not rows:
        raise NotFoundError(f"no fact of {played.asked.user} has {words!r}", code="fact_not_found")
    for row in rows:
        change(user, row)


def _rows(played: PlayedSession, *, history: bool = False) -> tuple[Fact, ...]:
    """The newest 500 of the session's user."""
    return played.client.facts(_user(played), history=history, limit=500).facts


def _user(played: PlayedSession) -> str:
    if played.real_user is None:
        raise NotFoundError("the session has no user, so nothing is known of one", code="no_user")
    return played.real_user


def _sentence(row: Fact) -> str:
    return f"{row.subject} {row.relation.replace('_', ' ')} {row.object}"


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for name, text in pairs:
        texts.setdefault(name, []).append(text)
    return {name: "\n".join(lines) for name, lines in texts.items()}
