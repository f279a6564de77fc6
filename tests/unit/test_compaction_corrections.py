"""What was taken back is never told as current, in whatever words it was taken back."""

import pytest

from prefold.compaction.ledger.text import render_ledger
from prefold.tokens import load_counter
from tests.support.compaction import ledger_of, small_talk, stored, users

COUNTER = load_counter()
TAKEN_BACK = [
    ("Write to me at ann@old.example.", "Use ann@new.example instead from now on.", "ann@old.example", "ann@new.example"),
    ("We meet on the 12th of June.", "No, I meant the 17th of June.", "12th of June", "17th of June"),
    ("The order is AB-1001.", "Wrong number, sorry. It is AB-1002.", "AB-1001", "AB-1002"),
    ("We need 14 chairs.", "Correction: 19 chairs.", "14 chairs", "19 chairs"),
    ("The launch is on 3 May.", "The launch has moved to 9 May.", "3 May", "9 May"),
    ("Send it to Antwerp.", "Not Antwerp, I meant Ghent.", "Antwerp", "Ghent"),
    ("Her name is Katrin Stolz.", "I misspelled it, it is Catrin Stoltz.", "Katrin Stolz", "Catrin Stoltz"),
    ("聚会定在8月6号。", "聚会改成8月13号了。", "8月6号", "8月13号"),
    ("我的邮箱是a@example.cn。", "不对，我是说b@example.cn。", "a@example.cn", "b@example.cn"),
    ("预算是6000元。", "预算提到7200元吧，之前说的不算。", "6000元", "7200元"),
    ("我要去成都。", "不是成都，是重庆。", "成都", "重庆"),
    ("会議は5月3日です。", "5月3日ではなく5月8日です。", "5月3日", "5月8日"),
    ("Der Termin ist am 3. Mai.", "Nein, ich meinte den 8. Mai.", "3. Mai", "8. Mai"),
    ("Le rendez-vous est le 14 mars.", "Non, je voulais dire le 21 mars.", "14 mars", "21 mars"),
    ("Mi vuelo sale el 3 de mayo.", "No, quise decir el 8 de mayo.", "3 de mayo", "8 de mayo"),
    ("O voo sai em 3 de maio.", "Desculpe, quis dizer 8 de maio.", "3 de maio", "8 de maio"),
    ("Встреча 3 мая.", "Я имел в виду 8 мая.", "3 мая", "8 мая"),
]  # fmt: skip
NOT_TAKEN_BACK = [
    ("Our family is here.", "Your family is here, sorry!"),
    ("I am in Rome.", "I did not like Paris at all."),
    ("The museum is $5.", "The castle is $8."),
    ("We need 14 chairs.", "We also need 3 tables, sorry."),
    ("I arrive on 3 May.", "Does the shop close on 4 May?"),
]


def lines_of(*said: str) -> list[str]:
    turns = [*users(said[0]), *small_talk(3, 2), *(stored(5 + at, "user", text) for at, text in enumerate(said[1:]))]
    return [line for line in render_ledger(ledger_of(turns), 600, COUNTER, "en").text.splitlines() if line[0] == "["]


@pytest.mark.parametrize(("before", "after", "old", "new"), TAKEN_BACK)
def test_the_old_value_is_only_named_as_replaced(before: str, after: str, old: str, new: str) -> None:
    lines = lines_of(before, after)
    assert [line for line in lines if line.startswith("[5 user]") and new in line and "replaces" in line]
    assert all("is replaced by [5]" in line for line in lines if line.startswith("[1 user]"))


@pytest.mark.parametrize(("before", "after"), NOT_TAKEN_BACK)
def test_other_words_take_nothing_back(before: str, after: str) -> None:
    assert not ledger_of([*users(before), *small_talk(3, 2), stored(5, "user", after)]).replacements.seqs


def test_a_newer_value_of_the_same_name_marks_the_old_one_and_hides_neither() -> None:
    lines = lines_of("My budget is $3000.", "My budget is $40 for lunch.")
    assert '[1 user] My budget is $3000. ("$3000" is replaced by [5])' in lines
    assert len(lines) == 2


def test_a_correction_of_long_ago_reaches_the_only_value_of_its_kind() -> None:
    turns = [stored(1, "user", "My email is a@example.org."), *small_talk(2, 60)]
    turns.append(stored(62, "user", "Please use b@example.org instead from now on."))
    ledger = ledger_of(turns)
    assert "a@example.org" not in [value for entry in ledger.entries for value in entry.values]
    assert [entry.replaces for entry in ledger.entries if "b@example.org" in entry.text] == ["a@example.org"]
