"""The sessions of a running case: publishing into them, small talk, and what was touched since the workers caught up."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prefold.client import Appended, Context, Prefold
from prefold.errors import PrefoldError, UnavailableError
from prefold.evaluation.cases import Case
from prefold.evaluation.filler import at_length, small_talk
from prefold.evaluation.settling import await_standby, recalled_context, settle
from prefold.evaluation.shapes import Language, Session, SmallTalk

_MOST_TURNS_FOR_SWAPS = 5_000
_MOST_BATCH = 50
_BATCH_SHARE = 1_000
"""Small talk goes out so that a batch takes a small part of the limit: one turn a call for each thousand tokens."""


@dataclass
class PlayedSession:
    """One session while its case runs. Turns get the ids ``t1``, ``t2`` … unless the case names them."""

    real_name: str
    real_user: str | None
    asked: Session
    client: Prefold
    seed: str
    patience_seconds: float
    head: int = 0
    swaps: int = 0
    last_role: str = ""
    is_closed: bool = False
    is_touched: bool = False
    _talks: dict[Language, Iterator[tuple[str, str]]] = field(default_factory=dict)
    _answer: str = ""
    """Of small talk, to its question; empty where something else was said last."""

    def create(self) -> None:
        """Open the session as the case describes it."""
        self.client.create_session(
            self.real_name,
            user=self.real_user,
            hard_limit_tokens=self.asked.hard_limit_tokens,
            keep_recent_turns=self.asked.keep_recent_turns,
            system=self.asked.system,
        )

    def say(self, role: str, content: str, *, turn_id: str | None = None, at: str | None = None) -> None:
        """Publish one turn, then wait for the next summary where the context asks for one."""
        turn: dict[str, Any] = {"id": turn_id or f"t{self.head + 1}", "role": role, "content": content}
        self._answer = ""
        self._publish([turn | ({"ts": at} if at else {})])

    def fill(self, turns: int, talk: SmallTalk) -> None:
        """Publish so many turns of it."""
        batch = max(1, min(_MOST_BATCH, self.asked.hard_limit_tokens // _BATCH_SHARE))
        left = turns
        while left > 0:
            self._publish(list(itertools.islice(self._small_turns(talk), min(batch, left))))
            left -= batch

    def fill_to_swaps(self, swaps: int, talk: SmallTalk) -> None:
        """Publish small talk until so many swaps took place. UnavailableError when they do not come."""
        until = self.head + _MOST_TURNS_FOR_SWAPS
        while self.swaps < swaps:
            if self.head >= until:
                raise UnavailableError(f"{_MOST_TURNS_FOR_SWAPS:,} turns gave {self.swaps} of {swaps} swaps")
            self.fill(1, talk)

    def context(self, query: str, budget_tokens: int | None) -> Context:
        """What is served now, with what is recalled for ``query``; for an empty one nothing is."""
        return recalled_context(self.client, self.real_name, query, budget_tokens, within_seconds=self.patience_seconds)

    def settle(self) -> None:
        """Wait until nothing is owed for what was said so far."""
        if self.is_touched:
            state = settle(self.client, self.real_name, within_seconds=self.patience_seconds, closed=self.is_closed)
            self.swaps, self.is_touched = state.swaps, False

    def close(self) -> None:
        """End the session, and wait until what is learnt of it is learnt."""
        self.client.close_session(self.real_name)
        self.is_closed = self.is_touched = True
        self.settle()

    def _publish(self, turns: list[dict[str, Any]]) -> None:
        self._follow(self.client.append_many(self.real_name, turns), turns[-1]["role"])

    def _follow(self, appended: Appended, role: str) -> None:
        self.head, self.last_role = appended.turns[-1].seq, role
        self.swaps = appended.context.swaps
        self.is_touched, self.is_closed = True, False
        if appended.context.status in ("soft", "degraded"):
            await_standby(self.client, self.real_name, within_seconds=self.patience_seconds)

    def _small_turns(self, talk: SmallTalk) -> Iterator[dict[str, Any]]:
        for number in itertools.count(self.head + 1):
            role = "assistant" if self.last_role == "user" else "user"
            if role == "user":
                text, self._answer = self._next_pair(talk)
            else:
                text, self._answer = self._answer or self._next_pair(talk)[1], ""
            self.last_role = role
            yield {"id": f"t{number}", "role": role, "content": text}

    def _next_pair(self, talk: SmallTalk) -> tuple[str, str]:
        pairs = self._talks.setdefault(talk.language, small_talk(self.seed, talk.language))
        return at_length(pairs, talk.language) if talk.long else next(pairs)


def open_sessions(
    case: Case, clients: Mapping[str, Prefold], run: str, seed: int, patience_seconds: float
) -> dict[str, PlayedSession]:
    """The sessions of a case by the names in its file, none created yet."""
    return {
        name: PlayedSession(
            real_name=real_name("eval", case.name, name, run),
            real_user=real_name(asked.user, run) if asked.user else None,
            asked=asked,
            client=clients[asked.tenant],
            seed=f"{seed} {case.name} {name}",
            patience_seconds=patience_seconds,
        )
        for name, asked in case.sessions.items()
    }


def real_name(*parts: str) -> str:
    """A name that another run does not use, with nothing in it that a name must not have."""
    return "-".join(re.sub(r"[^A-Za-z0-9_-]+", "-", part)[:40] for part in parts)


def erase(sessions: Mapping[str, PlayedSession]) -> list[str]:
    """Remove the sessions and their users again. Returns what could not be removed, and why."""
    kept = []
    for played in sessions.values():
        try:
            if played.head:
                played.client.erase_session(played.real_name)
            if played.head and played.real_user:
                played.client.erase_user(played.real_user)
        except PrefoldError as error:
            kept.append(f"{played.real_name}: {error.detail}")
    return kept
