"""From what is stored to what is served: the stored lines as they are, or as much of them as a budget takes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from prefold.assembly.beside import Beside, Wanted, beside
from prefold.assembly.breakpoints import Ttl, marked
from prefold.assembly.budget import raw_room, served_sections, served_tokens, thousandths
from prefold.assembly.groups import gap_range, may_be_followed, section_of
from prefold.assembly.pinned_text import pinned_text
from prefold.assembly.plan import LeftOut, Parts, Plan, Planner, joined_system
from prefold.assembly.recall import RecalledItem, UsedItem
from prefold.assembly.served import ServedContext, ServedLeftOut, ServedRecall
from prefold.assembly.shares import Shares, least_recall, rounded_reserve
from prefold.assembly.shorten import Shortener
from prefold.assembly.whole import whole
from prefold.conversation.encoding import encode
from prefold.conversation.openai_form import openai_messages
from prefold.conversation.project import Fragment, anthropic_messages_json, parse_lines
from prefold.storage.types import StoredContext
from prefold.tokens import TokenCounter

Format = Literal["anthropic", "openai"]

LEAST_BUDGET_TOKENS = 300
"""The newest turn in short form and a marker always fit into this."""


@dataclass(frozen=True, slots=True)
class RecallInput:
    """What recall found, and what went wrong with it, if anything."""

    items: Sequence[RecalledItem] = ()
    failure: str = ""
    """Reason that is reported when recall could not be asked: ``unavailable``, ``too_slow``."""
    failures: Sequence[tuple[str, str]] = ()
    """The same for a part of it: kind and reason."""


@dataclass(frozen=True, slots=True)
class ProfileInput:
    """What is known of the session's user, the most useful line first; or why it could not be read."""

    text: str = ""
    failure: str = ""
    yielded: int = 0
    """So many facts had no room within the profile's own cap."""

    def __bool__(self) -> bool:
        return bool(self.text or self.failure or self.yielded)


_NO_PROFILE = ProfileInput()
_NO_RECALL = RecallInput()


def assemble(
    stored: StoredContext,
    counter: TokenCounter,
    *,
    form: Format = "anthropic",
    budget_tokens: int | None = None,
    profile: ProfileInput | None = None,
    recalled: RecallInput | None = None,
    cache: Ttl | None = None,
) -> ServedContext:
    """The context within ``min(budget, limit)``, whatever was stored; the same input gives the same bytes.

    The pinned state is taken from ``stored``. Without a budget below the total and without recall, the messages are the
    stored lines, joined, and at their end what is known of the user as far as there is room. ``counter`` is asked only
    when something has to be cut or stands beside the newest turn. Budgets below ``LEAST_BUDGET_TOKENS`` are the
    caller's to refuse. ``cache`` puts breakpoints in, for ``form="anthropic"`` only.
    """
    profile, recalled = profile or _NO_PROFILE, recalled or _NO_RECALL
    if form == "anthropic" and budget_tokens is None and cache is None and not profile:
        served = whole(stored) if recalled is _NO_RECALL else None
        if served is not None:
            return served
    per_mille = thousandths(stored.calibration)
    room = _room(stored, budget_tokens)
    _, fragments = parse_lines(stored.body)
    wanted = Wanted(pinned_text(stored.state).noted, profile.text, recalled.items)
    plan, at_end = _fitted(stored, fragments, wanted, room, Shortener(counter))
    failures = [
        *([LeftOut("profile", None, profile.failure)] if profile.failure else []),
        *([LeftOut("profile", None, "over_cap", count=profile.yielded)] if profile.yielded else []),
        *([LeftOut("recall", None, recalled.failure)] if recalled.failure else []),
        *(LeftOut("recall", None, reason, kind=kind) for kind, reason in recalled.failures),
    ]
    return _served(stored, fragments, plan, at_end, failures, per_mille, form, cache)


def system_of(stored: StoredContext) -> tuple[str, int]:
    """The whole system prompt of a context that is served without a budget, and its raw tokens."""
    return joined_system(stored.system, pinned_text(stored.state).stated), stored.system_tokens + stored.state_tokens


def standing_turns(stored: StoredContext, budget_tokens: int | None) -> frozenset[int]:
    """Turns that stand in the context whatever is recalled; empty where some of them may have to yield."""
    _, fragments = parse_lines(stored.body)
    room = _room(stored, budget_tokens)
    if _whole(stored, fragments).tokens + Shares.of(room).total > room:
        return frozenset()
    return frozenset(fragment.seq for fragment in fragments if fragment.part not in ("gap", "closer"))


def _room(stored: StoredContext, budget_tokens: int | None) -> int:
    limit = stored.hard_limit_tokens
    return raw_room(limit if budget_tokens is None else min(limit, budget_tokens), thousandths(stored.calibration))


def _whole(stored: StoredContext, fragments: list[Fragment]) -> Plan:
    system, tokens = (stored.system, stored.system_tokens) if stored.system.strip() else ("", 0)
    state = pinned_text(stored.state).stated
    pinned = stored.state_tokens if state.strip() else 0
    return Plan(system, tokens, stored.tools_tokens, state, pinned, fragments)


def _fitted(
    stored: StoredContext, fragments: list[Fragment], wanted: Wanted, room: int, shortener: Shortener
) -> tuple[Plan, Beside]:
    shares = Shares.of(room)
    whole = _whole(stored, fragments)
    if whole.tokens <= room and (not wanted.items or whole.tokens + shares.total <= room):
        return whole, _at_end(whole, wanted, room, shares, shortener)
    known, found = _needed(fragments, wanted, shares, shortener)
    if whole.tokens + known + least_recall(found) <= room:
        return whole, _at_end(whole, wanted, room, shares, shortener)
    parts = Parts.of(fragments, stored.covers_to)
    reserve = known + rounded_reserve(found, shares.recall, room)
    plan = Planner(parts, _whole(stored, []), room, shortener).fit(reserve)
    return plan, _at_end(plan, wanted, room, shares, shortener)


def _needed(fragments: Sequence[Fragment], wanted: Wanted, shares: Shares, shortener: Shortener) -> tuple[int, int]:
    """What stands beside the newest turn takes, where there is room: what is known anyway, and what was found."""
    if not may_be_followed(fragments):
        return 0, 0
    known = beside(Wanted(wanted.noted, wanted.profile), fragments[-1:], shares.total, shares, shortener)
    found = beside(Wanted(items=wanted.items), fragments[-1:], shares.total, shares, shortener)
    return known.tokens, found.tokens


def _at_end(plan: Plan, wanted: Wanted, room: int, shares: Shares, shortener: Shortener) -> Beside:
    return beside(wanted, plan.fragments, room - plan.tokens, shares, shortener)


def _served(
    stored: StoredContext,
    fragments: Sequence[Fragment],
    plan: Plan,
    at_end: Beside,
    failures: Sequence[LeftOut],
    per_mille: int,
    form: Format,
    cache: Ttl | None,
) -> ServedContext:
    raw: Counter[str] = Counter(system=plan.system_tokens, state=plan.state_tokens, tools=plan.tools_tokens)
    for fragment in plan.fragments:
        raw[section_of(fragment)] += fragment.tokens
    raw.update(at_end.sections)
    yielded = [*_yielded_before(fragments, plan.fragments), *plan.left_out, *at_end.left_out, *failures]
    if at_end.fragment is not None:
        plan.fragments = [*plan.fragments, at_end.fragment]
    return ServedContext(
        version=stored.version,
        covers_to=stored.covers_to,
        status=stored.status,
        system=plan.whole_system,
        messages=_messages(plan, form, cache),
        cache=cache,
        total_tokens=served_tokens(raw.total(), per_mille),
        sections=served_sections({name: tokens for name, tokens in raw.items() if tokens}, per_mille),
        recalled=tuple(_served_recall(one, per_mille) for one in at_end.used),
        left_out=tuple(_served_left_out(one, per_mille) for one in yielded),
        open_calls=stored.open_calls if plan.keeps_open_round else (),
    )


def _messages(plan: Plan, form: Format, cache: Ttl | None) -> bytes:
    if form == "openai":
        return encode(openai_messages(plan.fragments, plan.whole_system))
    return anthropic_messages_json(plan.fragments if cache is None else marked(plan.fragments, cache))


def _yielded_before(stored: Sequence[Fragment], served: Iterable[Fragment]) -> list[LeftOut]:
    """What the limit had taken already when the context was stored: whole turns, and turns in short form."""
    kept = {id(fragment) for fragment in served}
    yielded: list[LeftOut] = []
    for fragment in stored:
        if fragment.part == "gap":
            yielded.append(LeftOut("window", None, "degraded", *gap_range(fragment)))
        elif fragment.part == "short" and id(fragment) in kept:
            yielded.append(LeftOut("window", None, "short_form", fragment.seq, fragment.seq))
    return yielded


def _served_recall(one: UsedItem, per_mille: int) -> ServedRecall:
    item = one.item
    return ServedRecall(
        seq=item.seq,
        role=item.role,
        score=item.score,
        tokens=served_tokens(one.tokens, per_mille),
        kind=item.kind,
        id=item.id,
        session=item.session,
        copies=item.copies,
        sources=item.sources,
    )


def _served_left_out(one: LeftOut, per_mille: int) -> ServedLeftOut:
    tokens = None if one.tokens is None else served_tokens(one.tokens, per_mille)
    return ServedLeftOut(one.part, tokens, one.reason, one.first_seq, one.last_seq, one.kind, one.id, one.count)
