"""How facts read, how they age, and the profile that is made of them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefold.facts import CATEGORIES, Category, Fact, categories_of, is_live, now_confidence, text_of
from prefold.facts.categories import TRAITS
from prefold.facts.evidence import key_of
from prefold.facts.rendering import PROFILE_CAP_TOKENS, profile_of
from prefold.facts.settling import faded_at_ms
from prefold.tokens import load_counter
from tests.support.facts import DAY_MS, START_MS

COUNTER = load_counter()
MAY_3 = 1_777_800_000_000  # 3 May 2026, 09:20 UTC


def fact(relation: str = "lives_in", obj: str = "Germany", **members: Any) -> Fact:
    given_members: dict[str, Any] = {
        "id": f"{relation}-{obj}",
        "subject": "user",
        "category": "location",
        "confidence": 0.9,
        "sources": (),
        "origin": "extracted",
        "said": "",
        "is_entity": False,
        "is_single": True,
        "first_seen_ms": MAY_3,
        "last_confirmed_ms": MAY_3,
        "expires_at_ms": None,
        **members,
    }
    return Fact(relation=relation, object=obj, **given_members)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (fact(), "User lives in Germany (said 3 May 2026)"),
        (fact("email", "a@x.de"), "User's email is a@x.de (said 3 May 2026)"),
        (fact("allergic_to", "peanuts"), "User is allergic to peanuts (said 3 May 2026)"),
        (fact("favorite_color", "blue"), "User's favorite color is blue (said 3 May 2026)"),
        (fact("collects", "stamps"), "User collects stamps (said 3 May 2026)"),
        (fact("is_afraid_of", "heights"), "User is afraid of heights (said 3 May 2026)"),
        (fact("breed", "beagle", subject="Rex"), "Rex's breed is beagle (said 3 May 2026)"),
        (fact("lives_in", "{o} {s} {0}"), "User lives in {o} {s} {0} (said 3 May 2026)"),
        (fact("lives_in", "a\nb\u2028c"), "User lives in a b c (said 3 May 2026)"),
        (fact("instruction", "answer in French"), "User asked: answer in French (said 3 May 2026)"),
    ],
)
def test_a_fact_reads_as_one_sentence_with_its_day(one: Fact, text: str) -> None:
    assert text_of(one) == text


@pytest.mark.parametrize("category", CATEGORIES)
def test_confidence_halves_with_each_half_life_of_its_category(category: Category) -> None:
    one = fact(category=category)
    half_life = TRAITS[category].half_life
    if half_life is None:
        assert now_confidence(one, MAY_3 + 36_500 * DAY_MS) == 0.9
        assert faded_at_ms(one) is None
        return
    half_life_ms = int(half_life.total_seconds() * 1000)
    assert now_confidence(one, MAY_3 + half_life_ms) == pytest.approx(0.45)
    assert now_confidence(one, MAY_3 + 2 * half_life_ms) == pytest.approx(0.225)
    assert now_confidence(one, MAY_3 - DAY_MS) == 0.9
    until = faded_at_ms(one)
    assert until is not None
    assert now_confidence(one, until) < 0.25 <= now_confidence(one, until - 2)


def test_an_allergy_does_not_wear_off() -> None:
    one = fact("allergic_to", "peanuts", category="health")
    later = MAY_3 + 3_650 * DAY_MS
    assert profile_of([one], COUNTER, later).text == text_of(one)
    assert now_confidence(one, later) == 0.9
    assert now_confidence(replace(one, relation="weight"), later) < 0.1


def test_every_category_has_a_rank_of_its_own_and_rules_come_before_likes() -> None:
    assert sorted(trait.rank for trait in TRAITS.values()) == list(range(len(CATEGORIES)))
    assert TRAITS["instruction"].rank < TRAITS["constraint"].rank < TRAITS["health"].rank < TRAITS["preference"].rank


def test_the_profile_is_one_line_a_fact_the_most_useful_first() -> None:
    facts = [fact("likes", "tea", category="preference"), fact("allergic_to", "nuts", category="health"), fact()]
    profile = profile_of(facts, COUNTER, MAY_3)
    assert profile.text.splitlines() == [text_of(facts[1]), text_of(facts[2]), text_of(facts[0])]
    assert profile.tokens == COUNTER.count(profile.text)


def test_what_is_replaced_expired_or_doubtful_is_not_in_the_profile() -> None:
    facts = [
        fact(obj="Replaced", superseded_by="x"),
        fact(obj="Expired", expires_at_ms=MAY_3),
        fact(obj="Doubtful", confidence=0.2),
        fact(obj="Kept"),
    ]
    assert profile_of(facts, COUNTER, MAY_3).text == text_of(facts[-1])
    assert profile_of(facts[:-1], COUNTER, MAY_3).text == ""


def test_a_company_is_located_where_a_user_lives() -> None:
    assert key_of("Globex", "located_in", "Porto").relation == "located_in"
    assert key_of("user", "located_in", "Porto") == key_of("user", "lives_in", "Porto")
    assert text_of(fact("located_in", "Porto", subject="Globex")).startswith("Globex is located in Porto (said ")
    assert text_of(fact("lives_in", "Porto", subject="Anna")).startswith("Anna lives in Porto (said ")


def test_it_says_how_many_facts_had_no_room_and_counts_none_that_it_would_not_show() -> None:
    facts = [fact("likes", f"dish {number}", category="preference") for number in range(61)]
    hidden = [fact(obj="Replaced", superseded_by="x"), fact(obj="Doubtful", confidence=0.2)]
    profile = profile_of([*facts, *hidden], COUNTER, MAY_3)
    assert profile.yielded == 61 - len(profile.text.splitlines()) > 0
    assert profile_of([*facts[:3], *hidden], COUNTER, MAY_3).yielded == 0
    too_long = profile_of([fact("likes", "so long " * 30)], COUNTER, MAY_3, 20)
    assert (too_long.text, too_long.yielded) == ("", 1)


def test_what_has_faded_comes_last_and_only_where_there_is_room() -> None:
    """A recording of years ago, or somebody who comes back after years, has a profile all the same."""
    old = fact("instruction", "be brief", category="location", last_confirmed_ms=MAY_3 - 3_000 * DAY_MS)
    rank_last = fact("uses", "Vim", category="other")
    profile = profile_of([old, rank_last], COUNTER, MAY_3)
    assert profile.text.splitlines() == [text_of(rank_last), text_of(old)]
    assert profile.holds_until_ms == faded_at_ms(rank_last)
    assert profile_of([old, rank_last], COUNTER, MAY_3, COUNTER.count(text_of(rank_last)) + 2).text == text_of(
        rank_last
    )
    assert profile_of([old], COUNTER, MAY_3).holds_until_ms is None


def test_a_profile_says_until_when_it_holds() -> None:
    ends = fact(obj="Oslo", expires_at_ms=MAY_3 + 5)
    profile = profile_of([fact(), ends], COUNTER, MAY_3)
    assert profile.holds_until_ms == MAY_3 + 5
    assert profile_of([fact(), ends], COUNTER, MAY_3 + 5).text == text_of(fact())
    assert profile_of([fact("name", "Ada", category="identity")], COUNTER, MAY_3).holds_until_ms is None
    likes = fact("likes", "tea", category="preference", last_confirmed_ms=MAY_3 - 1)
    wears_off = profile_of([fact(category="work"), likes], COUNTER, MAY_3).holds_until_ms
    assert wears_off is not None
    assert wears_off == faded_at_ms(likes)
    assert profile_of([fact(category="work"), likes], COUNTER, wears_off).holds_until_ms == wears_off + 1


FACTS = st.builds(
    lambda at, words, category, confidence: fact(
        "instruction", words, id=f"id{at}", category=category, confidence=confidence, last_confirmed_ms=MAY_3 - at
    ),
    st.integers(0, 10**9),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=300),
    st.sampled_from(CATEGORIES),
    st.floats(0, 1),
)


@given(facts=st.lists(FACTS, max_size=60), cap=st.integers(0, PROFILE_CAP_TOKENS))
@settings(max_examples=30)
def test_a_profile_is_never_above_its_cap_and_each_line_is_a_whole_fact(facts: list[Fact], cap: int) -> None:
    profile = profile_of(facts, COUNTER, MAY_3, cap)
    assert profile.tokens == COUNTER.count(profile.text) <= cap
    sure = {text_of(one) for one in facts if is_live(one, MAY_3) and one.confidence >= 0.25}
    assert set(profile.text.split("\n") if profile.text else []) <= sure


def test_a_line_that_does_not_fit_leaves_room_for_shorter_ones() -> None:
    long = fact("instruction", "word " * 280, category="instruction")
    short = fact()
    assert profile_of([long, short], COUNTER, MAY_3, 100).text == text_of(short)


@pytest.mark.parametrize(
    ("query", "category"),
    [
        ("what should I cook for dinner?", "health"),
        ("Which restaurant would you pick?", "health"),
        ("where do I live?", "location"),
        ("what is my account email?", "contact"),
        ("What's my dog's name?", "family"),
        ("when am I free to travel?", "constraint"),
        ("who do I work for", "work"),
        ("how old am I", "identity"),
        ("recommend a film I'd like", "preference"),
        ("any plans for next week?", "plan"),
        ("我对什么过敏？", "health"),
        ("我的邮箱是什么", "contact"),
        ("我住在哪里", "location"),
        ("我在哪家公司上班", "work"),
        ("推荐一部电影", "preference"),
    ],
)
def test_a_question_says_what_it_is_about(query: str, category: Category) -> None:
    assert category in categories_of(query)


@pytest.mark.parametrize("query", ["", "hello", "thanks!", "fix this bug: TypeError in parser.py", "早上好"])
def test_a_query_without_cues_is_about_nothing_known(query: str) -> None:
    assert categories_of(query) == frozenset()


def test_a_backends_low_confidence_is_live_and_yet_not_in_the_profile() -> None:
    one = replace(fact(), confidence=0.2, origin="backend")
    assert is_live(one, START_MS)
    assert profile_of([one], COUNTER, MAY_3).text == ""
