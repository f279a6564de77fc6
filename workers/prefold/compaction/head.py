"""The head of a context: first user message, ledger, summary and task, each a fragment of its own with its marks.

Every part has a share of the free limit: what the limit leaves, in raw tokens, beside system and tools. A part
that does not fit its share is clipped, or left out when nothing of it would be left. The task, the newest user
turn where the window no longer has it, is the exception: a context without it answers nothing, so a clipped
form always stands. It comes last, next to the turns that follow it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Literal

from prefold.compaction.ledger.collect import Ledger
from prefold.compaction.ledger.text import LedgerText, Room, render_ledger
from prefold.compaction.reading.source import verbatim_text
from prefold.conversation.clipping import clip
from prefold.conversation.encoding import encode
from prefold.conversation.markers import BLOCK_TOKENS, FRAGMENT_TOKENS, TEXT_HEAD
from prefold.conversation.marks import closing, opening
from prefold.conversation.turns import TurnKind
from prefold.storage.types import BuildTicket, HeadFragment, StoredTurn
from prefold.tokens import TokenCounter

_FIRST_SHARE = 0.08
_FIRST_LEAST = 60
_TASK_SHARE = 0.10
_TASK_LEAST = 60
_LEDGER_SHARE = 0.06
_LEDGER_MOST = 4000
_BINDING_SHARE = 0.10
_BINDING_MOST = 6000
_ESSENTIAL_SHARE = 0.17
_ESSENTIAL_MOST = 8000
"""A ledger grows beyond its share for what people state once and mean for good; the summary yields."""
_SUMMARY_SHARE = 0.10
_SUMMARY_MOST = 4000
_SUMMARY_FLOOR = 0.06
_SUMMARY_LEAST = 72
"""Tokens, marks included, whatever the limit: without a summary nothing would name the turns that are gone."""
_HEAD_SHARE = 0.25
"""What the whole head should stay within; the summary yields down to its floor."""
_DERIVED_SHARE = 0.19
"""What ledger and summary should stay within together, likewise."""
_END_TOKENS = 3
"""Slack for what the tokenizer joins or splits where body and marks meet."""

Part = Literal["first_message", "task", "ledger", "summary"]


@dataclass(frozen=True, slots=True)
class Opening:
    """The parts that do not depend on the summary, and what they leave for it."""

    first_message: HeadFragment | None
    task: HeadFragment | None
    ledger: HeadFragment | None
    ledger_text: LedgerText
    ledger_room: Room
    carried: tuple[str, ...]
    """What these parts say verbatim, whole."""
    summary_cap: int
    """Raw tokens that the summary's text may have; more than 0."""


def free_tokens(ticket: BuildTicket) -> int:
    """Raw tokens of the limit that system and tools leave."""
    return floor(ticket.hard_limit_tokens / ticket.calibration) - ticket.fixed_tokens


def open_head(
    ticket: BuildTicket, turns: Sequence[StoredTurn], ledger: Ledger, language: str, counter: TokenCounter
) -> Opening:
    """First message, task and ledger of a head that covers ``turns``."""
    free = free_tokens(ticket)
    bodies: list[str] = []
    first = _turn_part(
        "first_message", _find(turns, ticket.first_user_seq), _first_room(ticket, turns, free), counter, bodies
    )
    task = _turn_part(
        "task", _find(turns, ticket.carried_turn), max(_TASK_LEAST, int(free * _TASK_SHARE)), counter, bodies
    )
    used = sum(part.tokens for part in (first, task) if part is not None)
    room = _ledger_room(free, used).less(_overhead(_ledger_title(ticket), "ledger", counter))
    rendered = render_ledger(ledger, room, counter, language, bodies)
    ledger_part = _ledger_part(ticket, rendered, counter)
    carried = (*bodies, rendered.text) if rendered.text else tuple(bodies)
    own = ledger_part.tokens if ledger_part is not None else 0
    cap = _summary_room(free, used + own, own) - _overhead(_summary_title(ticket), "summary", counter)
    return Opening(first, task, ledger_part, rendered, room, carried, cap)


def repair_head(
    ticket: BuildTicket, begun: Opening, ledger: Ledger, language: str, summary_text: str, counter: TokenCounter
) -> Opening:
    """``begun`` with the ledger that goes with this summary: first what it lacks, and what it still tells though replaced.

    The ledger stays within its own share; what the summary leaves of its cap may be used for it.
    """
    bodies = begun.carried[: -1 if begun.ledger_text.text else None]
    spare = max(0, begun.summary_cap - counter.count(summary_text))
    room = begun.ledger_room.within(begun.ledger_text.tokens + spare)
    rendered = render_ledger(ledger, room, counter, language, bodies, summary_text)
    carried = (*bodies, rendered.text) if rendered.text else bodies
    return replace(begun, ledger=_ledger_part(ticket, rendered, counter), ledger_text=rendered, carried=carried)


def close_head(
    ticket: BuildTicket, begun: Opening, summary_text: str, counter: TokenCounter
) -> tuple[HeadFragment, ...]:
    """All fragments in the order in which they stand."""
    summary = _wrapped("summary", _summary_title(ticket), "summary", summary_text, counter)
    parts = (begun.first_message, begun.ledger, summary, begun.task)
    return tuple(part for part in parts if part is not None)


def _ledger_title(ticket: BuildTicket) -> str:
    return f"ledger of turns 1-{ticket.covers_to}: exact values and statements, quoted, not instructions"


def _ledger_part(ticket: BuildTicket, rendered: LedgerText, counter: TokenCounter) -> HeadFragment | None:
    if not rendered.text:
        return None
    return _wrapped("ledger", _ledger_title(ticket), "ledger", rendered.text, counter)


def _ledger_room(free: int, used: int) -> Room:
    """What the first message and the task, ``used`` tokens, leave of the head's share beside a summary at its floor."""
    rest = min(_LEDGER_MOST, int(free * _LEDGER_SHARE))
    left = max(rest, int(free * (_HEAD_SHARE - _SUMMARY_FLOOR)) - used)
    binding = min(_BINDING_MOST, int(free * _BINDING_SHARE), left)
    return Room(min(_ESSENTIAL_MOST, int(free * _ESSENTIAL_SHARE), left), binding, rest)


def _summary_title(ticket: BuildTicket) -> str:
    return f"summary of turns 1-{ticket.covers_to}: what was said, not instructions"


def _summary_room(free: int, used: int, ledger: int) -> int:
    left = min(free * _HEAD_SHARE - used, free * _DERIVED_SHARE - ledger)
    wanted = min(free * _SUMMARY_SHARE, max(free * _SUMMARY_FLOOR, left))
    return max(_SUMMARY_LEAST, min(_SUMMARY_MOST, int(wanted)))


def _first_room(ticket: BuildTicket, turns: Sequence[StoredTurn], free: int) -> int:
    """A first message that is the only one of its user so far is also the task, and gets its share too."""
    alone = not any(_is_plain_user(turn) and turn.seq != ticket.first_user_seq for turn in turns)
    share = _FIRST_SHARE + (_TASK_SHARE if alone and not ticket.carried_turn else 0.0)
    return max(_FIRST_LEAST, int(free * share))


def _is_plain_user(turn: StoredTurn) -> bool:
    return turn.role == "user" and turn.kind == TurnKind.PLAIN


def _find(turns: Sequence[StoredTurn], seq: int) -> StoredTurn | None:
    return next((turn for turn in turns if turn.seq == seq), None) if seq else None


def _turn_part(
    part: Literal["first_message", "task"], turn: StoredTurn | None, room: int, counter: TokenCounter, bodies: list[str]
) -> HeadFragment | None:
    """A turn word for word, clipped at a border between characters when it is over ``room``."""
    if turn is None:
        return None
    name = "first message" if part == "first_message" else "task"
    what = "first message" if part == "first_message" else "newest message"
    title = f"{what} of the user, turn {turn.seq}, verbatim"
    text = verbatim_text(turn)
    body, _ = clip(text, counter.count(text), room - _overhead(title, name, counter), counter.count)
    fragment = _wrapped(part, title, name, body, counter)
    if part == "first_message" and (not body.strip() or fragment.tokens > room):
        return None
    bodies.extend(piece for piece in body.split("[… ") if piece.strip())
    return fragment


def _wrapped(part: Part, title: str, name: str, body: str, counter: TokenCounter) -> HeadFragment:
    text = f"{opening(title)}\n{body}\n{closing(name)}"
    return HeadFragment(part, TEXT_HEAD + encode(text) + b"}", counter.count(text) + FRAGMENT_TOKENS + BLOCK_TOKENS)


def _overhead(title: str, name: str, counter: TokenCounter) -> int:
    """Tokens of a part beside its body."""
    return counter.count(f"{opening(title)}\n\n{closing(name)}") + FRAGMENT_TOKENS + BLOCK_TOKENS + _END_TOKENS
