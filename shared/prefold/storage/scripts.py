"""The Lua scripts: one file an operation, put together from libraries and constants, run by digest."""

import hashlib
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

from redis.exceptions import NoScriptError

from prefold.conversation import markers
from prefold.storage import limits
from prefold.storage.fields import lua_positions, lua_state

__all__ = ["Script", "ScriptClient", "constants", "script"]

_LIBRARIES = {
    "append": ("state", "lines", "refit", "place"),
    "open_session": ("state", "lines", "refit", "owing"),
    "begin_build": ("state", "lines"),
    "commit_build": ("state", "lines", "refit"),
    "hold_build": ("state",),
    "keep_segment": ("state",),
    "mark_embedded": ("state", "owing"),
    "erase_session": ("state",),
    "restore_due": ("state",),
    "set_aside": ("state",),
    "count_dropped": (),
    "forget_events": (),
    "change_log": ("state", "lines", "refit", "place", "change", "owing"),
    "fork_log": ("state", "lines", "refit", "change"),
    "note_fork": ("state",),
    "begin_memory": ("state",),
    "end_memory": ("state",),
    "keep_digest": ("state",),
    "close_session": ("state",),
    "put_state": ("state", "lines", "refit", "pinned"),
    "cut_state": ("state", "lines", "refit", "pinned"),
    "note_context": (),
    "reserve_spending": (),
    "settle_spending": (),
    "lease_quota": (),
    "admit_session": (),
    "count_build": (),
    "note_usage": ("state",),
    "admit_call": ("gate",),
    "note_call": ("gate",),
    "write_user": ("user",),
    "forget_user_rows": ("user",),
    "erase_user": ("user",),
    "mark_user_indexed": ("user",),
    "take_ingest": (),
    "drop_ingest": (),
    "refuse_ingest": ("letters",),
    "replay_ingest": ("letters",),
    "forget_letters": ("letters",),
    "forget_waiting": (),
}
_FAST_PATHS = {"append": "append_plain"}
"""Runs before any constant or function is set up, so it has its numbers written in."""
_MARKERS = (
    "OPENER",
    "OPENER_TOKENS",
    "GAP_HEAD",
    "GAP_TAIL",
    "GAP_TOKENS",
    "RESULT_HEAD",
    "CLOSER_HEAD",
    "CLOSER_TAIL",
    "CLOSER_TOKENS",
    "LATE_HEAD",
    "LATE_TAIL",
    "TEXT_HEAD",
    "FRAGMENT_TOKENS",
    "RENAME_TOKENS",
)
_ALLOW_OOM = {
    "hold_build",
    "mark_embedded",
    "erase_session",
    "change_log",
    "begin_memory",
    "end_memory",
    "cut_state",
    "set_aside",
    "count_dropped",
    "forget_events",
    "settle_spending",
    "forget_user_rows",
    "erase_user",
    "mark_user_indexed",
    "take_ingest",
    "drop_ingest",
    "refuse_ingest",
    "forget_letters",
    "forget_waiting",
}


class ScriptClient(Protocol):
    """What a script needs of a Redis client."""

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Awaitable[Any]: ...
    def script_load(self, script: Any) -> Awaitable[Any]: ...


def constants() -> Mapping[str, str | int | float]:
    """Constants that the scripts see as Lua locals."""
    return {**{name: _marker(name) for name in _MARKERS}, **limits.lua_constants()}


def _marker(name: str) -> str | int:
    value = getattr(markers, name)
    return value.decode() if isinstance(value, bytes) else int(value)


def _literal(value: str | float) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return repr(value)


def _inline(source: str) -> str:
    for key, value in sorted(limits.lua_constants().items(), key=lambda item: -len(item[0])):
        source = source.replace(f"${key}", _literal(value))
    return lua_positions(source)


@dataclass(frozen=True, slots=True)
class Script:
    """One operation. ``run`` reloads it when the server has forgotten it (restart, SCRIPT FLUSH, failover)."""

    name: str
    source: str
    sha: str

    async def run(self, client: ScriptClient, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Any:
        """The script's reply. At-least-once: the client may resend, every script is idempotent or says so."""
        try:
            return await client.evalsha(self.sha, len(keys), *keys, *args)
        except NoScriptError:
            await client.script_load(self.source)
            return await client.evalsha(self.sha, len(keys), *keys, *args)


@cache
def script(name: str) -> Script:
    """The script of that file name, ready to run."""
    folder = files("prefold.storage") / "scripts"

    def text(part: str) -> str:
        return (folder / f"{part}.lua").read_text("utf-8")

    flags = " flags=allow-oom" if name in _ALLOW_OOM else ""
    parts = [f"#!lua{flags}"]
    if name in _FAST_PATHS:
        parts.append(_inline(text(_FAST_PATHS[name])))
    parts += [f"local {key} = {_literal(value)}" for key, value in constants().items()]
    parts.append(lua_state())
    parts += [text(f"lib_{library}") for library in _LIBRARIES[name]]
    parts.append(text(name))
    source = "\n".join(parts)
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())
