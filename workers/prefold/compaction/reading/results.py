"""The gist of a tool's output: its error, or its first words; and the exact values in it."""

import re
from collections.abc import Iterator

import msgspec

from prefold.compaction.reading.values import Value, ValueKind, find_values

SHORT = 140
"""Characters up to which an output is its own gist."""
_SHORT_JSON = 100
_SCANNED = 20_000
_TELLING = 12
"""An error line of fewer characters is a title."""
_MOST_FIELDS = 400
_MOST_LISTED = 8
_MOST_DEPTH = 5
_JSON: msgspec.json.Decoder[object] = msgspec.json.Decoder(float_hook=str)
"""Keeps large integers and the digits of decimals: somebody may ask for them."""
_ERROR = re.compile(
    r"""\b(?:error|exception|traceback|fatal|panic|segmentation\ fault|segfault|failed|failure|denied|not\ found|no\ such\ file|cannot|can't|could\ not
      |unable\ to|invalid|no\ replacement|unrecognized|undefined|unexpected|refused|timed\ out|abort(?:ed)?|exceeds?|should\ be\ (?:smaller|within|one)
      |non-zero|exit\ code\ [1-9]\d{0,2})\b""",
    re.IGNORECASE | re.VERBOSE,
)
_STRONG_ERROR = re.compile(
    r"(?:^|\b)(?:error|fatal|traceback|exception|[A-Z]\w{2,40}(?:Error|Exception)|no replacement was performed|command not found|no such file|permission denied|segmentation fault|exit code [1-9])",
    re.IGNORECASE,
)
_FINAL_ERROR = re.compile(r"^[A-Za-z_.]{0,60}(?:Error|Exception)\b.*", re.MULTILINE)
_IDENTIFYING = re.compile(
    r"(?:^|_)(?:id|ids|email|e_?mail|phone|number|code|name|date|dob|address\d?|zip|url|path|key|ref(?:erence)?|price|amount|total|balance)s?$",
    re.IGNORECASE,
)


def result_gist(output: str, is_error: bool) -> tuple[str, bool, tuple[Value, ...]]:
    """What to say of an output in a line, whether it is an error, and its values (labelled where it is JSON)."""
    text = output[:_SCANNED].strip()
    failure = _error_line(text, is_error)
    if failure:
        return _clip(failure), True, find_values(_clip(failure))
    decoded = _decoded(text)
    if decoded is None:
        gist = _clip(text, len(output))
        return gist, is_error, find_values(gist)
    return _clip(compact(decoded), len(output), _SHORT_JSON), is_error, _fields(decoded)


def compact(node: object) -> str:
    """JSON in few words: ``a=1, b=x y, c=[…2]``. Scalars first, for they say most."""
    return _members(node, 0) if isinstance(node, dict) else _nested(node, 0)


def _members(node: dict[object, object], depth: int) -> str:
    flat = [f"{key}={_scalar(value)}" for key, value in node.items() if not isinstance(value, dict | list)]
    deep = [f"{key}={_nested(value, depth)}" for key, value in node.items() if isinstance(value, dict | list) and value]
    return ", ".join((*flat, *deep))


def _nested(node: object, depth: int) -> str:
    if not isinstance(node, dict | list):
        return _scalar(node)
    if depth >= _MOST_DEPTH:
        return "…"
    if isinstance(node, dict):
        return "{" + _members(node, depth + 1) + "}"
    listed = [_nested(one, depth + 1) for one in node[:_MOST_LISTED]]
    return f"[{', '.join(listed)}{', …' if len(node) > _MOST_LISTED else ''}]"


def _scalar(value: object) -> str:
    """As it stood in the JSON: numbers keep their digits."""
    if isinstance(value, str):
        return " ".join(value.split())
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)


def call_gist(arguments: str) -> str:
    """A call's arguments in a line."""
    decoded = _decoded(arguments[:_SCANNED])
    return _clip(arguments if decoded is None else compact(decoded))


def _error_line(text: str, is_error: bool) -> str:
    """The line that says what went wrong, or empty."""
    raised = _FINAL_ERROR.findall(text)
    if raised and ("Traceback" in text or is_error):
        return str(raised[-1])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wanted = _ERROR if is_error or len(lines) <= 3 else _STRONG_ERROR
    early = lines if is_error else [line for line in (*lines[:3], *lines[-3:]) if len(line) < 400]
    at = next((index for index, line in enumerate(early) if wanted.search(line)), 0 if is_error else -1)
    if at < 0 or not early:
        return ""
    return early[at] if len(early[at]) > _TELLING else " ".join(early[at : at + 2])


def _clip(text: str, full_length: int = 0, most: int = SHORT) -> str:
    """``text`` on one line, cut at a space, with its full size said where that helps."""
    folded = " ".join(text.split())
    if len(folded) <= most:
        return folded
    cut = folded.rfind(" ", most // 2, most)
    size = f" ({full_length:,} characters)" if full_length else ""
    return f"{folded[: cut if cut > 0 else most]} …{size}"


def _decoded(text: str) -> object:
    """The output as JSON, an object or a list; None when it is neither."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return _JSON.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _fields(decoded: object) -> tuple[Value, ...]:
    """Exact values of a JSON output, each with its key as its label."""
    values: list[Value] = []
    for label, value in _walk(decoded, ""):
        if len(values) >= _MOST_FIELDS:
            break
        if kind := _kind(label, value):
            values.append(Value(kind, value, 0, 0, label))
    return tuple(values)


def _kind(label: str, value: str) -> ValueKind | None:
    if not 1 <= len(value) <= 120:
        return None
    found = find_values(value)
    if found and len(found[0].text) >= len(value) * 0.8:
        return found[0].kind
    return ValueKind.ID if _IDENTIFYING.search(label) else None


def _walk(node: object, label: str) -> Iterator[tuple[str, str]]:
    """Leaves with their keys, in order; not deeper than JSON of tools goes."""
    stack: list[tuple[str, object, int]] = [(label, node, 0)]
    while stack:
        name, one, depth = stack.pop()
        if isinstance(one, dict) and depth < _MOST_DEPTH:
            stack.extend((str(key)[:40], value, depth + 1) for key, value in reversed(one.items()))
        elif isinstance(one, list) and depth < _MOST_DEPTH:
            stack.extend((name, value, depth + 1) for value in reversed(one[:50]))
        elif isinstance(one, str):
            yield name, " ".join(one.split())
        elif isinstance(one, int) and not isinstance(one, bool):
            yield name, str(one)
