"""A gateway in memory that speaks the documented API: for tests of the client and of the replay alone.

It swaps when a context would pass its limit (the summary is one line), and can be told to misbehave.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from prefold.conversation import Fragment, anthropic_messages, openai_messages

JsonObject = dict[str, Any]

_SUMMARY = "[Prefold: summary of turns 1 to {}]\n## What happened\nMuch.\n[Prefold: end of summary]"


@dataclass
class FakeSession:
    hard_limit_tokens: int = 100_000
    turns: list[JsonObject] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    """Of ``turns``, one each."""
    head_seq: int = 0
    revisions: dict[str, int] = field(default_factory=dict)
    rewound: set[str] = field(default_factory=set)
    covers_to: int = 0
    swaps: int = 0
    version: int = 1
    crossings: int = 0

    @property
    def soft_threshold_tokens(self) -> int:
        return self.hard_limit_tokens * 6 // 10

    @property
    def system(self) -> str:
        return str(self.turns[0]["content"]) if self.turns and self.turns[0]["role"] == "system" else ""

    def add(self, turn: JsonObject) -> None:
        self.head_seq += 1
        self.turns.append(turn)
        self.seqs.append(self.head_seq)

    def seq_of(self, turn_id: str) -> int | None:
        return next((seq for seq, turn in zip(self.seqs, self.turns, strict=True) if turn["id"] == turn_id), None)

    def window(self) -> list[JsonObject]:
        return [turn for turn in self.turns[self.covers_to :] if turn["role"] != "system"]

    def window_tokens(self) -> int:
        return sum(tokens_of(turn) for turn in self.window())

    def tokens(self) -> int:
        return self.window_tokens() + len(self.system) // 3 + (20 if self.covers_to else 0)

    def fit(self) -> bool:
        """Swap when over the limit; True when it did."""
        if self.tokens() <= self.hard_limit_tokens:
            return False
        cuts = [n for n in range(self.covers_to + 1, len(self.turns)) if is_plain_user(self.turns[n])]
        self.covers_to = next((n for n in cuts if n >= len(self.turns) - 8), cuts[-1])
        self.crossings += 1
        self.swaps += 1
        self.version += 1
        return True

    def fragments(self) -> list[Fragment]:
        head = [{"type": "text", "text": _SUMMARY.format(self.covers_to)}]
        lines = [_fragment("user", head)] if self.covers_to else []
        return lines + [_fragment(*in_blocks(turn)) for turn in self.window()]


@dataclass
class FakeGateway:
    """``requests`` has what came in. ``refusals`` are answered first, one a request: (status, headers, body)."""

    url: str = ""
    sessions: dict[str, FakeSession] = field(default_factory=dict)
    requests: list[tuple[str, str, JsonObject | None]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: set[object] = field(default_factory=set)
    """The other ends of those that requests came over."""
    refusals: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    stores_then_drops: int = 0
    """So many changes are done, but their connection is cut before the answer."""
    changed_in_the_log: str = ""
    missing_in_the_log: str = ""
    overstated_tokens: int = 0
    """Added to the total of each context."""
    breaks_roles: bool = False
    """Contexts end with the assistant's message said twice."""

    def answer(self, method: str, target: str, body: JsonObject | None) -> tuple[int, JsonObject]:
        parts = urlsplit(target)
        _, version, kind, *rest = parts.path.split("/")
        query = dict(parse_qsl(parts.query))
        assert version == "v1"
        if kind == "search":
            return 200, {"results": [_hit(body or {})]}
        name = unquote(rest[0])
        match method, rest[1:]:
            case "PUT", []:
                session = self.sessions.setdefault(name, FakeSession())
                session.hard_limit_tokens = (body or {}).get("hard_limit_tokens", session.hard_limit_tokens)
                return 200, session_answer(name, session)
            case "POST", ["turns"]:
                return 201, self._append(self.sessions.setdefault(name, FakeSession()), (body or {})["turns"])
        if name not in self.sessions:
            return _problem(404, "session_not_found", f"there is no session {name}")
        session = self.sessions[name]
        match rest[1:]:
            case []:
                return 200, session_answer(name, session)
            case ["turns"]:
                return 200, {"turns": self._log(session, int(query["after_seq"]), int(query["limit"]))}
            case ["context"]:
                return 200, self._context(session, query.get("format", "anthropic"))
        return self._answer_change(name, rest[1:], body)

    def _answer_change(self, name: str, rest: list[str], body: JsonObject | None) -> tuple[int, JsonObject]:
        session = self.sessions[name]
        match rest:
            case ["rewind"]:
                return 200, self._rewind(name, session, (body or {})["to_seq"])
            case ["fork"]:
                return self._fork(name, session, body or {})
            case ["turns", turn_id]:
                return self._change(session, unquote(turn_id), body)
        return _problem(404, "no_such_path", "there is no such path")

    def _append(self, session: FakeSession, turns: list[JsonObject]) -> JsonObject:
        accepted, has_swapped = [], False
        for turn in turns:
            known = session.seq_of(turn["id"])
            if not known:
                session.add(turn)
                has_swapped |= session.fit()
            seq = known or session.head_seq
            accepted.append({"id": turn["id"], "seq": seq, "tokens": tokens_of(turn), "duplicate": bool(known)})
        state = context_state(session) | {"status": "swapped" if has_swapped else "ok"}
        return {"turns": accepted, "context": state, "durability": "fast"}

    def _rewind(self, name: str, session: FakeSession, to_seq: int) -> JsonObject:
        stay = sum(seq <= to_seq for seq in session.seqs)
        taken = len(session.turns) - stay
        session.rewound |= {turn["id"] for turn in session.turns[stay:]}
        del session.turns[stay:], session.seqs[stay:]
        told = {"session": name, "to_seq": to_seq, "turns": taken, "head_seq": session.head_seq}
        return told | _change_numbers(session)

    def _fork(self, name: str, session: FakeSession, body: JsonObject) -> tuple[int, JsonObject]:
        if body["session"] in self.sessions:
            return _problem(409, "session_exists", "there is such a session")
        at_seq = body.get("at_seq", session.head_seq)
        shared = [seq for seq in session.seqs if seq <= at_seq]
        fork = FakeSession(session.hard_limit_tokens, session.turns[: len(shared)], shared, at_seq)
        self.sessions[body["session"]] = fork
        return 201, session_answer(body["session"], fork) | {"forked_from": {"session": name, "at_seq": at_seq}}

    def _change(self, session: FakeSession, turn_id: str, body: JsonObject | None) -> tuple[int, JsonObject]:
        """Correct a turn, or, without a body, remove it."""
        seq = session.seq_of(turn_id)
        if seq is None:
            is_rewound = turn_id in session.rewound
            return _problem(409, "turn_rewound", "") if is_rewound else _problem(404, "turn_not_found", "")
        at = session.seqs.index(seq)
        old = session.turns[at]
        new = {"id": turn_id, **(body or {"role": old["role"], "content": "[removed]", "removed": True})}
        session.turns[at] = new
        revision = session.revisions.get(turn_id, 0) + (new != old)
        session.revisions[turn_id] = revision
        turn = {"id": turn_id, "seq": seq, "tokens": tokens_of(new), "revision": revision}
        return 200, {"turn": turn, "changed": new != old, "removed": body is None, **_change_numbers(session)}

    def _context(self, session: FakeSession, form: str) -> JsonObject:
        fragments = session.fragments()
        messages = anthropic_messages(fragments) if form == "anthropic" else openai_messages(fragments, session.system)
        if self.breaks_roles and messages and messages[-1]["role"] == "assistant":
            messages.append(messages[-1])
        system_tokens, window = len(session.system) // 3, session.window_tokens()
        sections = {"system": system_tokens, "summary": 20 if session.covers_to else 0, "window": window}
        return {
            "version": session.version,
            "covers_to": session.covers_to,
            "status": "ok",
            "system": session.system,
            "messages": messages,
            "tokens": {"total": sum(sections.values()) + self.overstated_tokens, "sections": sections},
            "recalled": [],
            "left_out": [],
            "open_calls": [],
        }

    def _log(self, session: FakeSession, after_seq: int, limit: int) -> list[JsonObject]:
        log = [{"seq": seq, **turn} for seq, turn in zip(session.seqs, session.turns, strict=True)]
        page = [turn for turn in log if turn["seq"] > after_seq][:limit]
        for turn in page:
            if turn["id"] == self.changed_in_the_log:
                turn["content"] = "something else"
        return [turn for turn in page if turn["id"] != self.missing_in_the_log]


def tokens_of(turn: JsonObject) -> int:
    """More than the true count for the texts of these tests, so that a recount stays below."""
    return 12 + len(json.dumps(turn, ensure_ascii=False)) // 3


def is_plain_user(turn: JsonObject) -> bool:
    """True where a summary may end before the turn."""
    blocks = turn["content"] if isinstance(turn["content"], list) else []
    return turn["role"] == "user" and not any(block["type"] == "tool_result" for block in blocks)


def in_blocks(turn: JsonObject) -> tuple[str, list[JsonObject]]:
    """Role and blocks in Anthropic's form."""
    content = turn["content"]
    if turn["role"] == "tool":
        return "user", [{"type": "tool_result", "tool_use_id": turn["tool_call_id"], "content": content}]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    for call in turn.get("tool_calls", ()):
        function = call["function"]
        arguments = json.loads(function["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments})
    return str(turn["role"]), blocks


def context_state(session: FakeSession) -> JsonObject:
    """Of an append or a change."""
    return {
        "version": session.version,
        "swaps": session.swaps,
        "tokens": session.tokens(),
        "window_tokens": session.window_tokens(),
        "hard_limit_tokens": session.hard_limit_tokens,
        "status": "ok",
    }


def _change_numbers(session: FakeSession) -> JsonObject:
    remains = [{"where": "redis append-only file", "until": "the rewrite that was started now"}]
    return {"vectors_left": 0, "context": context_state(session), "remains": remains, "durability": "fast"}


def _problem(status: int, code: str, detail: str) -> tuple[int, JsonObject]:
    return status, {"code": code, "detail": detail, "status": status}


def session_answer(name: str, session: FakeSession) -> JsonObject:
    """Of PUT and GET."""
    limit, window = session.hard_limit_tokens, session.window_tokens()
    return {
        "session": name,
        "user": None,
        "limits": {"hard_limit_tokens": limit, "soft_threshold_tokens": session.soft_threshold_tokens},
        "head_seq": session.head_seq,
        "version": session.version,
        "swaps": session.swaps,
        "status": "ok",
        "degraded": False,
        "tokens": {"total": session.tokens(), "window": window, "log": sum(map(tokens_of, session.turns))},
        "active": {"covers_to": session.covers_to},
        "standby": _standby(session),
        "build": None,
        "limit_crossings": session.crossings,
        "ready_crossings": session.crossings,
        "embedded_to": len(session.turns),
        "forked_from": None,
    }


def _standby(session: FakeSession) -> JsonObject | None:
    if session.tokens() < session.soft_threshold_tokens:
        return None
    return {"covers_to": len(session.turns) - 2, "tokens": 20, "coverage": 1.0, "built_at": "2026-01-01T00:00:00Z"}


def _fragment(role: str, blocks: list[JsonObject]) -> Fragment:
    content = json.dumps(blocks, ensure_ascii=False)[1:-1].encode()
    return Fragment("assistant" if role == "assistant" else "user", 1, "", 1, content)


def _hit(body: JsonObject) -> JsonObject:
    text = json.dumps(body)
    return {"kind": "turn", "session": "s", "turn_id": "t", "seq": 1, "role": "user", "text": text, "score": 0.5}


@contextmanager
def running_fake_gateway() -> Iterator[FakeGateway]:
    """The fake behind a real socket, until the block ends."""
    fake = FakeGateway()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(fake: FakeGateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Or each answer waits for the client's delayed acknowledgement of its head.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._serve()

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            body = json.loads(raw) if raw else None
            fake.requests.append((self.command, self.path, body))
            fake.connections.add(self.client_address)
            fake.headers.append({name.lower(): value for name, value in self.headers.items()})
            if fake.refusals:
                status, headers, document = fake.refusals.pop(0)
                self._send(status, headers, document)
                return
            status, answer = fake.answer(self.command, self.path, body)
            if fake.stores_then_drops and self.command != "GET":
                fake.stores_then_drops -= 1
                self.close_connection = True
                return
            self._send(status, {"content-type": "application/json"}, json.dumps(answer).encode())

        def _send(self, status: int, headers: dict[str, str], document: bytes) -> None:
            self.send_response(status)
            for name, value in (headers | {"content-length": str(len(document))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(document)

    return Handler
