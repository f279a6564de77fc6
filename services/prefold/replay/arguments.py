"""The command lines of ``prefold replay``, ``prefold demo`` and ``prefold context``."""

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prefold.client.connecting import DEFAULT_URL
from prefold.client.results import Format
from prefold.replay.demo import HARD_LIMIT_TOKENS, TURNS_PER_SECOND

API_KEY_VARIABLE = "PREFOLD_API_KEY"

_LEAST_LIMIT_TOKENS = 1_000
_DEFAULT_LIMIT_TOKENS = 8_000
_DEFAULT_RATE = 20.0
_DEFAULT_JOBS = 6


@dataclass(frozen=True, slots=True)
class Target:
    """The gateway to talk to."""

    url: str | None
    """None: a temporary stack of our own."""
    api_key: str | None
    durability: Literal["durable", "fast"] = "durable"
    """Of the temporary stack."""


@dataclass(frozen=True, slots=True)
class ReplayArguments:
    files: tuple[Path, ...]
    limits: tuple[int, ...]
    rate: float
    session: str | None
    jobs: int
    is_json: bool
    target: Target


@dataclass(frozen=True, slots=True)
class DemoArguments:
    hard_limit_tokens: int
    rate: float
    is_plain: bool
    is_json: bool
    target: Target


@dataclass(frozen=True, slots=True)
class ContextArguments:
    session: str
    url: str
    api_key: str | None
    form: Format
    is_raw: bool


@contextmanager
def gateway(target: Target) -> Iterator[str]:
    """URL of the gateway to talk to; a temporary stack lives as long as the block."""
    if target.url:
        yield target.url
        return
    from prefold.stack.embedded import temporary_stack

    with temporary_stack(durability=target.durability) as stack:
        yield stack.gateway_url


def parse_replay_arguments(argv: Sequence[str]) -> ReplayArguments:
    """Of ``prefold replay``. SystemExit(2) on wrong usage, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="prefold replay",
        description="Publishes recorded conversations turn by turn and checks the context after each turn.",
        epilog="Exit code 1 when a context was over its limit or invalid, or a turn was lost. "
        "Several files or limits are replayed in parallel and end with a table.",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="JSONL of turns, or an OpenAI chat log")
    parser.add_argument("--all", type=Path, metavar="DIR", help="every *.jsonl file of a folder")
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument(
        "--hard-limit",
        type=_limit,
        metavar="N",
        default=_DEFAULT_LIMIT_TOKENS,
        help=f"tokens that the context never exceeds (default {_DEFAULT_LIMIT_TOKENS:,})",
    )
    limits.add_argument("--limits", type=_limits, metavar="N,N", help="several limits, one after the other")
    parser.add_argument("--session", metavar="NAME", help="name of the new session (one file only)")
    parser.add_argument("--jobs", type=_positive, metavar="N", default=_DEFAULT_JOBS, help="replays at a time")
    _add_common(parser, _DEFAULT_RATE)
    given = parser.parse_args(argv)
    files = (*given.files, *(sorted(given.all.glob("*.jsonl")) if given.all else ()))
    limit_tokens = given.limits or (given.hard_limit,)
    if not files:
        parser.error("no file to replay")
    if given.session and len(files) * len(limit_tokens) > 1:
        parser.error("--session names one session: give one file and one limit")
    return ReplayArguments(files, limit_tokens, given.rate, given.session, given.jobs, given.json, _target(given))


def parse_demo_arguments(argv: Sequence[str]) -> DemoArguments:
    """Of ``prefold demo``."""
    parser = argparse.ArgumentParser(
        prog="prefold demo",
        description="Replays a support conversation and shows how its context stays within the limit.",
    )
    parser.add_argument("--hard-limit", type=_limit, metavar="N", default=HARD_LIMIT_TOKENS, help="tokens")
    parser.add_argument("--plain", action="store_true", help="lines instead of the live picture")
    _add_common(parser, TURNS_PER_SECOND)
    given = parser.parse_args(argv)
    return DemoArguments(given.hard_limit, given.rate, given.plain, given.json, _target(given))


def parse_context_arguments(argv: Sequence[str]) -> ContextArguments:
    """Of ``prefold context``."""
    parser = argparse.ArgumentParser(
        prog="prefold context", description="Prints what the model would see of a session, section by section."
    )
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--format", choices=("anthropic", "openai"), default="anthropic")
    parser.add_argument("--raw", action="store_true", help="the JSON that goes to the provider")
    _add_target(parser, f"default {DEFAULT_URL}")
    given = parser.parse_args(argv)
    return ContextArguments(given.session, given.url or DEFAULT_URL, _api_key(given), given.format, given.raw)


def _add_common(parser: argparse.ArgumentParser, rate: float) -> None:
    parser.add_argument(
        "--rate", type=_rate, default=rate, help=f"turns per second, 0: as fast as possible (default {rate:g})"
    )
    parser.add_argument("--json", action="store_true", help="end with one JSON line and print nothing else")
    parser.add_argument(
        "--durability", choices=("durable", "fast"), default="durable", help="of the temporary stack (default durable)"
    )
    _add_target(parser, "default: a temporary stack of its own")


def _add_target(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--url", help=f"a running gateway ({default})")
    parser.add_argument("--api-key", metavar="KEY", help=f"its key (better in {API_KEY_VARIABLE}: others see flags)")


def _target(given: argparse.Namespace) -> Target:
    return Target(given.url, _api_key(given), given.durability)


def _api_key(given: argparse.Namespace) -> str | None:
    return given.api_key or os.environ.get(API_KEY_VARIABLE) or None


def _limit(text: str) -> int:
    tokens = int(text.replace("_", ""))
    if tokens < _LEAST_LIMIT_TOKENS:
        raise argparse.ArgumentTypeError(f"must be at least {_LEAST_LIMIT_TOKENS}")
    return tokens


def _limits(text: str) -> tuple[int, ...]:
    return tuple(map(_limit, text.split(",")))


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 <= rate <= 10_000:
        raise argparse.ArgumentTypeError("must be 0 to 10,000 turns per second")
    return rate


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
