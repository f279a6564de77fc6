"""One stack of real processes, each kind of work done some thousand times, and what each process spent on it."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import httpx

from bench.dispatch import dispatch_rows
from bench.http import http_rows
from bench.load import offer, request
from bench.memory import measured as memory_of_sessions
from bench.memory import pieces
from bench.unit_costs.spending import Meter, Traffic, resident_mb
from prefold.stack.embedded import EmbeddedStack, temporary_stack
from prefold.tokens import load_counter

TURNS, TURN_BYTES = 60, 600
LANES = 8
DISPATCHED = 4_000
HTTP_CALLS = 800
MEMORY_SESSIONS = 200
READ_TURNS = 20
"""Of each session, for the reads; as many again without them."""
BUILT_LIMIT_TOKENS = 8_000
"""Of the sessions whose summaries are measured."""
BUILT_TURNS = 120
IDLE_SECONDS = 6.0
_WITHIN_SECONDS = 600.0


def measure(sessions: int) -> dict[str, float]:
    """Everything that ``prefold plan`` multiplies, by name. CPU in microseconds, sizes in bytes or MB."""
    texts = list(pieces(TURN_BYTES, sessions * TURNS))
    counter = load_counter()
    found = {"bytes_per_token": sum(len(text.encode()) for text in texts) / sum(map(counter.count, texts))}
    with temporary_stack(durability="fast") as stack, httpx.Client(base_url=stack.gateway_url, timeout=60) as client:
        _warm(client)
        meter = Meter(stack.pids)
        traffic = Traffic(stack.redis_url)
        meter.learn_idle(IDLE_SECONDS)
        traffic.end_idle()
        found |= _turns(stack, client, meter, traffic, texts, sessions)
        found |= _reads(stack, client, meter, traffic, texts, sessions)
        found |= _searches(stack, meter, texts)
        found |= _ends(client, meter, sessions)
        found |= _builds(stack, client, meter, max(4, sessions // 8))
        found |= {f"{_slug(name)}_mb": resident_mb(pid) for name, pid in stack.pids().items()}
    found |= _gateway_alone()
    found["dispatcher_turn_us"] = 1e6 / dispatch_rows(DISPATCHED)[0].notes["events_per_cpu_second"]
    return found | session_memory()


def session_memory() -> dict[str, float]:
    """Bytes in Redis over bytes of text: of the log and all beside it, and of a context that holds the whole text."""
    spoken, ended = memory_of_sessions(MEMORY_SESSIONS)
    return {
        "log_times_text": (ended.used - ended.by_key["context"]) / ended.text,
        "context_times_spoken": spoken.by_key["context"] / spoken.text,
        "context_times_rest": ended.by_key["context"] / ended.text,
    }


def _turns(
    stack: EmbeddedStack, client: httpx.Client, meter: Meter, traffic: Traffic, texts: Sequence[str], sessions: int
) -> dict[str, float]:
    """Appended over HTTP, dispatched, embedded and stored as vectors."""
    total = sessions * TURNS
    lanes: list[list[bytes]] = [[] for _ in range(LANES)]
    for number in range(total):
        session = number % sessions
        lanes[session % LANES].append(_append(f"s{session}", number // sessions, texts[number]))
    folder = stack.folder.path / "vectors"
    disk, resident = _disk(folder), resident_mb(stack.pids()["vectors"])
    traffic.begin()
    with meter.measuring() as spent:
        offer(stack.gateway_url, stack.pids()["gateway"], lanes)
        _until("all is embedded", lambda: all(_is_embedded(client, f"s{number}") for number in range(sessions)))
    received, sent = traffic.since()
    return {
        "gateway_busy_append_us": spent.us("gateway", total),
        "redis_turn_us": spent.us("redis sessions", total),
        "queue_turn_us": spent.us("redis queue", total),
        "dispatcher_slow_turn_us": spent.us("dispatcher", total),
        "embed_turn_us": spent.us("worker embed", total),
        "vectors_turn_us": spent.us("vectors", total),
        "vector_disk_bytes": (_disk(folder) - disk) / total,
        "vector_memory_bytes": max(0.0, resident_mb(stack.pids()["vectors"]) - resident) * 1e6 / total,
        "redis_turn_received_bytes": received / total,
        "redis_turn_sent_bytes": sent / total,
        "http_append_bytes": sum(len(one) for lane in lanes for one in lane) / total,
    }


def _append(session: str, number: int | str, text: str) -> bytes:
    turn = {"id": f"{session}-{number}", "role": "user", "content": text}
    return request("POST", f"/v1/sessions/{session}/turns", json.dumps(turn).encode())


def _reads(
    stack: EmbeddedStack, client: httpx.Client, meter: Meter, traffic: Traffic, texts: Sequence[str], sessions: int
) -> dict[str, float]:
    """The stored format, without a query, each after a turn as in a conversation: what they add to turns alone."""
    calls = sessions * READ_TURNS
    found = {}
    for name, with_reads in (("turns", False), ("both", True)):
        lanes: list[list[bytes]] = [[] for _ in range(LANES)]
        for number in range(calls):
            session = f"s{number % sessions}"
            lane = lanes[number % sessions % LANES]
            lane.append(_append(session, f"{name}{number}", texts[number]))
            if with_reads:
                lane.append(request("GET", f"/v1/sessions/{session}/context"))
        traffic.begin()
        with meter.measuring() as spent:
            offer(stack.gateway_url, stack.pids()["gateway"], lanes)
            _until("all is embedded", lambda: all(_is_embedded(client, f"s{number}") for number in range(sessions)))
        found[name] = (spent.us("redis sessions", calls), traffic.since()[1] / calls)
    redis, sent = (max(0.0, both - turns) for both, turns in zip(found["both"], found["turns"], strict=True))
    context = client.get("/v1/sessions/s0/context")
    return {
        "redis_read_us": redis,
        "redis_read_sent_bytes": sent,
        "http_read_bytes": len(context.content),
        "read_text_bytes": (TURNS + 2 * READ_TURNS) * TURN_BYTES,
    }


def _gateway_alone() -> dict[str, float]:
    """Appends of 1.7 KB and reads of 100 KB, with nothing but their store beside them (``bench http``)."""
    rows = {row.name: row.value for row in http_rows(HTTP_CALLS)}
    return {
        "gateway_append_us": rows["HTTP append, gateway CPU a turn"],
        "gateway_read_us": rows["HTTP context read, gateway CPU"],
    }


def _searches(stack: EmbeddedStack, meter: Meter, texts: Sequence[str]) -> dict[str, float]:
    """Over the whole tenant, with words of one turn each."""
    calls = 160
    bodies = [json.dumps({"query": texts[number * 7 % len(texts)][:80]}).encode() for number in range(calls)]
    lanes = [[request("POST", "/v1/search", body) for body in bodies[lane::2]] for lane in range(2)]
    with meter.measuring() as spent:
        offer(stack.gateway_url, stack.pids()["gateway"], lanes)
    return {
        "gateway_search_us": spent.us("gateway", calls),
        "vectors_search_us": spent.us("vectors", calls),
    }


def _ends(client: httpx.Client, meter: Meter, sessions: int) -> dict[str, float]:
    """Sessions closed: facts looked for in all turns, a digest written and embedded."""
    with meter.measuring() as spent:
        for number in range(sessions):
            client.post(f"/v1/sessions/s{number}/close").raise_for_status()
        _until("all are closed", lambda: all(_is_closed(client, f"s{number}") for number in range(sessions)))
    return {"memory_turn_us": spent.us("worker memory", sessions * TURNS)}


def _builds(stack: EmbeddedStack, client: httpx.Client, meter: Meter, sessions: int) -> dict[str, float]:
    """Sessions that pass their limit, their summaries written offline."""
    texts = list(pieces(TURN_BYTES, sessions * BUILT_TURNS))
    lanes: list[list[bytes]] = [[] for _ in range(LANES)]
    for number, text in enumerate(texts):
        session = number % sessions
        lanes[session % LANES].append(_append(f"b{session}", number // sessions, text))
    for number in range(sessions):
        body = {"hard_limit_tokens": BUILT_LIMIT_TOKENS}
        client.put(f"/v1/sessions/b{number}", json=body).raise_for_status()
    with meter.measuring() as spent:
        offer(stack.gateway_url, stack.pids()["gateway"], lanes)
        _until("all have a summary", lambda: all(_has_standby(client, f"b{number}") for number in range(sessions)))
    events = _build_events(stack.folder.logs)
    built = [event for event in events if event["event"] == "build_made"]
    tokens = sum(map(load_counter().count, texts))
    return {
        "compact_build_us": spent.us("worker compact", max(1, len(built))),
        "compact_token_us": spent.us("worker compact", tokens),
        "measured_builds": len(built),
    }


def _warm(client: httpx.Client) -> None:
    """Every process has loaded what it works with."""
    client.post("/v1/sessions/warm/turns", json={"id": "w", "role": "user", "content": "Is anybody in?"})
    _until("a turn is embedded", lambda: _is_embedded(client, "warm"))
    _until("a search answers", lambda: client.post("/v1/search", json={"query": "anybody"}).is_success)
    client.post("/v1/sessions/warm/close").raise_for_status()
    _until("a session is closed", lambda: _is_closed(client, "warm"))


def _view(client: httpx.Client, session: str) -> dict[str, Any]:
    return dict(client.get(f"/v1/sessions/{session}").raise_for_status().json())


def _is_embedded(client: httpx.Client, session: str) -> bool:
    view = _view(client, session)
    return bool(view["embedded_to"] >= view["head_seq"])


def _is_closed(client: httpx.Client, session: str) -> bool:
    return _view(client, session)["closed_at"] is not None


def _has_standby(client: httpx.Client, session: str) -> bool:
    view = _view(client, session)
    return view["swaps"] > 0 and view["build"] is None


def _until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WITHIN_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain until {what}")
        time.sleep(0.25)


def _disk(folder: Path) -> int:
    """Bytes really taken: the files are sparse."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _build_events(logs: Path) -> Iterable[dict[str, Any]]:
    for path in logs.glob("worker-compact*.log*"):
        for line in path.read_text("utf-8", "replace").splitlines():
            if line.startswith("{") and line.endswith("}"):
                yield json.loads(line)


def _slug(name: str) -> str:
    return name.replace(" ", "_")
