"""What the offline extractor takes for a fact, sentence by sentence."""

import re

import pytest

from prefold.facts.relations import known, normal_relation
from prefold.facts.rows import CATEGORIES
from prefold.memory.extracting import extract_offline
from prefold.memory.extracting.rules import CHINESE, ENGLISH
from prefold.memory.extracting.rules_chinese_ended import ENDED_CHINESE
from prefold.memory.extracting.rules_english_ended import ENDED
from prefold.memory.extracting.vocabulary import KIN, KNOWN_PEOPLE
from tests.support.compaction import REF, users
from tests.support.statements import STATED, TAKEN_BACK, TYPED, TYPED_NOTHING, UNSTATED

LEAST_RECALL = 0.97


def found_in(*texts: str) -> list[tuple[str, str]]:
    return [(row.relation, row.object) for row in extract_offline(users(*texts), REF) if not row.retracts]


def test_what_people_type_gives_its_facts() -> None:
    missed = [(said, rows) for said, rows in TYPED if not {*rows} <= {*found_in(said)}]
    assert len(TYPED) >= 160
    assert 1 - len(missed) / len(TYPED) >= LEAST_RECALL, missed


def test_what_people_type_without_stating_anything_gives_none() -> None:
    stored = {said: rows for said in TYPED_NOTHING if (rows := found_in(said))}
    assert len(TYPED_NOTHING) >= 140
    assert not stored


def test_each_rule_finds_a_relation_of_the_one_table_under_its_own_name() -> None:
    for rule in (*ENGLISH, *CHINESE, *ENDED, *ENDED_CHINESE):
        if "{kind}" not in rule.relation:
            assert normal_relation(rule.relation) == rule.relation
            assert known(rule.relation) is not None


def test_whoever_belongs_to_a_user_has_a_relation() -> None:
    plain = re.sub(r"\(\?:(?:\w+\|)+\w+\) \(brother\|sister\)|\(\?:", "", f"{KIN[3:-1]}|{KNOWN_PEOPLE[3:-1]}")
    kinds = {re.sub(r"\[(\w)\w\]", r"\1", kind).replace("?", "").strip("()") for kind in plain.split("|")} - {""}
    assert len(kinds) > 40
    unknown = {kind for kind in kinds if known(normal_relation(kind)) is None}
    assert unknown <= {"older", "younger", "big", "little", "elder", "twin"}
    assert all(known(normal_relation(f"{size} sister")) for size in unknown)


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("My favorite color is blue.", "我最喜欢的颜色是蓝色"),
        ("My sister is called Lin.", "我妹妹叫小林"),
        ("I live in Hangzhou.", "我住在杭州"),
        ("I have a golden retriever.", "我养了一只金毛"),
    ],
)
def test_both_languages_give_one_key(english: str, chinese: str) -> None:
    assert {relation for relation, _ in found_in(english)} == {relation for relation, _ in found_in(chinese)} != set()


@pytest.mark.parametrize(
    ("said", "rows"),
    [
        ("My email has changed. It's new@post.example now.", [("email", "new@post.example")]),
        ("I have a beagle. His name is Biscuit.", [("has_pet", "beagle"), ("has_pet", "Biscuit")]),
        ("My brother has a beagle. His name is Biscuit.", []),
        ("Has my email changed? It's old@post.example.", []),
        ("I no longer work at Acme, I'm at Mozilla now.", [("works_at", "Mozilla")]),
        ("My email isn't old@post.example anymore, it's new@post.example.", [("email", "new@post.example")]),
        ("My email is no longer old@post.example. It's new@post.example.", [("email", "new@post.example")]),
        ("My email has changed from old@post.example to new@post.example.", [("email", "new@post.example")]),
        ("My name isn't Anna, it's Annette.", [("name", "Annette")]),
        ("My name isn't Anna, it's complicated.", []),
        ("My brother's name isn't Ben, it's Tim.", [("brother", "Tim")]),
        ("My budget isn't $3000, it's $2000.", [("budget", "$2000")]),
        ("我的邮箱改成li@post.example了", [("email", "li@post.example")]),
        ("我的邮箱换了。现在是 li@post.example", [("email", "li@post.example")]),
        ("我朋友有一只猫，名字叫豆豆", []),
        ("我的邮箱不是li@post.example，是wang@post.example", [("email", "wang@post.example")]),
        ("我的邮箱已经不是 li@post.example，而是 wang@post.example。", [("email", "wang@post.example")]),
        ("我的手机号不是13800001111，现在是13900002222", [("phone", "13900002222")]),
        ("我的邮箱不是li@post.example，应该是wang@post.example", []),
        ("我的邮箱不是li@post.example，是老板的", []),
    ],
)
def test_a_pronoun_stands_for_what_was_named_before_it_and_for_nothing_else(
    said: str, rows: list[tuple[str, str]]
) -> None:
    assert found_in(said) == rows


@pytest.mark.parametrize(
    ("said", "rows"),
    [
        ("My brother told me this. I live in Oslo.\n\nI work at Acme.", [("works_at", "Acme")]),
        ("Patient note\n\nI'm allergic to nuts.\n\nI work at Acme.", [("works_at", "Acme")]),
        ("I told my doctor this. I'm allergic to nuts.", [("allergic_to", "nuts")]),
        ("My sister told me this morning. I live in Oslo.", [("lives_in", "Oslo")]),
        ("Let me tell you this. I love jazz.", [("likes", "jazz")]),
        ("A quick note. I'm allergic to nuts.", [("allergic_to", "nuts")]),
        ("My notes. I live in Oslo.", [("lives_in", "Oslo")]),
        ("我就这么说吧。我住在上海。", [("lives_in", "上海")]),
    ],
)
def test_others_speak_to_the_end_of_the_paragraph_that_is_announced_and_no_further(
    said: str, rows: list[tuple[str, str]]
) -> None:
    assert found_in(said) == rows


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("I'm allergic to nuts y vivo en Madrid", "nuts"),
        ("I love jazz und wohne in Berlin.", "jazz"),
        ("I love tea et j'habite à Paris", "tea"),
        ("I love sturm und drang poetry", "sturm und drang poetry"),
        ("I love salsa y merengue dancing", "salsa y merengue dancing"),
        ("Great, I love hiking in the rain", "hiking in the rain"),
        ("I love bug hunting", "bug hunting"),
    ],
)
def test_a_thing_ends_where_another_language_begins_and_is_no_sarcasm_for_a_word(said: str, named: str) -> None:
    assert [one for _, one in found_in(said)] == [named]


def test_a_denial_and_its_correction_in_chinese_end_one_address_and_tell_the_other() -> None:
    rows = extract_offline(users("我的邮箱不是li@post.example，是wang@post.example。"), REF)
    assert [(row.relation, row.object, row.retracts) for row in rows] == [
        ("email", "li@post.example", True),
        ("email", "wang@post.example", False),
    ]


def test_a_childs_age_is_kept_under_the_childs_name() -> None:
    rows = extract_offline(users("My daughter Mia is 7. My son is 4. We have two kids, Ben (3) and Lotte (9)."), REF)
    ages = [(row.subject, row.relation, row.object) for row in rows if "age" in row.relation]
    assert ages == [("Mia", "age", "7"), ("user", "son_age", "4"), ("Ben", "age", "3"), ("Lotte", "age", "9")]


@pytest.mark.parametrize("kind", UNSTATED)
def test_no_sentence_that_only_seems_to_state_something_becomes_a_fact(kind: str) -> None:
    stored = {text: rows for text in UNSTATED[kind] if (rows := extract_offline(users(text), REF))}
    assert not stored


def test_the_corpus_of_sentences_that_state_nothing_is_large_enough_to_mean_something() -> None:
    assert sum(len(texts) for texts in UNSTATED.values()) >= 120


def test_nearly_all_plain_statements_are_found_with_their_relation_and_object() -> None:
    missed = [said for said, relation, named in STATED if (relation, named) not in found_in(said)]
    assert len(STATED) >= 150
    assert 1 - len(missed) / len(STATED) >= LEAST_RECALL, missed


def test_every_plain_statement_says_one_thing_of_a_known_category_about_the_user() -> None:
    for said, _, _ in STATED:
        for row in extract_offline(users(said), REF):
            assert row.subject == "user" or (row.relation == "age" and row.subject in said)
            assert row.category in CATEGORIES
            assert 0.5 <= row.confidence <= 1
            assert row.said in said


@pytest.mark.parametrize(("said", "relation", "named"), TAKEN_BACK)
def test_what_a_user_takes_back_is_a_retraction_of_the_same_key(said: str, relation: str, named: str) -> None:
    rows = extract_offline(users(said), REF)
    assert (relation, named, True) in [(row.relation, row.object, row.retracts) for row in rows]
    assert not [row for row in rows if row.relation == relation and not row.retracts]
