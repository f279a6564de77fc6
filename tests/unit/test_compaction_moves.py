"""A change of plans is told with its newest value; what only looks like one changes nothing."""

import pytest

from prefold.compaction.ledger.moves import is_tentative
from prefold.compaction.ledger.things import Thing, things_in
from prefold.compaction.ledger.worth import statement_worth
from prefold.compaction.reading.values import find_values
from tests.support.compaction import REF, ledger_of, new_cache, small_talk, stored, summarize
from tests.support.planted.moved import BESIDE, MOVED
from tests.support.planted.serving import is_shown, is_shown_as_current
from tests.support.planted.wordings import Planted
from tests.unit.test_compaction_corrections import lines_of


def only_thing(sentence: str) -> Thing:
    (thing,) = things_in(sentence, find_values(sentence))
    return thing


@pytest.mark.parametrize("moved", MOVED, ids=lambda moved: moved.said)
def test_the_new_value_is_current_and_the_old_one_is_not(moved: Planted) -> None:
    text = "\n".join(lines_of(moved.said, moved.corrected))
    assert is_shown(moved, text)
    assert not is_shown_as_current(moved, text)
    assert "replaces" in text


@pytest.mark.parametrize(("before", "after"), BESIDE)
def test_other_things_questions_and_wondering_replace_nothing(before: str, after: str) -> None:
    turns = [stored(1, "user", before), *small_talk(2, 3), stored(5, "user", after), *small_talk(6, 4)]
    ledger = ledger_of(turns)
    assert ledger.replacements.seqs == set()
    assert [entry.text for entry in ledger.entries if entry.replaces or entry.outdated] == []


def test_a_summary_marks_what_was_moved() -> None:
    said = "Delivery by 14 April is fine, and call Jo at 415-555-0122."
    turns = [stored(1, "user", said), *small_talk(2, 3), stored(5, "user", "Delivery by 2 April instead, please.")]
    lines = [line for line in summarize(turns, 300).text.splitlines() if "14 April" in line]
    assert all("→" in line or "replace" in line for line in lines)


def test_of_two_values_of_one_thing_the_last_is_only_marked() -> None:
    turns = [*small_talk(1, 1), stored(2, "user", "A meeting on 3 May."), stored(3, "user", "A meeting on 5 May.")]
    ledger = ledger_of([*turns, stored(4, "user", "The meeting is on 9 May now.")])
    told = {entry.text: entry.outdated for entry in ledger.entries}
    assert told["A meeting on 3 May."] == ()
    assert told["A meeting on 5 May."] == (("5 May", 4),)


@pytest.mark.parametrize(("turns", "replaced"), [(40, {1}), (90, set())])
def test_a_move_reaches_back_some_sixty_turns(turns: int, replaced: set[int]) -> None:
    early = [stored(1, "user", "Pickup on 4 May."), stored(2, "user", "The pickup of 7 kg."), *small_talk(3, turns)]
    ledger = ledger_of([*early, stored(turns + 3, "user", "We need the pickup on 9 May now.")])
    assert ledger.replacements.seqs == replaced


def test_another_thing_named_last_is_not_what_was_moved() -> None:
    turns = [stored(1, "user", "Delivery by 14 April."), stored(2, "user", "My party is on 5 May.")]
    ledger = ledger_of([*turns, stored(3, "user", "Delivery by 2 April instead.")])
    assert [entry.replaces for entry in ledger.entries if "2 April" in entry.text] == ["14 April"]
    assert any("5 May" in entry.text and not entry.outdated for entry in ledger.entries)


@pytest.mark.parametrize(
    ("sentence", "nouns", "apart"),
    [
        ("The flight to Milan is now at 9:05 am.", {"flight"}, {"milan"}),
        ("I asked for a loan of $500.", {"loan"}, set()),
        ("Budget for the venue: $2,000.", {"budget"}, {"venue"}),
        ("A fee of $300 for drinks.", {"fee"}, {"drinks"}),
        ("Tom says his rent of $1,200 is high.", {"rent"}, {"his"}),
        ("周二的会议在下午3点。", {"会议"}, {"周二"}),
        ("It is at 10 am.", set(), set()),
    ],
)
def test_a_value_belongs_to_the_noun_beside_it(sentence: str, nouns: set[str], apart: set[str]) -> None:
    thing = only_thing(sentence)
    assert thing.nouns == nouns
    assert thing.apart == apart


@pytest.mark.parametrize("sentence", ["What if we moved it to the 5th?", "Is the 2nd possible?", "改成5号怎么样？"])
def test_asking_is_tentative(sentence: str) -> None:
    assert is_tentative(sentence)


@pytest.mark.parametrize(
    "sentence", ["Could you move it to the 5th, please?", "请改成5号。", "Delivery by 2 April now."]
)
def test_ordering_politely_is_not(sentence: str) -> None:
    assert not is_tentative(sentence)


def worth_at_the_beginning(sentence: str) -> float:
    (reading,) = new_cache().read(REF, [stored(1, "user", sentence)])
    found = statement_worth(reading.units[0], 1)
    return found[1] if found else 0.0


@pytest.mark.parametrize("sentence", ["It rained as it did the day before 3.", "The bus number 42 was late."])
def test_a_bare_number_is_no_essential_statement(sentence: str) -> None:
    assert worth_at_the_beginning(sentence) < 3


@pytest.mark.parametrize("sentence", ["My lucky number is 42.", "The order is NP-33018.", "Ship it to Antwerp."])
def test_what_tells_of_the_speaker_or_names_something_is(sentence: str) -> None:
    assert worth_at_the_beginning(sentence) >= 3
