"""The blocking client with what an evaluation calls beside it: facts, pinned state, closing, and erasure."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from prefold.client import Prefold
from prefold.client.calls import Call
from prefold.client.results import JsonObject


class MemoryClient(Prefold):
    """Answers are the gateway's JSON. Raises what ``Prefold`` raises."""

    def session_json(self, session: str) -> JsonObject:
        """The session as it stands, with every member that the gateway knows."""
        return self._call("GET", _session(session))

    def close_session(self, session: str) -> JsonObject:
        """End the session: last segment, facts and summary are due at once."""
        return self._call("POST", _session(session, "close"), {})

    def put_state(self, session: str, state: Mapping[str, Any]) -> JsonObject:
        """Replace the pinned state."""
        return self._call("PUT", _session(session, "state"), state)

    def facts(self, user: str, *, history: bool = False) -> list[JsonObject]:
        """What is known of the user now, with ``history`` also what was known; the newest 500 rows."""
        found: list[JsonObject] = self._call(
            "GET", _facts(user), query={"limit": "500", "history": str(history).lower()}
        )["facts"]
        return found

    def delete_fact(self, user: str, fact: str) -> JsonObject:
        """Delete a fact; it is not learnt again."""
        return self._call("DELETE", _facts(user, fact))

    def correct_fact(self, user: str, fact: str, row: Mapping[str, Any]) -> JsonObject:
        """Put a row of the backend in a fact's place."""
        return self._call("PUT", _facts(user, fact), row)

    def erase_session(self, session: str) -> JsonObject:
        """Remove the session from every store."""
        return self._call("DELETE", _session(session))

    def erase_user(self, user: str) -> JsonObject:
        """Remove everything about the user."""
        return self._call("DELETE", f"/v1/users/{quote(user, safe='')}")

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, str] | None = None
    ) -> JsonObject:
        sent = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        return self._send(Call(method, path, dict, query=query or {}, body=sent))


def _session(session: str, *rest: str) -> str:
    return "/".join(["/v1/sessions", quote(session, safe=""), *rest])


def _facts(user: str, *rest: str) -> str:
    return "/".join(["/v1/users", quote(user, safe=""), "facts", *(quote(part, safe="") for part in rest)])
