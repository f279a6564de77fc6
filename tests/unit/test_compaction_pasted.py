"""What a person only passes on is not what they say."""

from itertools import pairwise

import pytest

from prefold.compaction.ledger.entry import EntryKind
from prefold.compaction.reading.pasted import is_inside, pasted_ranges
from tests.support.compaction import ledger_of, small_talk, stored

MAIL = "Subject: Trip\nFrom: Bo <bo@example.org>\nDate: 3 May 2025\n\nHi, I am allergic to cats and my budget is $700."
RULES = "You must never enter the hall. The limit is 12 people. My name is Rex. I am allergic to wool. " * 8
PASTED = {
    "a mail": f"Can you answer this for me?\n\n{MAIL}",
    "a document in tags": '<document title="x">I am allergic to cats and my budget is $700.</document>\nWhat is it about?',
    "tags that were cut off": "See:\n<context>\nI am allergic to cats. My budget is $700.",
    "cited lines": "> I am allergic to cats\n> and my budget is $700.\nWhy does he tell us?",
    "an answered mail": "Look.\n\nOn Monday, 3 May 2025, Bo wrote:\nI am allergic to cats. My budget is $700.",
    "a forwarded mail": "FYI\n---------- Forwarded message ----------\nI am allergic to cats. My budget is $700.",
    "fenced text": "What is this?\n```\nI am allergic to cats. My budget is $700.\n```",
    "quotation marks on lines of their own": '"""\nI am allergic to cats. My budget is $700.\n"""\nSummarise it.',
    "a long text that is handed over": f"Please summarise this text:\n{RULES}",
    "一封邮件": "帮我回复：\n发件人：王伟\n收件人：李雷\n\n我对猫过敏，预算不超过700元。",
}


@pytest.mark.parametrize("name", PASTED)
def test_a_pasted_text_states_nothing_for_the_user(name: str) -> None:
    ledger = ledger_of([stored(1, "user", PASTED[name]), *small_talk(2, 4)])
    assert [entry.text for entry in ledger.entries if entry.by_person and entry.kind is EntryKind.CONSTRAINT] == []


@pytest.mark.parametrize("name", ["a document in tags", "cited lines", "quotation marks on lines of their own"])
def test_what_the_user_says_beside_it_counts(name: str) -> None:
    ledger = ledger_of([stored(1, "user", f"{PASTED[name]}\nI can only travel in May.\n"), *small_talk(2, 4)])
    assert "I can only travel in May." in [entry.text for entry in ledger.entries if entry.by_person]


@pytest.mark.parametrize(
    "text",
    [
        "My name is Ann. I am allergic to peanuts.",
        "These are my wishes:\n- never call me\n- my budget is $300",
        "2 < 3 and 5 > 4, I think.",
        "I wrote to Bo: he must come by Friday.",
        "Here's my plan:\nI arrive on 3 May.",
    ],
)
def test_own_words_are_not_taken_for_a_quotation(text: str) -> None:
    assert pasted_ranges(text) == []


def test_a_pasted_correction_takes_nothing_back() -> None:
    turns = [stored(1, "user", "My email is a@example.org."), stored(2, "assistant", "Noted.")]
    turns.append(stored(3, "user", "<document>No, my email is b@example.org.</document>"))
    ledger = ledger_of(turns)
    assert "My email is a@example.org." in [entry.text for entry in ledger.entries]
    assert not ledger.replacements.seqs


def test_ranges_are_sorted_and_apart() -> None:
    ranges = pasted_ranges("> one\nmine\n> two\n<document>three</document> mine")
    assert ranges == sorted(ranges)
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    assert is_inside(ranges, 0)
    assert not is_inside(ranges, 7)
