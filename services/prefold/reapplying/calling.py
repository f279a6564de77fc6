"""One erasure after another, through the HTTP API, each until its receipt is clean."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from urllib.parse import quote

import httpx

from prefold.reapplying.reading import Erasure

__all__ = ["Eraser", "Outcome", "Result"]

Result = Literal["erased", "nothing_there", "spared", "failed"]
"""``spared``: it was begun anew after the restore. ``failed``: something may still be there."""

_SPARED: Final = frozenset({"begun_since", "erased_since"})
_NOTHING_THERE: Final = frozenset(
    {"session_not_found", "turn_not_found", "fact_not_found", "session_erased", "user_erased"}
)
"""Any other 404 is one of a wrong address, and says nothing about what is stored."""
_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one erasure."""

    erasure: Erasure
    result: Result
    why: str = ""
    """Of a failure, in codes and numbers; where no key opens the gateway, what to give."""


@dataclass(frozen=True, slots=True)
class _Seen:
    result: Result | None
    """None: worth another try."""
    why: str = ""
    pause_seconds: float = _PAUSE_SECONDS


class Eraser:
    """Calls a gateway with a key for each tenant.

    ``restored``: when the store was restored; what was begun later is left alone. None: nothing is.
    """

    def __init__(
        self,
        http: httpx.Client,
        keys: Mapping[str, str],
        *,
        patience: timedelta,
        restored: datetime | None = None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = http
        self._keys = keys
        self._patience = patience.total_seconds()
        self._restored = restored
        self._clock = clock
        self._pause = pause

    def run(self, erasures: Iterable[Erasure]) -> Iterable[Outcome]:
        """What became of each, in order. Never raises for what a gateway answers, or does not."""
        for erasure in erasures:
            if self._keys and erasure.tenant not in self._keys:
                yield Outcome(erasure, "failed", "no key for this tenant")
            else:
                yield self._erase(erasure)

    def _erase(self, erasure: Erasure) -> Outcome:
        ends_at = self._clock() + self._patience
        has_begun = False
        while True:
            # A user whose erasure was begun here and is not done bears its mark already: that one is ours.
            seen = self._ask(erasure, None if has_begun and erasure.kind == "user" else self._restored)
            if seen.result is not None:
                return Outcome(erasure, seen.result, seen.why)
            has_begun = has_begun or seen.why.startswith("left")
            if self._clock() + seen.pause_seconds > ends_at:
                return Outcome(erasure, "failed", seen.why)
            self._pause(seen.pause_seconds)

    def _ask(self, erasure: Erasure, before: datetime | None) -> _Seen:
        key = self._keys.get(erasure.tenant)
        try:
            answer = self._http.delete(
                _path(erasure),
                params={"before": before.isoformat()} if before and erasure.kind != "fact" else {},
                headers={"authorization": f"Bearer {key}"} if key else {},
            )
        except httpx.RequestError as error:
            return _Seen(None, type(error).__name__)
        seen = _seen(answer)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            wanted = "another key for this tenant" if key else "keys: name their file"
            return _Seen(seen.result, f"{seen.why}: the gateway wants {wanted} with --keys")
        return seen


def _path(erasure: Erasure) -> str:
    names = [quote(name, safe="") for name in erasure.names]
    match erasure.kind:
        case "session":
            return f"/v1/sessions/{names[0]}"
        case "user":
            return f"/v1/users/{names[0]}"
        case "turn":
            return f"/v1/sessions/{names[0]}/turns/{names[1]}"
        case "fact":
            return f"/v1/users/{names[0]}/facts/{names[1]}"


def _seen(answer: httpx.Response) -> _Seen:
    if answer.status_code == httpx.codes.OK:
        return _of_receipt(_object(answer))
    if answer.status_code in (httpx.codes.NOT_FOUND, httpx.codes.GONE) and _code(answer) in _NOTHING_THERE:
        return _Seen("nothing_there")
    why = f"{answer.status_code} {_code(answer)}"
    if answer.status_code == httpx.codes.CONFLICT and _code(answer) in _SPARED:
        return _Seen("spared", why)
    if answer.status_code in _AGAIN:
        return _Seen(None, why, _asked_pause(answer))
    return _Seen("failed", why)


def _of_receipt(receipt: Mapping[str, Any]) -> _Seen:
    """Clean when every store was looked at and nothing was found."""
    if not any(name.endswith("_left") for name in receipt):
        return _Seen("failed", "no receipt: this is no gateway")
    left = {name: count for name, count in receipt.items() if name.endswith("_left") and count not in (0, [])}
    if left or receipt.get("not_checked"):
        told = {name: len(count) if isinstance(count, list) else count for name, count in left.items()}
        return _Seen(None, f"left {told}, not checked {receipt.get('not_checked', [])}")
    return _Seen("erased")


def _code(answer: httpx.Response) -> str:
    return str(_object(answer).get("code", "no problem document"))


def _object(answer: httpx.Response) -> Mapping[str, Any]:
    """The body; empty when it is no JSON object."""
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _asked_pause(answer: httpx.Response) -> float:
    asked = answer.headers.get("retry-after", "")
    return min(max(_PAUSE_SECONDS, float(asked)), _LONGEST_PAUSE_SECONDS) if asked.isdigit() else _PAUSE_SECONDS
