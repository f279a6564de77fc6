"""Exact values are found whole and with their kind."""

import pytest

from prefold.compaction.reading.values import ValueKind, find_values


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("write to ann.lee+x@mail.example.org.", ValueKind.EMAIL, "ann.lee+x@mail.example.org"),
        ("see https://example.org/a?b=c).", ValueKind.URL, "https://example.org/a?b=c"),
        ("at mongodb://localhost:27017/db", ValueKind.URL, "mongodb://localhost:27017/db"),
        ("my budget is $3,000 for it", ValueKind.AMOUNT, "$3,000"),
        ("预算不超过5000元", ValueKind.AMOUNT, "5000元"),
        ("about 10,000 yen a day", ValueKind.AMOUNT, "10,000 yen"),
        ("on 2024-05-21 at noon", ValueKind.DATE, "2024-05-21"),
        ("on March 29, or later", ValueKind.DATE, "March 29"),
        ("the 22 October fair", ValueKind.DATE, "22 October"),
        ("only in the last two weeks of October", ValueKind.DATE, "last two weeks of October"),
        ("make it the 14th", ValueKind.DATE, "the 14th"),
        ("5月3日出发", ValueKind.DATE, "5月3日"),
        ("come at 6:30 pm", ValueKind.TIME, "6:30 pm"),
        ("Flask 2.3.1 it is", ValueKind.VERSION, "2.3.1"),
        ("for 10 days", ValueKind.QUANTITY, "10 days"),
        ("took 250ms", ValueKind.QUANTITY, "250ms"),
        ("ID mia_li_3668 here", ValueKind.ID, "mia_li_3668"),
        ("flight HAT136 is late", ValueKind.ID, "HAT136"),
        ("order LF-4827-19306", ValueKind.ID, "LF-4827-19306"),
        ("booking JG7FMM", ValueKind.ID, "JG7FMM"),
        ("commit f8a2feebba3aea29", ValueKind.ID, "f8a2feebba3aea29"),
        ("in /testbed/src/fields.py now", ValueKind.PATH, "/testbed/src/fields.py"),
        ("edit fields.py", ValueKind.PATH, "fields.py"),
        ("call +1 415-555-0173", ValueKind.PHONE, "+1 415-555-0173"),
        ('I read "The Great Gatsby" twice', ValueKind.TITLE, '"The Great Gatsby"'),
        ("我读了《活着》", ValueKind.TITLE, "《活着》"),
        ("ValueError: bad window", ValueKind.ERROR, "ValueError: bad window"),
        ("run `make all`", ValueKind.CODE, "`make all`"),
        ("call parseConfig first", ValueKind.CODE, "parseConfig"),
    ],
)
def test_a_value_is_found_whole(text: str, kind: ValueKind, value: str) -> None:
    found = [(one.kind, one.text) for one in find_values(text)]
    assert (kind, value) in found
    assert all(text[one.start : one.end] == one.text for one in find_values(text))


@pytest.mark.parametrize(
    "text", ["Hello there, how are you today?", "I may march on", "well-known", "and/or", "你好，很高兴认识你"]
)
def test_plain_words_hold_no_value(text: str) -> None:
    assert find_values(text) == ()


def test_two_spellings_of_a_value_have_one_key() -> None:
    one, other = find_values("$3,000")[0], find_values("$ 3000")[0]
    assert one.key == other.key
