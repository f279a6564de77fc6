"""Findings as lines for a person, or as one JSON object."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

import orjson

from prefold.doctor.findings import Finding, is_well

__all__ = ["as_json", "as_text"]

_MARKS = {"ok": "ok", "wrong": "WRONG", "unknown": "UNKNOWN", "note": "note"}


def as_json(findings: Sequence[Finding]) -> str:
    """``{"ok": …, "findings": [{"part", "name", "state", "found", "mend"}]}``."""
    return orjson.dumps({"ok": is_well(findings), "findings": [asdict(one) for one in findings]}).decode()


def as_text(findings: Sequence[Finding]) -> str:
    """A block for each part, what to do under what is not as promised, and a last line that counts."""
    width = max(len(one.name) for one in findings)
    lines: list[str] = []
    for part, group in groupby(findings, key=lambda one: one.part):
        lines.append(part)
        for one in group:
            lines.append(f"  {_MARKS[one.state]:<8}{one.name:<{width}}  {_plain(one.found)}")
            if one.mend:
                lines.append(f"  {'':<8}{'':<{width}}  → {_plain(one.mend)}")
    return "\n".join([*lines, "", _verdict(findings)])


def _verdict(findings: Sequence[Finding]) -> str:
    wrong = sum(one.state == "wrong" for one in findings)
    unknown = sum(one.state == "unknown" for one in findings)
    if not wrong and not unknown:
        return f"All {len(findings)} are as promised."
    return f"Of {len(findings)}, {wrong} are not as promised and {unknown} are not known."


def _plain(text: str) -> str:
    """Without what a terminal would follow."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
