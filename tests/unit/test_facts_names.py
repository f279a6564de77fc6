"""Names of entities and relations in one form, however they were written."""

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prefold.facts.evidence import key_of
from prefold.facts.kinds import KINDS
from prefold.facts.known_relations import KNOWN, LASTING
from prefold.facts.names import clean, normal_name, normal_subject, normal_text
from prefold.facts.relations import denied, group_of, known, normal_object, normal_relation
from prefold.facts.rows import CATEGORIES


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Berlin", "BERLIN"),
        ("São Paulo", "Sao  paulo"),
        ("Zu\u0308rich", "Z\u00fcrich"),
        ("ＮＡＳＡ", "nasa"),
        ("the Red Cross", "Red Cross"),
        ("An Apple", "apple"),
        ("Anna's", "Anna"),
        ("Anna’s dog", "annas dog".replace("annas", "anna")),
        ("James'", "James"),
        ("“Rex”", "rex"),
        ("Rex.", "Rex"),
        ("Straße", "STRASSE"),
        ("北 京", "北京"),
        ("《三体》", "三体"),
        ("東京\u3000", "東京"),
        ("ﾄｳｷｮｳ", "トウキョウ"),
        ("\u200bRex\ufeff", "rex"),
        ("peanuts!", "Peanuts"),
    ],
)
def test_a_name_is_one_however_it_was_written(one: str, other: str) -> None:
    assert normal_name(one) == normal_name(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"),
        ("a@x.de", "b@x.de"),
        ("10", "100"),
        ("が", "か"),
        ("Anna", "Anne"),
        ("thebes", "bes"),
        ("-5", "5"),
        ("北京", "京"),
        ("3.5", "35"),
        ("a.b@x.de", "ab@x.de"),
    ],
)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert normal_name(one) != normal_name(other)


@pytest.mark.parametrize("name", ["I", "me", "The User", "user", "USER", "myself", "我", "用户", "user's"])
def test_every_way_of_naming_the_speaker_is_the_user(name: str) -> None:
    assert normal_subject(name) == "user"


@given(st.text(max_size=40))
@settings(max_examples=100)
def test_a_normal_form_is_its_own_and_text_is_always_one_valid_line(text: str) -> None:
    assert normal_name(normal_name(text)) == normal_name(text)
    assert normal_text(normal_text(text)) == normal_text(text)
    assert clean(clean(text)) == clean(text)
    assert bool(normal_name(text)) == bool(normal_text(text))
    assert not set("\n\r\x00\u2028") & set(clean(text).encode().decode())


@pytest.mark.parametrize(
    ("name", "others"),
    [
        (
            "lives_in",
            "lives_in moved_to based_in Lives-In livesIn LIVES_IN is_based_in residence currently_lives_in 住在 搬到了",
        ),
        ("email", "email e_mail mail E-Mail emailAddress user_email current_email has_email is_email my_email 邮箱"),
        ("works_at", "works_at works_for employer company employed_by works_for"),
        ("occupation", "job works_as profession job_title is_employed_as 职业"),
        ("allergic_to", "is_allergic_to allergy has_allergy allergicTo 过敏"),
        ("spouse", "married_to wife husband is_married_to 老婆"),
        ("likes", "loves enjoys like 喜欢"),
        ("does_not_eat", "does_not_eat doesn't_eat doesnt_eat cannot_eat 不吃"),
        (
            "favorite_color",
            "favorite_color favoriteColor user_favorite_color favourite_colour favorite_颜色 最喜欢的颜色",
        ),
        ("sister", "妹妹 younger_sister 姐姐"),
        ("birth_year", "year_of_birth birthYear"),
        ("constraint", "constraints limitation 限制"),
    ],
)
def test_a_relation_has_one_name_whoever_wrote_it(name: str, others: str) -> None:
    assert {normal_relation(other) for other in others.split()} == {name}


def test_no_name_of_a_relation_stands_for_two() -> None:
    names = Counter(name for one in KNOWN for name in {one.name, *one.others})
    assert [name for name, times in names.items() if times > 1] == []
    assert {one.name for one in KNOWN} >= LASTING
    assert len(KINDS) == len({*KINDS} - {*KINDS.values()})


def test_a_known_relation_is_found_by_each_of_its_names() -> None:
    for one in KNOWN:
        assert {known(normal_relation(name)) for name in (one.name, *one.others)} == {one}
        assert one.category in CATEGORIES
        assert "{s}" in one.phrase
        assert "{o}" in one.phrase


def test_opposites_name_each_other_and_stand_side_by_side_with_other_objects() -> None:
    for one in KNOWN:
        if one.opposite:
            other = known(one.opposite)
            assert other is not None
            assert other.opposite == one.name
            assert not one.is_single
            assert not other.is_single
            assert group_of(one.name) == group_of(other.name)


@pytest.mark.parametrize(
    ("relation", "positive"),
    [
        ("no_longer_lives_in", "lives_in"),
        ("does_not_work_at", "works_at"),
        ("not_married_to", "spouse"),
        ("no_longer_likes", "likes"),
        ("stopped_drinks", "drinks"),
        ("does_not_like", None),
        ("does_not_eat", None),
        ("lives_in", None),
        ("no_longer_frobs", None),
    ],
)
def test_a_denial_of_a_single_object_ends_it(relation: str, positive: str | None) -> None:
    assert denied(normal_relation(relation)) == positive


def test_a_phone_number_is_its_digits() -> None:
    assert normal_object("phone", "+49 (151) 23-45") == normal_object("phone", "49151 2345")
    assert normal_object("phone", "unlisted") == "unlisted"


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
@example("_''", "", "")
@settings(max_examples=100)
def test_any_text_has_a_key_and_keys_are_their_own(subject: str, relation: str, obj: str) -> None:
    key = key_of(subject, relation, obj)
    assert len(key.relation) <= 64
    assert normal_relation(key.relation) == key.relation
    assert key_of(key.subject, key.relation, key.object) == key
