"""What ``prefold cost`` is told."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from prefold.config.addresses import Addresses
from prefold.config.flags import add_flags, settings_from
from prefold.config.settings import DataDirSettings, PricesSettings, RedisSettings
from prefold.pricing import Workload

__all__ = ["Action", "CostArguments", "CostSettings", "parse_arguments"]

Action = Literal["spent", "prices", "compare"]

_ACTIONS: dict[Action, str] = {
    "spent": "by tenant and day; with --tenant also by session (the default)",
    "prices": "the table in force, and where each row comes from",
    "compare": "one summary by the chat's own model over its cached prompt, and by a small one",
}
_DAYS = 7
_MOST_DAYS = 400
_DEFAULTS = Workload(0, 0, 0)


class CostSettings(RedisSettings, DataDirSettings, PricesSettings):
    """Where sessions are. What is not set is taken from the ``prefold up`` on that data folder."""


@dataclass(frozen=True, slots=True)
class CostArguments:
    """One call. ``model``, ``small_model`` and ``workload`` are of ``compare`` only."""

    settings: CostSettings
    action: Action
    tenant: str | None
    days: int
    is_json: bool
    model: str
    small_model: str
    workload: Workload


def parse_arguments(argv: Sequence[str]) -> CostArguments:
    """SystemExit(2) with a message when they cannot be understood."""
    parser = _parser()
    parsed = parser.parse_args(argv)
    if parsed.action == "compare":
        wanted = ("model", "summarizer_model", "context_tokens", "new_tokens", "summary_tokens")
        missing = ["--" + name.replace("_", "-") for name in wanted if getattr(parsed, name) is None]
        if missing:
            parser.error(f"compare wants {', '.join(missing)}")
        if parsed.new_tokens > parsed.context_tokens:
            parser.error("--new-tokens is a part of --context-tokens")
    return CostArguments(
        settings=_located(settings_from(CostSettings, parsed)),
        action=cast("Action", parsed.action),
        tenant=parsed.tenant,
        days=parsed.days,
        is_json=parsed.json,
        model=parsed.model or "",
        small_model=parsed.summarizer_model or "",
        workload=Workload(
            context_tokens=parsed.context_tokens or 0,
            new_tokens=parsed.new_tokens or 0,
            summary_tokens=parsed.summary_tokens or 0,
            cached_share=parsed.cached_share,
            instruction_tokens=parsed.instruction_tokens,
            chunk_tokens=parsed.chunk_tokens,
        ),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="prefold cost",
        description="What model calls for summaries cost, by the price table.",
        epilog="\n".join(f"{name:<9}{text}" for name, text in _ACTIONS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", nargs="?", choices=_ACTIONS, default="spent", help="what to say")
    parser.add_argument("--tenant", help="spent: of this tenant, with its sessions")
    parser.add_argument(
        "--days", type=_whole(1, _MOST_DAYS), default=_DAYS, help=f"spent: last days, {_DAYS} if not said"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--model", help="compare: the chat's model")
    parser.add_argument("--summarizer-model", help="compare: the small model")
    tokens = _whole(0, 10_000_000)
    parser.add_argument("--context-tokens", type=tokens, help="compare: the chat's whole prompt now")
    parser.add_argument("--new-tokens", type=tokens, help="compare: source that no segment covers yet")
    parser.add_argument("--summary-tokens", type=tokens, help="compare: what is written, thinking included")
    parser.add_argument(
        "--cached-share",
        type=_share,
        default=_DEFAULTS.cached_share,
        help=f"compare: part of the prompt that the provider's cache holds, {_DEFAULTS.cached_share} if not said",
    )
    parser.add_argument(
        "--instruction-tokens", type=tokens, default=_DEFAULTS.instruction_tokens, help="compare: of a call"
    )
    parser.add_argument(
        "--chunk-tokens", type=_whole(1, 1_000_000), default=_DEFAULTS.chunk_tokens, help="compare: source in one call"
    )
    add_flags(parser, CostSettings)
    return parser


class _whole:  # noqa: N801 (argparse shows its name)
    """Reads a whole number within bounds."""

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._most = most

    def __call__(self, text: str) -> int:
        try:
            value = int(text.replace("_", "").replace(",", ""))
        except ValueError:
            value = self._least - 1
        if not self._least <= value <= self._most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {self._least} to {self._most}")
        return value


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to 1")
    return value


def _located(settings: CostSettings) -> CostSettings:
    """With the address of a stack that runs on the data folder, where none is set."""
    running = Addresses.read(settings.data_dir)
    if running is None or "redis_url" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"redis_url": running.redis_url})
