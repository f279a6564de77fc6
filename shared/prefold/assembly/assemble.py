"""From what is stored to what is served: the stored lines as they are, or as much of them as a budget takes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from prefold.assembly.breakpoints import Ttl, marked
from prefold.assembly.budget import raw_room, served_sections, served_tokens, thousandths
from prefold.assembly.groups import gap_range, section_of
from prefold.assembly.plan import LeftOut, Parts, Plan, Planner
from prefold.assembly.recall import SHARE, Recall, RecalledItem, can_stand_after, choose_recall
from prefold.assembly.served import ServedContext, ServedLeftOut, ServedRecall
from prefold.assembly.shorten import Shortener
from prefold.conversation.encoding import encode
from prefold.conversation.openai_form import openai_messages
from prefold.conversation.project import Fragment, anthropic_messages_json, parse_lines
from prefold.storage.types import StoredContext
from prefold.tokens import TokenCounter

Format = Literal["anthropic", "openai"]

LEAST_BUDGET_TOKENS = 300
"""The newest turn in short form and a marker always fit into this."""

_NO_RECALL = Recall(None, (), ())


@dataclass(frozen=True, slots=True)
class RecallInput:
    """What recall found, and what went wrong with it, if anything."""

    items: Sequence[RecalledItem] = ()
    failure: str = ""
    """Reason that is reported when recall could not be asked: ``unavailable``, ``too_slow``."""


def assemble(
    stored: StoredContext,
    counter: TokenCounter,
    *,
    form: Format = "anthropic",
    budget_tokens: int | None = None,
    recalled: RecallInput | None = None,
    cache: Ttl | None = None,
) -> ServedContext:
    """The context within ``min(budget, limit)``, whatever was stored; the same input gives the same bytes.

    Without a budget below the total and without recall, the messages are the stored lines, joined. ``counter`` is
    asked only when something has to be cut or is recalled. Budgets below ``LEAST_BUDGET_TOKENS`` are the caller's to
    refuse. ``cache`` puts breakpoints in, for ``form="anthropic"`` only.
    """
    per_mille = thousandths(stored.calibration)
    limit = stored.hard_limit_tokens
    room = raw_room(limit if budget_tokens is None else min(limit, budget_tokens), per_mille)
    _, fragments = parse_lines(stored.body)
    plan = _whole(stored, fragments)
    share = min(room, raw_room(int(limit * SHARE), per_mille))
    recall = _NO_RECALL
    shortener = Shortener(counter)
    if _tokens(plan) > room:
        plan, recall = _fitted(stored, fragments, room, share, shortener, recalled)
    elif recalled is not None and recalled.items:
        recall = _recall(plan, recalled, min(share, room - _tokens(plan)), shortener)
    if recall.fragment is not None:
        plan.fragments = [*plan.fragments, recall.fragment]
    failure = recalled.failure if recalled is not None else ""
    return _served(stored, fragments, plan, recall, failure, per_mille, form, cache)


def _whole(stored: StoredContext, fragments: list[Fragment]) -> Plan:
    if not stored.system.strip():  # no provider takes a blank one
        return Plan("", 0, stored.tools_tokens, fragments)
    return Plan(stored.system, stored.system_tokens, stored.tools_tokens, fragments)


def _tokens(plan: Plan) -> int:
    return plan.system_tokens + plan.tools_tokens + sum(fragment.tokens for fragment in plan.fragments)


def _fitted(
    stored: StoredContext,
    fragments: list[Fragment],
    room: int,
    share: int,
    shortener: Shortener,
    recalled: RecallInput | None,
) -> tuple[Plan, Recall]:
    parts = Parts.of(fragments, stored.covers_to)
    reserve = 0
    if recalled is not None and recalled.items:
        # First with recall's whole share kept free, then with what it really takes.
        first = Planner(parts, _whole(stored, []), room, shortener).fit(share)
        reserve = _recall(first, recalled, min(share, room - _tokens(first)), shortener).tokens
    plan = Planner(parts, _whole(stored, []), room, shortener).fit(reserve)
    if recalled is None or not recalled.items:
        return plan, _NO_RECALL
    return plan, _recall(plan, recalled, min(share, room - _tokens(plan)), shortener)


def _recall(plan: Plan, recalled: RecallInput, room: int, shortener: Shortener) -> Recall:
    if not can_stand_after(plan.fragments):
        return Recall(None, (), (LeftOut("recall", None, "no_user_turn_at_the_end"),))
    present = frozenset(one.seq for one in plan.fragments if one.part not in ("gap", "closer"))
    return choose_recall(recalled.items, present, room, shortener)


def _served(
    stored: StoredContext,
    fragments: Sequence[Fragment],
    plan: Plan,
    recall: Recall,
    failure: str,
    per_mille: int,
    form: Format,
    cache: Ttl | None,
) -> ServedContext:
    raw: Counter[str] = Counter(system=plan.system_tokens, tools=plan.tools_tokens)
    for fragment in plan.fragments:
        raw[section_of(fragment)] += fragment.tokens
    left_out = [*_yielded_before(fragments, plan.fragments), *plan.left_out, *recall.left_out]
    if failure:
        left_out.append(LeftOut("recall", None, failure))
    return ServedContext(
        version=stored.version,
        covers_to=stored.covers_to,
        status=stored.status,
        system=plan.system,
        messages=_messages(plan, form, cache),
        cache=cache,
        total_tokens=served_tokens(raw.total(), per_mille),
        sections=served_sections({name: tokens for name, tokens in raw.items() if tokens}, per_mille),
        recalled=tuple(
            ServedRecall(one.item.seq, one.item.role, one.item.score, served_tokens(one.tokens, per_mille))
            for one in recall.used
        ),
        left_out=tuple(_served_left_out(one, per_mille) for one in left_out),
        open_calls=stored.open_calls if plan.keeps_open_round else (),
    )


def _messages(plan: Plan, form: Format, cache: Ttl | None) -> bytes:
    if form == "openai":
        return encode(openai_messages(plan.fragments, plan.system))
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


def _served_left_out(one: LeftOut, per_mille: int) -> ServedLeftOut:
    tokens = None if one.tokens is None else served_tokens(one.tokens, per_mille)
    return ServedLeftOut(one.part, tokens, one.reason, one.first_seq, one.last_seq)
