"""The gateway over HTTP: append and context read against a no-op route of the same server."""

import http.client
import json
from collections.abc import Callable
from urllib.parse import urlsplit

from bench.measure import ROUNDS, Row, Timed, median_of, timed_calls
from bench.servers import TEXT
from prefold.client import Prefold
from prefold.stack.embedded import temporary_stack

WINDOW = 60


def http_rows(calls: int) -> list[Row]:
    """One keep-alive connection; the context holds about ``WINDOW`` turns of 1.7 KB."""
    with temporary_stack(durability="fast", embed_workers=0, compact_workers=0, memory_workers=0) as stack:
        address = urlsplit(stack.gateway_url)
        connection = http.client.HTTPConnection(address.hostname or "127.0.0.1", address.port)
        with Prefold(stack.gateway_url) as sdk:
            for number in range(WINDOW):
                sdk.append("reads", "assistant" if number % 2 else "user", TEXT)
            sides: dict[str, Callable[[int], object]] = {
                "floor": lambda _: _ask(connection, "GET", "/livez"),
                "append": lambda i: _ask(connection, "POST", _turns(i), _turn(i)),
                "sdk": lambda i: sdk.append(f"sdk-{i // WINDOW}", "user", TEXT),
                "read": lambda _: _ask(connection, "GET", "/v1/sessions/reads/context"),
                "openai": lambda _: _ask(connection, "GET", "/v1/sessions/reads/context?format=openai"),
            }
            rounds: dict[str, list[Timed]] = {name: [] for name in sides}
            for number in range(ROUNDS):
                for name, call in sides.items():
                    numbers = range(number * calls, (number + 1) * calls)
                    rounds[name].append(timed_calls(call, numbers, lambda: 0.0))
        connection.close()
    p50 = {name: median_of(taken).p50_us for name, taken in rounds.items()}
    names = {"append": "HTTP append, p50", "sdk": "SDK append, p50", "read": "HTTP context read, p50"}
    names["openai"] = "HTTP context read, OpenAI's form, p50"
    return [Row(text, "no-op route", "us", p50[name], p50["floor"]) for name, text in names.items()]


def _turns(number: int) -> str:
    return f"/v1/sessions/appends-{number // WINDOW}/turns"


def _turn(number: int) -> bytes:
    return json.dumps({"id": f"turn-{number}", "role": "user", "content": TEXT}).encode()


def _ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> bytes:
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    data = answer.read()
    assert answer.status in (200, 201), data
    return data
