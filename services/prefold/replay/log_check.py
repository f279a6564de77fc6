"""Compares the log that a gateway gives back with what was published."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prefold.client import Prefold

JsonObject = Mapping[str, Any]

PAGE_TURNS = 500


def read_log(client: Prefold, session: str) -> list[dict[str, Any]]:
    """The whole log of a session, page by page."""
    turns: list[dict[str, Any]] = []
    while page := client.turns(session, after_seq=turns[-1]["seq"] if turns else 0, limit=PAGE_TURNS):
        turns.extend(page)
    return turns


def log_faults(published: Sequence[JsonObject], log: Sequence[JsonObject]) -> list[str]:
    """One line for each turn that is not in the log exactly once, verbatim and in its place; empty: all is well."""
    return [*_missing_or_changed(published, log), *_out_of_order(published, log)]


def _missing_or_changed(published: Sequence[JsonObject], log: Sequence[JsonObject]) -> Iterator[str]:
    logged: dict[str, list[JsonObject]] = {}
    for entry in log:
        logged.setdefault(entry["id"], []).append(entry)
    for turn in published:
        entries = logged.get(turn["id"], [])
        if len(entries) != 1:
            yield f"{turn['id']}: stands in the log {len(entries)} times"
        elif {name: value for name, value in entries[0].items() if name != "seq"} != turn:
            yield f"{turn['id']}: differs in the log"
    own = {turn["id"] for turn in published}
    yield from (f"{entry['id']}: was never published" for entry in log if entry["id"] not in own)


def _out_of_order(published: Sequence[JsonObject], log: Sequence[JsonObject]) -> Iterator[str]:
    places = {turn["id"]: place for place, turn in enumerate(published)}
    last_place, last_seq = -1, 0
    for entry in log:
        place = places.get(entry["id"], last_place)
        if place < last_place or entry["seq"] <= last_seq:
            yield f"{entry['id']}: stands out of order"
        last_place, last_seq = max(place, last_place), max(entry["seq"], last_seq)
