"""The commands replay, demo and context, against a gateway in memory."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from prefold.cli.main import COMMANDS, resolve
from prefold.client import Prefold
from prefold.errors import InvalidInputError, NotFoundError
from prefold.replay.arguments import parse_context_arguments, parse_demo_arguments, parse_replay_arguments
from prefold.replay.main import context, demo, main
from prefold.replay.signals import interrupted_once
from tests.support.fake_gateway import FakeGateway, running_fake_gateway

EXAMPLES = Path(__file__).parents[2] / "examples"
CHAT = str(EXAMPLES / "openai_chat.jsonl")
SUPPORT = str(EXAMPLES / "support.jsonl")
FAST = ["--rate", "0"]


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_fake_gateway() as fake:
        yield fake


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


Capture = pytest.CaptureFixture[str]


def test_replay_ends_with_the_json_line_alone(gateway: FakeGateway, capsys: Capture) -> None:
    assert main([CHAT, "--url", gateway.url, "--json", "--hard-limit", "1500", *FAST]) == 0

    said = capsys.readouterr()
    line = json.loads(said.out)
    assert said.out.count("\n") == 1
    assert said.err == ""
    assert (line["turns"], line["hard_limit_tokens"], line["lost_turns"]) == (12, 1500, 0)


def test_replay_tells_people_the_same_in_a_table(gateway: FakeGateway, capsys: Capture) -> None:
    assert main([CHAT, "--url", gateway.url, *FAST]) == 0

    said = capsys.readouterr().out
    assert "12, 0 lost" in said
    assert "24: 0 over the limit, 0 invalid" in said


def test_replay_fails_when_a_turn_is_lost_and_says_which(gateway: FakeGateway, capsys: Capture) -> None:
    gateway.missing_in_the_log = "line-3"

    assert main([CHAT, "--url", gateway.url, *FAST]) == 1
    assert "line-3: stands in the log 0 times" in capsys.readouterr().out


@pytest.mark.parametrize("fault", ["overstated_tokens", "breaks_roles"])
def test_replay_fails_with_a_context_over_its_limit_or_invalid(gateway: FakeGateway, fault: str) -> None:
    setattr(gateway, fault, 100_000)

    assert main([CHAT, "--url", gateway.url, "--json", *FAST]) == 1


def test_replay_publishes_into_the_session_that_was_named(gateway: FakeGateway) -> None:
    main([CHAT, "--url", gateway.url, "--session", "mine", "--json", *FAST])

    assert list(gateway.sessions) == ["mine"]


def test_several_files_and_limits_end_with_a_line_each(gateway: FakeGateway, tmp_path: Path, capsys: Capture) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"role": "user", "content": "Hi"}\n')
    arguments = ["--all", str(tmp_path), "--limits", "1000,2000", "--jobs", "2", "--url", gateway.url, "--json", *FAST]

    assert main(arguments) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(line["file"], line["hard_limit_tokens"]) for line in lines} == {
        (name, limit) for name in "ab" for limit in (1000, 2000)
    }


def test_several_files_end_with_a_table_and_fail_when_one_does(
    gateway: FakeGateway, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": "x", "role": "user", "content": "Hi"}\n')
    gateway.missing_in_the_log = "x"

    assert main([CHAT, str(tmp_path / "bad.jsonl"), "--url", gateway.url, "--jobs", "2", *FAST]) == 1
    said = capsys.readouterr().out
    assert "openai_chat" in said
    assert "x: stands in the log 0 times" in said


def test_the_demo_in_plain_lines_tells_swaps_and_the_end(gateway: FakeGateway, capsys: Capture) -> None:
    assert demo(["--plain", "--url", gateway.url, *FAST]) == 0

    said = capsys.readouterr().out
    assert "turn  20/189" in said
    assert "swap: 3," in said
    assert "standby ready: covers turns 1-" in said
    assert "What the model sees after 189 turns" in said
    assert "What was sent to the model" in said
    assert "\x1b" not in said


def test_the_demo_can_end_with_the_json_line_alone(gateway: FakeGateway, capsys: Capture) -> None:
    assert demo(["--json", "--url", gateway.url, *FAST]) == 0

    line = json.loads(capsys.readouterr().out)
    assert line["turns"] == 189
    assert line["over_limit_reads"] == line["invalid_contexts"] == line["lost_turns"] == 0


def test_the_demo_draws_a_picture_on_a_terminal(
    gateway: FakeGateway, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LINES", "24")

    assert demo(["--url", gateway.url, *FAST]) == 0
    said = capsys.readouterr().out
    assert "\x1b[" in said
    assert "turn 189 of 189" in said


def test_context_prints_the_sections_of_a_session(gateway: FakeGateway, capsys: Capture) -> None:
    with Prefold(gateway.url) as client:
        client.append_many("s", [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}])

    assert context(["s", "--url", gateway.url]) == 0
    said = capsys.readouterr().out
    assert said.startswith("s  version 1, ok:")
    assert "Be kind." in said
    assert "user: Hello" in said


@pytest.mark.parametrize(
    ("form", "ready"),
    [
        ("anthropic", {"messages": [{"role": "user", "content": [{"type": "text", "text": "[b] é"}]}]}),
        ("openai", {"messages": [{"role": "user", "content": "[b] é"}]}),
    ],
)
def test_context_can_print_what_goes_to_the_provider(
    gateway: FakeGateway, capsys: Capture, form: str, ready: object
) -> None:
    with Prefold(gateway.url) as client:
        client.append("s", "user", "[b] é")

    assert context(["s", "--url", gateway.url, "--format", form, "--raw"]) == 0
    assert json.loads(capsys.readouterr().out) == ready


def test_context_of_an_unknown_session_is_an_error_that_the_command_line_prints(gateway: FakeGateway) -> None:
    with pytest.raises(NotFoundError, match="there is no session"):
        context(["nobody", "--url", gateway.url])


def test_the_key_comes_from_the_environment_and_a_flag_wins(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFOLD_API_KEY", "from-the-environment")

    assert parse_replay_arguments([CHAT]).target.api_key == "from-the-environment"
    assert parse_demo_arguments(["--api-key", "given"]).target.api_key == "given"
    assert parse_context_arguments(["s"]).api_key == "from-the-environment"
    assert parse_context_arguments(["s"]).url == "http://127.0.0.1:7077"


@pytest.mark.parametrize(
    "argv",
    [
        [],
        [CHAT, "--hard-limit", "999"],
        [CHAT, "--hard-limit", "many"],
        [CHAT, "--limits", "2000,10"],
        [CHAT, "--limits", "2000", "--hard-limit", "3000"],
        [CHAT, "--rate", "-1"],
        [CHAT, "--rate", "nan"],
        [CHAT, "--jobs", "0"],
        [CHAT, SUPPORT, "--session", "one"],
        [CHAT, "--limits", "2000,3000", "--session", "one"],
        [CHAT, "--durability", "sometimes"],
    ],
)
def test_wrong_usage_ends_with_code_2(argv: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_replay_arguments(argv)

    assert caught.value.code == 2
    assert "usage: prefold replay" in capsys.readouterr().err


def test_a_folder_without_conversations_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        parse_replay_arguments(["--all", str(tmp_path)])


def test_a_file_that_cannot_be_read_ends_before_anything_is_started(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        main([str(tmp_path / "nothing.jsonl"), "--url", "http://127.0.0.1:9"])


@pytest.mark.parametrize(("name", "function"), [("replay", main), ("demo", demo), ("context", context)])
def test_the_command_line_finds_each_command(name: str, function: object) -> None:
    assert resolve(COMMANDS[name].target) is function


def be_signalled_twice(number: signal.Signals, closed: threading.Event) -> None:
    with interrupted_once():
        try:
            os.kill(os.getpid(), number)
            threading.Event().wait(5)
        finally:
            os.kill(os.getpid(), number)
            closed.set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_interrupts_and_a_second_does_not_cut_the_closing_short(number: signal.Signals) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    closed = threading.Event()
    with pytest.raises(KeyboardInterrupt):
        be_signalled_twice(number, closed)

    assert closed.is_set()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
