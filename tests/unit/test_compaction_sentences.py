"""Sentences are spans of their text, in several writing systems and forms."""

import pytest

from prefold.compaction.reading.sentences import SpanKind, split_sentences


def pieces(text: str) -> list[str]:
    return [text[span.start : span.end] for span in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I paid $3.50 at 5 p.m. yesterday! See config.py. Done", ["I paid $3.50 at 5 p.m. yesterday!", "See config.py.", "Done"]),
        ("Dr. Smith met J. Doe, e.g. on Monday. No. 5 is alive.", ["Dr. Smith met J. Doe, e.g. on Monday.", "No. 5 is alive."]),
        ("No. I meant the 14th.", ["No.", "I meant the 14th."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("你好。我叫张三！你呢？好", ["你好。", "我叫张三！", "你呢？", "好"]),
        ("「行こう。」と言った。次です。", ["「行こう。」", "と言った。", "次です。"]),
        ("v2.3.1 works...  I think", ["v2.3.1 works...", "I think"]),
    ],
)  # fmt: skip
def test_a_text_is_split_where_a_reader_would(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_marks_of_lists_headings_and_quotes_belong_to_no_sentence() -> None:
    text = "## Plan\n- [x] book it. Then pay\n1. **two** nights\n> as you said\n---\n| a | b |"
    kinds = [(span.kind, text[span.start : span.end]) for span in split_sentences(text)]
    assert kinds == [
        (SpanKind.HEADING, "Plan"),
        (SpanKind.ITEM, "book it."),
        (SpanKind.ITEM, "Then pay"),
        (SpanKind.ITEM, "**two** nights"),
        (SpanKind.PROSE, "as you said"),
        (SpanKind.TABLE, "| a | b |"),
    ]


def test_code_between_fences_is_code_line_by_line() -> None:
    text = "Look:\n```py\nx = 1. \n# Not. A. Sentence.\n```\nDone."
    spans = [(span.kind, text[span.start : span.end]) for span in split_sentences(text)]
    assert spans == [
        (SpanKind.PROSE, "Look:"),
        (SpanKind.CODE, "x = 1."),
        (SpanKind.CODE, "# Not. A. Sentence."),
        (SpanKind.PROSE, "Done."),
    ]


def test_a_wrapped_line_goes_on_and_a_new_line_does_not() -> None:
    wrapped = "The order that I placed on the third of May has never arrived at\nmy new address."
    assert pieces(wrapped) == [wrapped]
    assert pieces("Name: Ann\ncity: Rome") == ["Name: Ann", "city: Rome"]


def test_a_long_sentence_is_split_between_clauses_and_says_so() -> None:
    text = (
        "I want to move the meeting to Friday " * 4
        + ", because the room is taken by the audit team, and I can only come at noon anyway."
    )
    spans = split_sentences(text)
    assert len(spans) > 1
    assert [span.opens for span in spans] == [True] + [False] * (len(spans) - 1)
    assert [span.closes for span in spans] == [False] * (len(spans) - 1) + [True]


def test_a_list_of_numbers_is_not_torn_apart() -> None:
    text = (
        "The sides that I measured this morning with the new tool in the garage of my neighbour are " * 2
        + "7, 24, 25 cm."
    )
    assert any("7, 24, 25 cm." in piece for piece in pieces(text))


def test_text_without_any_punctuation_is_cut_between_characters() -> None:
    family = "👨‍👩‍👧‍👦"
    found = pieces(family * 400)
    assert "".join(found) == family * 400
    assert all(piece.startswith("👨") for piece in found)
