"""Doors for who runs the fake in another process: what it does next, and what has happened."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from tests.support.messages_api.brains import brain_called
from tests.support.messages_api.exchange import Exchange
from tests.support.messages_api.faults import Fault
from tests.support.messages_api.journal import Entry
from tests.support.messages_api.latency import Latency
from tests.support.messages_api.limits import Limits
from tests.support.messages_api.verdict import verdict

if TYPE_CHECKING:
    from tests.support.messages_api.api import MessagesApi


async def control(api: "MessagesApi", exchange: Exchange) -> None:
    """``POST /_control`` with any of ``clear``, ``brain``, ``keys``, ``latency``, ``limits``, ``faults`` (each the
    members of a ``Fault``), ``forever``, and ``fail_share`` (a share, or ``{"share", "seed", "faults"}``)."""
    await exchange.read()
    wanted = exchange.entry.json
    try:
        _apply(api, wanted if isinstance(wanted, dict) else {})
    except (KeyError, TypeError, ValueError) as error:
        await exchange.json(400, {"error": f"{type(error).__name__}: {error}"})
        return
    await exchange.json(200, {"ok": True, "left": api.faults.left})


async def watch(api: "MessagesApi", exchange: Exchange) -> None:
    """``GET /_journal``: counts; with ``?last=n`` the last requests too, with ``?floor=s`` the verdict."""
    await exchange.read()
    asked = {name: values[-1] for name, values in parse_qs(exchange.entry.query).items()}
    figures = api.journal.figures()
    if "last" in asked:
        figures["last"] = [_shown(entry) for entry in list(api.journal.entries)[-int(asked["last"]) :]]
    if "floor" in asked:
        figures["verdict"] = verdict(list(api.journal.entries), floor_seconds=float(asked["floor"]))
    await exchange.json(200, figures)


def _apply(api: "MessagesApi", wanted: dict[str, Any]) -> None:
    unknown = wanted.keys() - {"clear", "brain", "keys", "latency", "limits", "faults", "forever", "fail_share"}
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    if wanted.get("clear"):
        api.faults.clear()
        api.journal.clear()
    if "brain" in wanted:
        api.brain = brain_called(wanted["brain"])
    if "keys" in wanted:
        api.keys = None if wanted["keys"] is None else set(wanted["keys"])
    if "latency" in wanted:
        api.latency = Latency(**wanted["latency"])
    if "limits" in wanted:
        api.limits = Limits(**wanted["limits"])
    if "faults" in wanted:
        api.script(*(Fault(**fault) for fault in wanted["faults"]), forever=bool(wanted.get("forever")))
    if "fail_share" in wanted:
        share = wanted["fail_share"]
        share = share if isinstance(share, dict) else {"share": share}
        mixture = [Fault(**fault) for fault in share.get("faults", ())]
        api.faults.fail_share(share["share"], *mixture, seed=share.get("seed", api.seed))


def _shown(entry: Entry) -> dict[str, Any]:
    """All but the key and the bytes, which are shown as JSON."""
    shown = {member.name: getattr(entry, member.name) for member in fields(entry) if member.name != "body"}
    hidden = {"authorization", "x-api-key"}
    shown["headers"] = {name: value for name, value in entry.headers.items() if name not in hidden}
    return {**shown, "json": entry.json}
