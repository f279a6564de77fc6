"""``prefold dead-letters``: lists, shows, replays and erases them."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from prefold.audit import AuditAction, AuditLog
from prefold.config.addresses import naming_address
from prefold.config.logs import configure_logging
from prefold.deadletters.arguments import INGEST, DeadLetterArguments, parse_arguments
from prefold.jobs import DeadLetter, DeadLetters, queue_connection
from prefold.jobs.names import WorkKind
from prefold.jobs.starts import forget_starts
from prefold.storage.client import connect
from prefold.storage.ingest_letters import IngestLetter, IngestLetters

Letter = DeadLetter | IngestLetter

_REPLY_TIMEOUT = timedelta(seconds=5)


def main(argv: Sequence[str]) -> int:
    """0 when it could be done, also when there was nothing to do. Raises ``UnavailableError``."""
    arguments = parse_arguments(argv)
    configure_logging("dead-letters", arguments.settings)
    letters = asyncio.run(_do(arguments))
    _note(arguments, letters)
    shown = _as_json if arguments.is_json else _in_full if arguments.action == "show" else _in_a_line
    for letter in letters:
        print(shown(letter))
    if not arguments.is_json:
        print(_end_line(arguments, len(letters)))
    return 0


def _note(arguments: DeadLetterArguments, letters: Sequence[Letter]) -> None:
    """Ids only."""
    done: dict[str, AuditAction] = {"replay": "dead_letter_replayed", "erase": "dead_letter_erased"}
    action = done.get(arguments.action)
    if action is None:
        return
    audit = AuditLog(arguments.settings.audit_file, role="dead-letters")
    for letter in letters:
        subject = {"kind": letter.kind, "session": letter.session}
        if isinstance(letter, IngestLetter):
            subject["entry"] = letter.entry_id
        audit.note(action, tenant=letter.tenant, subject=subject)


async def _do(arguments: DeadLetterArguments) -> list[Letter]:
    """The letters that were meant, after what was to be done with them."""
    settings = arguments.settings
    async with connect(settings.redis_url, max_connections=4, timeout=_REPLY_TIMEOUT) as client:
        with naming_address(settings, "redis_url"):
            work = [] if arguments.kind == INGEST else await _do_work(arguments, arguments.kind, DeadLetters(client))
            entries = await _do_entries(arguments, IngestLetters(client)) if arguments.kind in (None, INGEST) else []
    return sorted([*work, *entries], key=lambda letter: letter.at_ms)


async def _do_work(
    arguments: DeadLetterArguments, kind: WorkKind | None, dead_letters: DeadLetters
) -> list[DeadLetter]:
    letters = await dead_letters.letters(tenant=arguments.tenant, session=arguments.session, kind=kind)
    if arguments.action == "erase":
        for letter in letters:
            await dead_letters.remove(letter)
    elif arguments.action == "replay" and letters:
        with naming_address(arguments.settings, "queue_url"):
            await asyncio.to_thread(_forget_starts, arguments.settings.queue_url, letters)
        for letter in letters:
            await dead_letters.release(letter)
    return letters


async def _do_entries(arguments: DeadLetterArguments, ingest: IngestLetters) -> list[IngestLetter]:
    letters = await ingest.letters(arguments.tenant, arguments.session)
    if arguments.action == "erase":
        return [letter for letter in letters if await ingest.remove(letter)]
    if arguments.action == "replay":
        return [letter for letter in letters if await ingest.replay(letter)]
    return letters


def _forget_starts(queue_url: str, letters: Sequence[DeadLetter]) -> None:
    with closing(queue_connection(queue_url, reply_timeout=_REPLY_TIMEOUT)) as queue:
        for letter in letters:
            forget_starts(queue, letter.kind, letter.ref)


def _as_json(letter: Letter) -> str:
    return json.dumps(asdict(letter), ensure_ascii=False)


def _in_a_line(letter: Letter) -> str:
    who = f"{_plain(letter.tenant)}/{_plain(letter.session or '-')}"
    if isinstance(letter, IngestLetter):
        return f"{_time(letter.at_ms)}  {letter.kind:<8}{who}  {letter.entry_id}  {_why(letter)}"
    return f"{_time(letter.at_ms)}  {letter.kind:<8}{who}  {letter.starts} starts  {_plain(letter.reason)}"


def _in_full(letter: Letter) -> str:
    rows = _entry_rows(letter) if isinstance(letter, IngestLetter) else _work_rows(letter)
    return "".join(f"{name:<13}{value}\n" for name, value in rows.items())


def _entry_rows(letter: IngestLetter) -> dict[str, str]:
    return {
        "tenant": _plain(letter.tenant),
        "session": _plain(letter.session or "-"),
        "kind": letter.kind,
        "reason": _why(letter),
        "entry": letter.entry_id,
        "bytes": str(letter.refusal.size_bytes),
        "kept": "whole" if letter.has_text else "only the reason",
        "set aside": _time(letter.at_ms),
        "prefold": letter.refusal.version,
    }


def _why(letter: IngestLetter) -> str:
    place = f" at {letter.refusal.field}" if letter.refusal.field else ""
    return _plain(f"{letter.refusal.reason}{place}")


def _work_rows(letter: DeadLetter) -> dict[str, str]:
    return {
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


def _end_line(arguments: DeadLetterArguments, count: int) -> str:
    what = {"replay": "given another try", "erase": "forgotten"}.get(arguments.action, "set aside")
    return f"{count} {'piece' if count == 1 else 'pieces'} of work {what}"


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")


def _plain(text: str) -> str:
    """Without what a terminal would follow."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
