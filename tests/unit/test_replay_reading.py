"""Conversations read from files: three formats, and errors that name the line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from prefold.errors import InvalidInputError
from prefold.replay.reading import read_conversation

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = Path(os.environ.get("PREFOLD_DATA", Path(__file__).parents[3] / "shared" / "data"))


def written(folder: Path, *lines: str | dict[str, Any]) -> Path:
    path = folder / "talk.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [turn.published for turn in read_conversation(path)]


def test_our_own_lines_go_out_without_the_members_that_are_no_part_of_a_turn(tmp_path: Path) -> None:
    line = {"id": "D1:3", "role": "user", "name": "Ada", "ts": "2023-05-08", "session": 1, "content": "Hi", "meta": {}}

    assert read(written(tmp_path, line)) == [
        {"id": "D1:3", "role": "user", "content": "Hi", "name": "Ada", "ts": "2023-05-08"}
    ]


@pytest.mark.parametrize("ts", [1700000000, 1700000000.25, "2026-01-01T10:00:00+02:00", 0])
def test_a_time_stamp_stays_what_it_is(tmp_path: Path, ts: str | float) -> None:
    (turn,) = read(written(tmp_path, {"role": "user", "content": "Hi", "ts": ts}))

    assert turn["ts"] == ts
    assert type(turn["ts"]) is type(ts)


def test_plain_lines_are_called_by_their_line_number_blank_lines_counted(tmp_path: Path) -> None:
    path = written(tmp_path, {"role": "user", "content": "a"}, "", "  ", {"role": "assistant", "content": "b"})

    assert [turn["id"] for turn in read(path)] == ["line-1", "line-4"]
    assert read(path) == read(path)


def test_null_and_empty_ids_are_no_ids_and_numbers_become_text(tmp_path: Path) -> None:
    lines = [{"id": value, "role": "user", "content": "a"} for value in (None, "", 7)]

    assert [turn["id"] for turn in read(written(tmp_path, *lines))] == ["line-1", "line-2", "7"]


def test_an_openai_log_keeps_calls_and_results(tmp_path: Path) -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    path = written(
        tmp_path,
        {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": None, "tool_calls": calls, "refusal": None},
        {"role": "tool", "tool_call_id": "c1", "content": "7"},
    )

    assert read(path) == [
        {"id": "line-1", "role": "developer", "content": "Be brief."},
        {"id": "line-2", "role": "assistant", "content": None, "tool_calls": calls},
        {"id": "line-3", "role": "tool", "content": "7", "tool_call_id": "c1"},
    ]


MESSAGES = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


@pytest.mark.parametrize("document", [{"model": "gpt", "messages": MESSAGES}, MESSAGES])
@pytest.mark.parametrize("indent", [None, 2])
def test_one_json_document_is_read_whole(tmp_path: Path, document: object, indent: int | None) -> None:
    path = written(tmp_path, json.dumps(document, indent=indent))

    assert [(turn["id"], turn["content"]) for turn in read(path)] == [("message-1", "a"), ("message-2", "b")]


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"role":"user","content":"a"}\r\n{"role":"user","content":"b"}\r\n')

    assert [turn["content"] for turn in read(path)] == ["a", "b"]


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text('{"role":"user","content":"a\u2028b\x85c"}\n', encoding="utf-8")

    assert [turn["content"] for turn in read(path)] == ["a\u2028b\x85c"]


GOOD = '{"role": "user", "content": "a"}'


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2: is not JSON"),
        ('{"role": "user", "content": "a"} x', "line 2: is not JSON"),
        ('{"role": "user", "content": NaN}', "line 2: is not JSON: NaN"),
        ('{"role": "user", "content": "a", "ts": 1e999}', "line 2: is not JSON: 1e999 is too large"),
        ("[" * 100_000, "line 2: is not JSON"),
        ("7", "line 2: must be a JSON object"),
        ("[1]", "line 2: must be a JSON object"),
        ('{"content": "a"}', "line 2: role must be one of"),
        ('{"role": "robot", "content": "a"}', "line 2: role must be one of"),
        ('{"role": ["user"], "content": "a"}', "line 2: role must be one of"),
        ('{"role": "user"}', "line 2: content must be"),
        ('{"role": "user", "content": null}', "line 2: content must be"),
        ('{"role": "user", "content": 7}', "line 2: content must be"),
        ('{"messages": [{"role": "user", "content": "a"}]}', "line 2: is a conversation of its own"),
        ('{"id": "line-1", "role": "user", "content": "b"}', "line 2: the id 'line-1' was already used in line 1"),
    ],
)
def test_a_line_that_is_no_turn_is_named(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_conversation(written(tmp_path, GOOD, line))

    assert told in caught.value.detail
    assert "talk.jsonl" in caught.value.detail


def test_a_message_of_a_document_is_named_by_its_number(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="message 2: role must be"):
        read_conversation(written(tmp_path, json.dumps([*MESSAGES[:1], {"role": "x"}])))


def test_the_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(GOOD.encode() + b"\n" + b'{"role":"user","content":"\xff"}')

    with pytest.raises(InvalidInputError, match="line 2: is not UTF-8"):
        read_conversation(path)


@pytest.mark.parametrize("text", ["", "\n \n", "[]", '{"messages": []}'])
def test_a_file_without_turns_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInputError, match="holds no turns"):
        read_conversation(written(tmp_path, text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="No such file"):
        read_conversation(tmp_path / "nothing.jsonl")
    with pytest.raises(InvalidInputError, match="directory"):
        read_conversation(tmp_path)


@pytest.mark.parametrize("name", ["support.jsonl", "openai_chat.jsonl"])
def test_the_examples_are_read(name: str) -> None:
    assert read_conversation(EXAMPLES / name)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data sets in {DATA} (PREFOLD_DATA)")
def test_every_line_of_the_data_sets_is_a_turn() -> None:
    paths = sorted(DATA.glob("*.jsonl"))

    assert paths
    for path in paths:
        lines = path.read_text(encoding="utf-8").split("\n")
        assert len(read_conversation(path)) == sum(bool(line.strip()) for line in lines)
