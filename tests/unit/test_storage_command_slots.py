"""Commands on a cluster: where they belong, and that no script touches a key that it was not given."""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from redis.exceptions import DataError

from prefold.storage.command_slots import guarded, slot_of_command
from prefold.storage.keys import SessionKeys, slot_of_key

KEYS = SessionKeys.of("acme", "s1")
ELSEWHERE = SessionKeys.of("acme", "s2")
SLOT = slot_of_key(KEYS.meta)


@pytest.mark.parametrize(
    "command",
    [
        ("GET", KEYS.context),
        ("HMGET", KEYS.meta, "{other}", "state"),
        ("EXISTS", *KEYS.erasable()),
        ("RENAME", KEYS.next, KEYS.context),
        ("SETEX", KEYS.meta, 3, "{other}"),
        ("XADD", KEYS.events, "*", "f", "{other}"),
        ("XINFO STREAM", KEYS.events),
        ("XGROUP CREATE", KEYS.events, "dispatchers", "0", "MKSTREAM"),
        ("XREADGROUP", "GROUP", "g", "{other}", "COUNT", 3, "STREAMS", KEYS.events, ">"),
        ("XREADGROUP", "GROUP", "g", "c", b"STREAMS", KEYS.events, KEYS.turns, ">", "0"),
        ("EVALSHA", "0" * 40, 2, KEYS.meta, KEYS.due, "{other}"),
        ("EVAL", "return 1", "1", KEYS.meta, "{other}"),
    ],
)
def test_a_command_belongs_to_the_slot_of_its_keys_whatever_its_arguments_look_like(command: tuple[Any, ...]) -> None:
    assert slot_of_command(command) == SLOT


@pytest.mark.parametrize(
    "command",
    [("TIME",), ("INFO", "memory"), ("CONFIG GET", "save"), ("SCAN", 0), ("SCRIPT LOAD", "x"), ("WAIT", 1, 5)],
)
def test_a_command_about_a_server_belongs_to_no_slot(command: tuple[Any, ...]) -> None:
    assert slot_of_command(command) is None


@pytest.mark.parametrize(
    "command",
    [
        ("DEL", KEYS.meta, ELSEWHERE.meta),
        ("RENAME", KEYS.meta, ELSEWHERE.meta),
        ("EVALSHA", "0" * 40, 2, KEYS.meta, ELSEWHERE.meta),
        ("XREADGROUP", "GROUP", "g", "c", "STREAMS", KEYS.events, ELSEWHERE.events, ">", ">"),
    ],
)
def test_a_command_over_two_slots_is_never_sent(command: tuple[Any, ...]) -> None:
    with pytest.raises(DataError, match="2 slots"):
        slot_of_command(command)


def test_a_script_is_given_one_key_more_and_the_same_arguments() -> None:
    sent = guarded(("EVALSHA", "sha", 2, KEYS.meta, KEYS.due, "a", "b"))
    assert sent[:2] + sent[3:5] == ("EVALSHA", "sha", KEYS.meta, KEYS.due)
    assert (sent[2], sent[6:]) == (3, ("a", "b"))
    assert slot_of_command(sent) == SLOT and sent[5] not in KEYS.change_keys()


def test_what_is_no_script_is_sent_as_it_is() -> None:
    assert guarded(("GET", KEYS.meta)) == ("GET", KEYS.meta)


# What a script may name as a key: an element of KEYS, or a constant that stands for one.

_CALL = re.compile(r"redis\.p?call\(")
_ALIASES = re.compile(r"^local ([A-Z_, ]+) = (KEYS\[\d+\](?:, KEYS\[\d+\])*|unpack\(KEYS\))$", re.MULTILINE)
_ELEMENT = re.compile(r"KEYS\[(\d+|i)\]")
_TWO = {"RENAME", "COPY"}
_EVERY = {"DEL", "UNLINK", "EXISTS"}
_SUBCOMMANDS = {"XINFO", "XGROUP"}
SCRIPTS = sorted(path.name for path in (files("prefold.storage") / "scripts").iterdir() if path.name.endswith(".lua"))


def source(name: str) -> str:
    return (files("prefold.storage") / "scripts" / name).read_text("utf-8")


def calls(text: str) -> Iterator[list[str]]:
    """Arguments of each call into Redis, as they are written."""
    for match in _CALL.finditer(text):
        depth, start, arguments = 1, match.end(), []
        for position in range(match.end(), len(text)):
            letter = text[position]
            depth += (letter in "([{") - (letter in ")]}")
            if (letter == "," and depth == 1) or depth == 0:
                arguments.append(text[start:position].strip())
                start = position + 1
            if depth == 0:
                break
        yield arguments


def keys_of(arguments: list[str]) -> list[str]:
    command = arguments[0].strip("'\"")
    if command in _EVERY:
        return arguments[1:]
    if command in _TWO:
        return arguments[1:3]
    if command == "BITOP":
        return arguments[2:]
    return arguments[2:3] if command in _SUBCOMMANDS else arguments[1:2]


def aliases() -> set[str]:
    return {
        name.strip() for file in SCRIPTS for names, _ in _ALIASES.findall(source(file)) for name in names.split(",")
    }


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_touches_only_keys_that_it_is_given(name: str) -> None:
    known = aliases()
    for arguments in calls(source(name)):
        assert re.fullmatch(r"'[A-Z]+'", arguments[0]), f"{name}: a command that is made up on the way: {arguments}"
        if arguments == ["'TIME'"]:
            continue
        keys = keys_of(arguments)
        assert keys, f"{name}: {arguments} names no key"
        for key in keys:
            assert key in known or _ELEMENT.fullmatch(key), f"{name}: {arguments} touches {key}"


def test_a_constant_that_stands_for_a_key_is_never_set_again() -> None:
    for alias in aliases():
        for file in SCRIPTS:
            assert not re.search(rf"^\s*{alias} =", source(file), re.MULTILINE), f"{file} changes {alias}"


def test_the_calls_of_all_scripts_are_found() -> None:
    found = sum(len(list(calls(source(name)))) for name in SCRIPTS)
    assert found == sum(source(name).count("redis.call(") + source(name).count("redis.pcall(") for name in SCRIPTS) > 50
