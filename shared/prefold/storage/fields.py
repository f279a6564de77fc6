"""Layout of a session's packed state: the one place that says which number stands where.

The value of ``meta``'s field ``state`` is one signed 64-bit big-endian integer a name below, then the incarnation
(12 characters), then the ids of the open calls, joined by spaces. A string of this form costs the append script a
tenth of what a hash field for each number would.
"""

import struct

__all__ = ["INCARNATION_CHARACTERS", "STATE_FIELDS", "STATE_STRUCT", "lua_positions", "lua_state"]

STATE_FIELDS = {
    # What a plain append writes.
    "head": "seq of the newest turn",
    "log": "raw tokens of all turns",
    "tok": "raw tokens of the context string",
    "full": "raw tokens that it would have without the ladder",
    "ntok": "raw tokens of next",
    "lu": "seq of the newest plain user turn",
    "lucum": "log tokens up to it",
    "fu": "seq of the first plain user turn",
    "luver": "version of the context when that turn came",
    "bytes": "length of the context string",
    "nbytes": "length of next",
    "edue": "1: a due entry for the embedding exists",
    "mdue": "1: a due entry for the memory exists",
    "fresh": "1: swapped since the last append",
    "ratio": "soft threshold as thousandths of the room",
    "flow": "hundredths of raw tokens that came lately, fading",
    "lead": "how long a build takes, ms, as the last append was told",
    "want": "since when a build is wanted, ms, 0: none is",
    "spoken": "when turns came or changed last, ms",
    "updated": "last change, ms",
    # What it reads beside that.
    "ver": "version of the context",
    "hard": "hard limit, served tokens",
    "adapt": "1: the soft threshold follows pace and lead",
    "rest": "no build before the log has so many raw tokens: builds without gain",
    "created": "ms",
    "cal": "calibration: served tokens per thousand raw ones",
    "fix": "raw tokens of system, pinned state and tools",
    "htok": "raw tokens of the active head",
    "swaps": "swaps so far",
    "deg": "1: the ladder left something out",
    "leads": "1: nothing but system turns so far; 2 more: a fork that nobody confirmed",
    "nx": "what the standby covers, 0: none",
    "n0": "the same when the standby was committed",
    "blease": "end of the build's lease, ms",
    "retry": "no build before this, ms",
    "idle": "time without a turn after which the session closes, ms, 0: never by itself",
    "ends": "when the keys expire, ms",
    # The rest.
    "keep": "turns to keep verbatim at a build",
    "seen": "calibration by the last reported usage, 0: none",
    "cov": "what the active summary covers, 0: none",
    "sver": "version under which it is stored",
    "systok": "raw tokens of the registered system prompt",
    "leadtok": "raw tokens of the system turns that led",
    "tooltok": "raw tokens of the tools",
    "pintok": "raw tokens of the pinned state's text",
    "gap": "last turn that the ladder left out, 0: none",
    "lost": "1: the open round is not in the view",
    "cross": "appends that passed the limit",
    "ready": "those that found a standby",
    "nhtok": "raw tokens of next's head",
    "bcov": "what the running build covers, 0: none",
    "nocut": "head when the last search found no place to cut",
    "thinks": "1: the open round has thinking blocks",
    "answered": "1: the open round has a result",
    "opens": "1: the assistant spoke first",
    "chg": "edits, removals, rewinds and a late setting of the user so far",
}
INCARNATION_CHARACTERS = 12
STATE_STRUCT = struct.Struct(f">{len(STATE_FIELDS)}q")


def lua_state() -> str:
    """Lua: format, positions, and the functions between the packed string and a table by name."""
    names = list(STATE_FIELDS)
    size = STATE_STRUCT.size
    unpacked = ", ".join(names)
    packed = ", ".join(f"m.{name}" for name in names)
    table = ", ".join(f"{name} = {name}" for name in names)
    return f"""
local STATE_FORMAT = ">{"i8" * len(names)}"
local function unpack_state(s)
  local {unpacked} = struct.unpack(STATE_FORMAT, s)
  return {{ {table}, inc = string.sub(s, {size + 1}, {size + INCARNATION_CHARACTERS}),
    open = string.sub(s, {size + INCARNATION_CHARACTERS + 1}) }}
end
local function pack_state(m)
  return struct.pack(STATE_FORMAT, {packed}) .. m.inc .. m.open
end
"""


def lua_positions(source: str) -> str:
    """``source`` with ``@name`` as the position of that state field, and the constants of the append's fast path.

    The fast path reads the fields up to ``ends`` and writes those up to ``updated``; the rest stays one string.
    """
    names = list(STATE_FIELDS)
    for name in sorted(names, key=len, reverse=True):
        source = source.replace(f"@{name}", str(names.index(name) + 1))
    read, written = names.index("ends") + 1, names.index("updated") + 1
    values = {
        "READ_FORMAT": _format(read),
        "WRITTEN_FORMAT": _format(written),
        "WRITTEN_COUNT": str(written),
        "WRITTEN_END": str(written * 8 + 1),
        "REPLY_FORMAT": _format(10),
        "CLOSED_SIZE": str(STATE_STRUCT.size + INCARNATION_CHARACTERS),
        "INC": str(INCARNATION_CHARACTERS),
    }
    for name, value in values.items():
        source = source.replace(f"${name}", value)
    return source


def _format(count: int) -> str:
    return f'">{"i8" * count}"'
