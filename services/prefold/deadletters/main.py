"""``prefold dead-letters``: lists, shows, replays and erases them."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from prefold.deadletters.arguments import DeadLetterArguments, parse_arguments
from prefold.jobs import DeadLetter, DeadLetters, queue_connection
from prefold.jobs.starts import forget_starts
from prefold.storage.client import connect

_REPLY_TIMEOUT = timedelta(seconds=5)


def main(argv: Sequence[str]) -> int:
    """0 when it could be done, also when there was nothing to do. Raises ``UnavailableError``."""
    arguments = parse_arguments(argv)
    letters = asyncio.run(_do(arguments))
    shown = _as_json if arguments.is_json else _in_full if arguments.action == "show" else _in_a_line
    for letter in letters:
        print(shown(letter))
    if not arguments.is_json:
        print(_end_line(arguments, len(letters)))
    return 0


async def _do(arguments: DeadLetterArguments) -> list[DeadLetter]:
    """The letters that were meant, after what was to be done with them."""
    settings = arguments.settings
    async with connect(settings.redis_url, max_connections=4, timeout=_REPLY_TIMEOUT) as client:
        dead_letters = DeadLetters(client)
        letters = await dead_letters.letters(tenant=arguments.tenant, session=arguments.session, kind=arguments.kind)
        if arguments.action == "erase":
            for letter in letters:
                await dead_letters.remove(letter)
        elif arguments.action == "replay":
            await asyncio.to_thread(_forget_starts, settings.queue_url, letters)
            for letter in letters:
                await dead_letters.release(letter)
    return letters


def _forget_starts(queue_url: str, letters: Sequence[DeadLetter]) -> None:
    with closing(queue_connection(queue_url, reply_timeout=_REPLY_TIMEOUT)) as queue:
        for letter in letters:
            forget_starts(queue, letter.kind, letter.ref)


def _as_json(letter: DeadLetter) -> str:
    return json.dumps(asdict(letter), ensure_ascii=False)


def _in_a_line(letter: DeadLetter) -> str:
    who = f"{_plain(letter.tenant)}/{_plain(letter.session)}"
    return f"{_time(letter.at_ms)}  {letter.kind:<8}{who}  {letter.starts} starts  {_plain(letter.reason)}"


def _in_full(letter: DeadLetter) -> str:
    rows = {
        "tenant": _plain(letter.tenant),
        "session": _plain(letter.session),
        "incarnation": letter.incarnation,
        "kind": letter.kind,
        "reason": _plain(letter.reason),
        "starts": str(letter.starts),
        "first start": _time(letter.first_ms),
        "set aside": _time(letter.at_ms),
        "turns": f"{letter.from_seq} to {letter.to_seq}" if letter.to_seq else "-",
        "prefold": letter.version,
    }
    return "".join(f"{name:<13}{value}\n" for name, value in rows.items())


def _end_line(arguments: DeadLetterArguments, count: int) -> str:
    what = {"replay": "given another try", "erase": "forgotten"}.get(arguments.action, "set aside")
    return f"{count} {'piece' if count == 1 else 'pieces'} of work {what}"


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")


def _plain(text: str) -> str:
    """Without what a terminal would follow."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
