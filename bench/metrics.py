"""What the metrics cost on the append path: the gateway against one that counts nothing, one call after the other."""

import http.client
import json
import sys
from urllib.parse import urlsplit

from bench.load import cpu_seconds
from bench.measure import ROUNDS, Row, Timed, median_of, timed_calls
from bench.servers import TEXT, HttpProcess, gateway_process, http_process, session_server

_WINDOW = 60


def metrics_rows(calls: int) -> list[Row]:
    """``calls`` appends a round, and a quarter as many reads, on each gateway in turn; both on one store."""
    with session_server("fast") as redis:
        url = f"unix://{redis.connection_pool.connection_kwargs['path']}"
        command = [sys.executable, "-m", "bench.unmetered", "--port", "0", "--log-format", "json"]
        bare = http_process(command, {"PREFOLD_REDIS_URL": url, "PREFOLD_DURABILITY": "fast"})
        twin = gateway_process(url, "fast")
        with gateway_process(url, "fast") as counting, bare as not_counting, twin as same:
            taken = _rounds({"counting": counting, "not": not_counting, "same": same}, calls)
    return [row for what in ("append", "read") for row in _rows_of(taken, what)]


def _rows_of(taken: dict[tuple[str, str], list[Timed]], what: str) -> list[Row]:
    """With and without; and a second gateway that counts against the first: what differs there is noise."""
    counting, bare, same = (median_of(taken[side, what]) for side in ("counting", "not", "same"))
    return [
        Row(f"HTTP {what}, p50 with metrics", "without", "us", counting.p50_us, bare.p50_us),
        Row(f"HTTP {what}, gateway CPU with metrics", "without", "us", counting.server_us, bare.server_us),
        Row(f"HTTP {what}, gateway CPU, the same twice", "with metrics", "us", same.server_us, counting.server_us),
    ]


def _rounds(sides: dict[str, HttpProcess], calls: int) -> dict[tuple[str, str], list[Timed]]:
    """Interleaved, another side first in each round; the first round only warms up."""
    taken: dict[tuple[str, str], list[Timed]] = {(side, what): [] for side in sides for what in ("append", "read")}
    order = list(sides)
    for number in range(2 * ROUNDS + 1):
        for side in (*order[number % len(order) :], *order[: number % len(order)]):
            appended, read = _round(sides[side], f"{side}-{number}", calls)
            if number:
                taken[side, "append"].append(appended)
                taken[side, "read"].append(read)
    return taken


def _round(server: HttpProcess, name: str, calls: int) -> tuple[Timed, Timed]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)

    def append(number: int) -> None:
        body = json.dumps({"id": f"turn-{number}", "role": "user", "content": f"{number} {TEXT}"})
        path = f"/v1/sessions/{name}-{number // _WINDOW}/turns"
        connection.request("POST", path, body, {"content-type": "application/json"})
        assert connection.getresponse().read()

    def read(_number: int) -> None:
        connection.request("GET", f"/v1/sessions/{name}-0/context")
        assert connection.getresponse().read()

    try:
        used = lambda: cpu_seconds(server.pid)  # noqa: E731
        return timed_calls(append, range(calls), used), timed_calls(read, range(calls // 4), used)
    finally:
        connection.close()
