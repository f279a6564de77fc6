"""Whose words the offline extractor reads, and what it says of where they came from."""

import random
import time
from dataclasses import replace

import pytest

from prefold.memory.extracting import extract_offline
from prefold.memory.extracting.said import own_sentences, said_at_ms
from prefold.storage.types import SessionRef, StoredTurn
from tests.support.compaction import REF, call, result, stored, talk, users
from tests.support.statements import STATED, UNSTATED

HOME = "I live in Graz and I'm allergic to walnuts."


def pairs(*said: tuple[str, object]) -> set[tuple[str, str]]:
    return {(row.relation, row.object) for row in extract_offline(talk(*said), REF)}  # type: ignore[arg-type]


def test_a_row_names_its_turn_its_sentence_and_its_time() -> None:
    turn = replace(stored(7, "user", f"Good to know. {HOME}", ts="2026-05-03T10:00:00Z"), revision=2)
    rows = extract_offline([turn], REF)
    assert [(row.relation, row.object) for row in rows] == [("lives_in", "Graz"), ("allergic_to", "walnuts")]
    for row in rows:
        assert row.said == HOME
        assert (row.source.session, row.source.incarnation) == (REF.session, REF.incarnation)
        assert (row.source.turn_id, row.source.seq, row.source.revision) == ("t7", 7, 2)
        assert row.said_at_ms == 1_777_802_400_000
        assert row.origin == "extracted"


def test_a_turn_whose_producer_told_no_time_has_the_one_that_it_was_stored_at() -> None:
    assert extract_offline(users(HOME), REF, stored_at_ms=99)[0].said_at_ms == 99
    assert said_at_ms(stored(1, "user", HOME, ts="yesterday"), 5) == 5
    assert said_at_ms(stored(1, "user", HOME, ts="1951-05-03T10:00:00Z"), 5) == 5


def test_each_turn_keeps_its_own_time_and_a_time_without_zone_is_utc() -> None:
    turns = [
        stored(1, "user", "I live in Graz.", ts="2023-05-03T12:00:00+02:00"),
        stored(2, "user", "I collect stamps.", ts="2023-05-03T10:00:00"),
        stored(3, "user", "I love jazz."),
    ]
    times = [row.said_at_ms for row in extract_offline(turns, REF, stored_at_ms=99)]
    assert times == [1_683_108_000_000] * 2 + [99]
    for told in (1_683_108_000, 1_683_108_000_000):
        assert said_at_ms(replace(turns[0], verbatim_json=b'{"ts": %d}' % told)) == 1_683_108_000_000


def test_english_around_a_name_in_ideographs_is_read_as_english() -> None:
    assert pairs(("user", "I live in 上海 and I love hiking.")) >= {("likes", "hiking")}


def test_names_are_edges_and_plain_words_are_none() -> None:
    found = {row.object: row.is_entity for row in extract_offline(users(HOME, "I work for a small law firm."), REF)}
    assert found == {"Graz": True, "walnuts": False, "small law firm": False}


def test_only_the_users_own_words_are_read() -> None:
    assert not pairs(("assistant", HOME))
    assert not pairs(("system", HOME))
    assert not pairs(("assistant", call("look", "c1", q=HOME)), ("user", result("c1", HOME)))
    assert not extract_offline([replace(users(HOME)[0], removed=True)], REF)


@pytest.mark.parametrize(
    "text",
    [
        f"Summarise this:\n\n<document>\n{HOME}\n</document>",
        f"> {HOME}",
        f"```\n{HOME}\n```",
        f'She wrote: "{HOME}"',
        f"“{HOME}”",
        f"Translate into French: {HOME}",
        f"{HOME} Can you proofread this?",
        f"Write a story about a sailor. {HOME}",
        f"From: Mo\nSubject: hello\n\n{HOME}",
        f"[Prefold: recalled]\n{HOME}\n[Prefold: end of recalled]\nWhat now?",
        f"| name | text |\n| a | {HOME} |",
        "请把下面的句子翻译成英文：我住在上海，对花生过敏。",
    ],
)
def test_what_is_passed_on_played_or_worked_on_is_nobodys_own_word(text: str) -> None:
    assert not extract_offline(users(text), REF)


def test_a_part_that_is_played_lasts_until_it_is_ended() -> None:
    said = users(
        "I love chess.",
        "Let's role-play: you are the waiter.",
        "I'm allergic to lobster.",
        "OK, stop the role play.",
        "I live in Graz.",
    )
    assert {row.object for row in extract_offline(said, REF)} == {"chess", "Graz"}


@pytest.mark.parametrize(
    "asked", ["Can you proofread something?", "Translate the following to German", "帮我翻译一段话"]
)
def test_a_text_that_a_task_was_announced_for_is_nobodys_own_word(asked: str) -> None:
    said = users("I love chess.", asked, HOME, "I collect stamps.")
    assert {row.object for row in extract_offline(said, REF)} == {"chess", "stamps"}


def test_a_joke_that_the_next_sentence_takes_back_is_no_fact() -> None:
    assert pairs(("user", "I live in Atlantis. Just kidding! I live in Graz.")) == {("lives_in", "Graz")}


def test_the_question_of_a_sentence_is_cut_off_and_its_statement_is_kept() -> None:
    assert pairs(("user", "I live in Graz, where can I buy skis?")) == {("lives_in", "Graz")}
    assert not pairs(("user", "I live in Graz, don't I?"))


def test_doubt_in_one_clause_leaves_the_others_alone_unless_it_spreads() -> None:
    assert pairs(("user", "I live in Graz, but I might move to Linz in May.")) == {("lives_in", "Graz")}
    assert not pairs(("user", "I live in Graz, I guess."))
    assert not pairs(("user", "Perhaps I should say that I'm new, and I live in Graz."))


def test_of_two_people_who_talk_only_the_one_whose_memory_it_is_is_read() -> None:
    turns = [
        stored(1, "user", "Hey Mel! I have two kids and I love pottery.", name="Caro"),
        stored(2, "assistant", "Nice! I live in Boston and I love running.", name="Mel"),
        stored(3, "user", "You love running, I love swimming. My friend Mel lives in Boston.", name="Caro"),
    ]
    rows = {(row.relation, row.object) for row in extract_offline(turns, REF)}
    assert rows == {("has_family", "two kids"), ("likes", "pottery"), ("likes", "swimming"), ("friend", "Mel")}


def test_a_new_value_has_the_key_of_the_old_one() -> None:
    rows = extract_offline(
        users("My email is a@old.example.", "My email is now b@new.example.", "I moved to Linz."), REF
    )
    assert [(row.relation, row.is_single) for row in rows] == [("email", True), ("email", True), ("lives_in", True)]


def test_the_same_turns_give_the_same_rows_and_one_turn_knows_no_other_but_for_plays() -> None:
    texts = [said for said, _, _ in STATED]
    random.Random(5).shuffle(texts)
    turns = users(*texts)
    together = extract_offline(turns, REF)
    assert together == extract_offline(turns, REF)
    assert together == [row for turn in turns for row in extract_offline([turn], REF)]
    assert {row.source.session for row in extract_offline(turns, SessionRef("a", "b", "c"))} == {"b"}


def test_statements_among_seeming_ones_are_still_found_and_only_they() -> None:
    """Each in a turn of its own, the seeming ones around them."""
    hedges = [text for kind in ("hedged", "asked", "past", "passing") for text in UNSTATED[kind]]
    turns = users(*(text for pair in zip(hedges, ["I collect stamps."] * len(hedges), strict=True) for text in pair))
    assert {row.object for row in extract_offline(turns, REF)} == {"stamps"}
    assert len(extract_offline(turns, REF)) == len(hedges)


@pytest.mark.parametrize("piece", ["I live in ", "my my my ", "and I ", "“", "( ", "我喜欢", "a, b, ", "'tis I'm "])
def test_time_grows_with_the_text_and_not_faster(piece: str) -> None:
    turns = [users(piece * (size // len(piece)))[:1] for size in (4_000, 20_000)]
    assert all(sum(1 for _ in own_sentences(one)) < 40_000 for one in turns)
    short, long = (min(_seconds(one) for _ in range(2)) for one in turns)
    assert long < 12 * short + 0.2


def _seconds(turns: list[StoredTurn]) -> float:
    began = time.process_time()
    extract_offline(turns, REF)
    return time.process_time() - began
