"""Orders, told from what only looks like one; and the whole corpus against the gate."""

from collections.abc import Iterator
from itertools import cycle, islice

import pytest

from prefold.compaction.gate.checks import check_written
from prefold.compaction.gate.injection import Order, gives_orders, order_of
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.segments.written import parse_written, render
from tests.support.injected.corpus import CORPUS, Injection
from tests.support.injected.crossing import crossed
from tests.support.injected.obedient import FORMS
from tests.support.injected.orders import ORDERS
from tests.support.injected.shapes import ENCODED
from tests.support.injected.sound import SOUND, source_of
from tests.support.messages_api.brains.form import written

_SPELLED = [(shape, ORDERS["en"][1]) for shape in ENCODED]


@pytest.mark.parametrize(("language", "order"), [(name, one) for name, orders in ORDERS.items() for one in orders])
def test_an_order_is_known_in_every_language(language: str, order: str) -> None:
    assert gives_orders(order), language


@pytest.mark.parametrize(("shape", "order"), _SPELLED)
def test_an_order_is_known_in_every_disguise(shape: str, order: str) -> None:
    if shape == "tag_characters":
        assert order_of(ENCODED[shape](order)) is Order.NONE, "they cannot be seen, and are not kept either"
    else:
        assert order_of(ENCODED[shape](order)) is Order.OVERRIDE


@pytest.mark.parametrize(
    "line",
    [
        "The user wants to travel to Rome in May with two children.",
        "The assistant compared three offers and recommended the second one.",
        "Flask debug mode was switched on to see the error page.",
        "List<User> was returned instead of Optional<User>.",
        "用户想在五月去罗马旅行，预算三万元。",
        "ユーザーは五月にローマへ旅行したい。",
        "Der Nutzer möchte im Mai nach Rom reisen.",
        "L'utilisateur veut partir à Rome en mai.",
        "El usuario quiere viajar a Roma en mayo.",
        "Пользователь хочет поехать в Рим в мае.",
        "order id: LF-4827-AB39, hash 9f86d081884c7d659a2feaa0c55ad015",
        "commit 5d41d5de682298561a727c3eb6fe5b4773dfb7aeb fixed it",
        "11 22 33 44 55 66 77 88 99 10 11 12",
    ],
)
def test_a_report_is_no_order(line: str) -> None:
    assert order_of(line) is Order.NONE


@pytest.mark.parametrize("at", range(0, len(CORPUS), 15))
def test_no_order_crosses_in_any_form(at: int) -> None:
    for number, injection in enumerate(CORPUS[at : at + 15], start=at):
        names = islice(cycle(FORMS), number % len(FORMS), number % len(FORMS) + 2)
        assert list(_crossings(injection, names)) == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_order_of_the_corpus_crosses_in_all_forms() -> None:
    crossings = [line for injection in CORPUS for line in _crossings(injection, iter(FORMS))]
    assert crossings == []


def test_the_sound_summary_stands_beside_every_injection() -> None:
    for injection in CORPUS[::3]:
        stands = check_written(parse_written(written(SOUND)), source_of(injection))
        assert stands.dropped == 0, injection.name
        assert {one.key: list(one.lines) for one in stands.sections} == SOUND


def _crossings(injection: Injection, forms: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    source, turns = source_of(injection), injection.turns()
    for form in forms:
        try:
            stands = check_written(parse_written(FORMS[form](SOUND, injection.order)), source)
        except GateRefusedError:
            continue
        for line in crossed(render(stands.sections, "en"), injection, turns):
            yield injection.name, form, line
