"""The ledger: what must survive, newest first, nothing twice."""

from dataclasses import replace

import pytest

from prefold.compaction.ledger.collect import EntryKind
from prefold.compaction.ledger.text import render_ledger
from prefold.tokens import load_counter
from tests.support.compaction import call, ledger_of, result, small_talk, stored, talk, users

PLANTED = [
    ("I am allergic to peanuts.", "peanuts", EntryKind.CONSTRAINT),
    ("My budget is $3000 for 10 days.", "$3000", EntryKind.CONSTRAINT),
    ("You can reach me at ann.lee@example.org.", "ann.lee@example.org", EntryKind.IDENTITY),
    ("It is about order LF-4827-19306.", "LF-4827-19306", EntryKind.IDENTITY),
    ("I live in Rotterdam.", "Rotterdam", EntryKind.IDENTITY),
    ("The deadline is 14 March 2025.", "14 March 2025", EntryKind.CONSTRAINT),
    ("Always answer in short sentences.", "short sentences", EntryKind.CONSTRAINT),
    ("I prefer trains to planes.", "trains", EntryKind.PREFERENCE),
    ("我对花生过敏。", "花生", EntryKind.CONSTRAINT),
    ("我的邮箱是 wang@example.cn。", "wang@example.cn", EntryKind.IDENTITY),
    ("预算不超过5000元。", "5000元", EntryKind.CONSTRAINT),
    ("订单号是 DD20240517。", "DD20240517", EntryKind.IDENTITY),
]
REPLACED = [
    ("My email is old@example.org.", "My email is new@example.org now.", "old@example.org", "new@example.org"),
    ("My budget is $3000.", "Actually, my budget is $2500.", "$3000", "$2500"),
    ("Book it for the 12th.", "No, I meant the 14th.", "the 12th", "the 14th"),
    ("I arrive on March 3.", "Sorry, it's March 5, not March 3.", "March 3", "March 5"),
    ("My name is Ann.", "My name is Anna, actually.", "Ann", "Anna"),
    ("The deadline is 14 March.", "The deadline has changed to 21 March.", "14 March", "21 March"),
    ("Please change my phone to 415-555-0100.", "Change my phone to 415-555-0199.", "415-555-0100", "415-555-0199"),
    ("我的邮箱是 a@example.cn。", "不是 a@example.cn，是 b@example.cn。", "a@example.cn", "b@example.cn"),
    ("预算是3000元。", "预算改成2500元。", "3000元", "2500元"),
    ("出发日期是5月3日。", "说错了，应该是5月8日。", "5月3日", "5月8日"),
]


def text_of(ledger: object, room: int = 2000) -> str:
    return render_ledger(ledger, room, load_counter(), "en").text  # type: ignore[arg-type]


@pytest.mark.parametrize(("said", "value", "kind"), PLANTED)
def test_what_a_user_states_is_kept_word_for_word(said: str, value: str, kind: EntryKind) -> None:
    turns = [*small_talk(1, 6), stored(7, "user", said), *small_talk(8, 20)]
    ledger = ledger_of(turns)
    entry = next(entry for entry in ledger.entries if value in entry.text)
    assert (entry.kind, entry.seq, entry.by_person) == (kind, 7, True)
    assert f"[7 user] {said}" in text_of(ledger)


@pytest.mark.parametrize(("before", "after", "old", "new"), REPLACED)
def test_the_newest_value_wins_and_names_what_it_replaced(before: str, after: str, old: str, new: str) -> None:
    ledger = ledger_of([*users(before), *small_talk(3, 2), stored(5, "user", after)])
    lines = [line for line in text_of(ledger).splitlines() if line.startswith("[")]
    assert [line for line in lines if new in line and "replaces" in line and "[1]" in line]
    assert not [line for line in lines if line.startswith("[1 user]")]
    assert ledger.replacements.seqs == {1}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("My budget is $3000.", "The hotel costs $200."),
        ("I arrive on March 3.", "I also need a car on March 5."),
        ("My email is a@example.org.", "My email is a@example.org, as I said."),
        ("My budget is $3000 for 10 days.", "My budget is $3000."),
        ("Is my budget of $3000 enough?", "Actually, the museum is free."),
    ],
)
def test_another_value_replaces_nothing(before: str, after: str) -> None:
    ledger = ledger_of(users(before, after))
    assert not ledger.replacements.seqs
    assert "replaces" not in text_of(ledger)


def test_a_thing_said_twice_is_kept_once() -> None:
    ledger = ledger_of(users("I am allergic to peanuts.", "I am allergic to peanuts!", "I'm also allergic to cats."))
    assert [entry.text for entry in ledger.entries] == ["I am allergic to peanuts.", "I'm also allergic to cats."]


def test_a_persons_words_rank_before_a_tools() -> None:
    turns = talk(
        ("user", "My user id is mia_li_3668."),
        ("assistant", call("get_user", "c1", user_id="mia_li_3668")),
        ("user", result("c1", '{"email":"mia.li@example.org","dob":"1990-04-05","status":"active"}')),
    )
    ledger = ledger_of(turns)
    assert ledger.entries[0].text == "My user id is mia_li_3668."
    assert "[3 tool] email: mia.li@example.org; dob: 1990-04-05" in text_of(ledger)
    assert "active" not in text_of(ledger)


def test_an_assistants_promise_is_no_constraint_of_the_user() -> None:
    ledger = ledger_of(talk(("user", "Hello there."), ("assistant", "You must never eat peanuts after 6 pm.")))
    assert not [entry for entry in ledger.entries if entry.kind is EntryKind.CONSTRAINT]


def test_both_partners_of_a_conversation_with_names_are_people() -> None:
    turns = [stored(1, "user", "Hi Mel!", name="Ann"), stored(2, "assistant", "I am allergic to cats.", name="Mel")]
    assert ledger_of(turns).entries[0].speaker == "Mel"


@pytest.mark.parametrize("room", [0, 10, 27, 60, 119, 120, 300, 1000])
def test_the_text_keeps_within_its_room(room: int) -> None:
    said = [text for text, _, _ in PLANTED] + [text for pair in REPLACED for text in pair[:2]]
    ledger = ledger_of(users(*said))
    rendered = render_ledger(ledger, room, load_counter(), "en")
    assert rendered.tokens <= room
    assert rendered.tokens == load_counter().count(rendered.text)
    assert len(rendered.entries) + rendered.left_out == len(ledger.entries)
    assert bool(rendered.text) == (room >= 10)


def test_what_stands_beside_it_is_not_told_again() -> None:
    ledger = ledger_of(users("I am allergic to peanuts.", "I can only come on Friday."))
    rendered = render_ledger(ledger, 500, load_counter(), "en", ["Hello. I am allergic to peanuts. Bye."])
    assert [entry.text for entry in rendered.entries] == ["I can only come on Friday."]


def test_a_gate_can_ask_what_a_text_dropped() -> None:
    ledger = ledger_of(users("My budget is $3000.", "I can only come on Friday."))
    assert ledger.coverage("") == 0
    assert [entry.text for entry in ledger.missing_from("budget: $3000")] == ["I can only come on Friday."]
    assert 0 < ledger.coverage("budget: $3000") < 1
    assert ledger.coverage("MY BUDGET IS  $3000. i can only come on Friday.") == 1
    assert ledger_of([]).coverage("") == 1


def test_every_earlier_telling_of_a_replaced_value_is_marked() -> None:
    turns = users(
        "My email is a@example.org.", "As I said, my email is a@example.org.", "Sorry, my email is b@example.org."
    )
    lines = text_of(ledger_of(turns))
    assert "b@example.org" in lines
    assert lines.count("a@example.org") == 1  # in the note


def test_a_tool_that_still_has_the_old_value_does_not_bring_it_back() -> None:
    said = users("My email is a@example.org.", "No, my email is b@example.org.")
    looked_up = talk(
        ("assistant", call("get_user", "c1", id="u-17")), ("user", result("c1", '{"email":"a@example.org"}'))
    )
    late = [*said, *(replace(turn, seq=turn.seq + 4) for turn in looked_up)]
    assert "email: a@example.org" in text_of(ledger_of(late))  # said after the correction: it may be news
    early = [*said[:2], *(replace(turn, seq=turn.seq + 2) for turn in looked_up), replace(said[2], seq=5)]
    assert "email: a@example.org" not in text_of(ledger_of(early))


def test_a_statement_of_which_one_value_was_replaced_says_so() -> None:
    ledger = ledger_of(users("My budget is $3,000 for 10 days.", "Actually, my budget is $2,500."))
    assert '[1 user] My budget is $3,000 for 10 days. ("$3,000" is replaced by [3])' in text_of(ledger)
    assert "(replaces" in text_of(ledger)


def test_a_value_that_came_back_is_current_again() -> None:
    ledger = ledger_of(users("My budget is $3000.", "My budget is $2500 now.", "Sorry, my budget is $3000."))
    lines = [line for line in text_of(ledger).splitlines() if line.startswith("[")]
    assert lines == ['[5 user] Sorry, my budget is $3000. (replaces "$2500" [3])']
