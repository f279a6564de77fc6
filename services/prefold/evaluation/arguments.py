"""The command line of ``prefold eval``."""

import argparse
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prefold.errors import ConfigurationError
from prefold.evaluation.cases import shipped_folder

API_KEY_VARIABLE = "PREFOLD_API_KEY"
FIRST_TENANT = "a"


@dataclass(frozen=True, slots=True)
class EvalArguments:
    paths: tuple[Path, ...]
    filters: tuple[str, ...]
    url: str | None
    """None: a temporary stack of our own."""
    keys: dict[str, str | None]
    """Of a running gateway, by the tenants' names in the cases; None: it asks for none."""
    jobs: int
    seed: int
    patience_seconds: float
    keeps: bool
    only_lists: bool
    is_json: bool


def parse_arguments(argv: Sequence[str]) -> EvalArguments:
    """SystemExit(2) on wrong usage, as argparse does; ConfigurationError for a key file that cannot be read."""
    given = _parser().parse_args(argv)
    return EvalArguments(
        paths=tuple(given.paths) or (shipped_folder(),),
        filters=tuple(given.case or ()),
        url=given.url,
        keys=_keys(given.keys),
        jobs=given.jobs,
        seed=given.seed,
        patience_seconds=given.patience,
        keeps=given.keep,
        only_lists=given.list,
        is_json=given.json,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="prefold eval",
        description="Plays conversations from case files and checks what contexts, facts and searches show.",
        epilog="Exit code 0: every case passed; 1: one failed; 2: wrong usage or a case file that cannot be read. "
        "docs/evaluation.md tells how to write cases.",
    )
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="FILE|DIR", help="case files, or folders of *.toml (default: ours)"
    )
    parser.add_argument(
        "--case", action="append", metavar="NAME", help="only cases with this in their name; may repeat"
    )
    parser.add_argument(
        "--list", action="store_true", help="read and check the case files, tell their names, run nothing"
    )
    parser.add_argument("--json", action="store_true", help="end with one JSON document and print nothing else")
    parser.add_argument("--jobs", type=_positive, default=4, metavar="N", help="cases at a time (default 4)")
    parser.add_argument("--seed", type=int, default=1, help="of the small talk between what matters (default 1)")
    parser.add_argument(
        "--patience",
        type=_seconds,
        default=60.0,
        metavar="S",
        help="longest wait for the workers, in seconds (default 60)",
    )
    parser.add_argument("--url", help="a running gateway (default: a temporary stack of its own)")
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="FILE",
        help=f'TOML of keys by the tenants of the cases: a = "…"; without it {API_KEY_VARIABLE} is the key of tenant a',
    )
    parser.add_argument("--keep", action="store_true", help="leave sessions and users in the gateway of --url")
    return parser


def _keys(path: Path | None) -> dict[str, str | None]:
    if path is None:
        return {FIRST_TENANT: os.environ.get(API_KEY_VARIABLE) or None}
    try:
        keys = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except ValueError as error:  # not TOML or not UTF-8; the message of either would quote a key
        raise ConfigurationError(f"{path}: is not TOML") from error
    if not keys or not all(isinstance(key, str) and key for key in keys.values()):
        raise ConfigurationError(f'{path}: must have a line TENANT = "KEY" for each tenant')
    return keys


def _positive(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 64:
        raise argparse.ArgumentTypeError("must be 1 to 64")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3_600:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 3,600 seconds")
    return seconds
