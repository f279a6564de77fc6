"""The marks that open and close what Prefold adds to a context, and what keeps a conversation from forging them.

A mark is a line that begins with ``[Prefold:``. Quotes stand on lines that begin with ``[12 user]``. In text of
the conversation the bracket of anything that looks like one of the two becomes a round one: same length, still
readable, no mark.
"""

import re

OPENING = "[Prefold: "
END = "end of "

_LOOKALIKES = {"p": "pｐрρ", "r": "rｒг", "e": "eｅеε", "f": "fｆ", "o": "oｏоο0", "l": "lｌ1iі|", "d": "dｄԁ"}
_JUNK = r"[\W_]{0,3}"
_NAME = _JUNK.join(f"[{re.escape(_LOOKALIKES[letter])}]" for letter in "prefold")
_FORGED_MARK = re.compile(rf"[\[［【〔⟦〖]{{1,3}}(?={_JUNK}{_NAME})", re.IGNORECASE)
_FORGED_QUOTE = re.compile(r"[\[［【](?=\s{0,3}\d{1,9}\s{1,3}[^\W\d_])")
_MARK = re.compile(r"\[Prefold: (?P<title>[^\]\n]{1,200})\]\n?")
_ALONE = ("turns ", "this turn ")
"""Marks that begin so stand for turns that were left out or removed, and have no end."""


def opening(title: str) -> str:
    """The line before a part of the head."""
    return f"{OPENING}{title}]"


def closing(name: str) -> str:
    """The line after it."""
    return f"{OPENING}{END}{name}]"


def neutralise(text: str) -> str:
    """``text`` with every bracket that could open a mark of ours made round. Length and all else stay."""
    text = _FORGED_MARK.sub(lambda found: "(" * len(found.group()), text)
    return _FORGED_QUOTE.sub("(", text)


def strip_injected(text: str) -> str:
    """``text`` without what Prefold itself had put into a context and a backend sent back as part of a turn.

    Goes from an opening mark to the next closing one; a mark without its partner is left as it is: it is a
    quotation, or a forgery.
    """
    if OPENING not in text:
        return text
    kept: list[str] = []
    at = 0
    opened: int | None = None
    for mark in _MARK.finditer(text):
        title = mark["title"]
        if title.startswith(_ALONE):
            continue
        if not title.startswith(END):
            opened = mark.start()
        elif opened is not None:
            kept.append(text[at:opened])
            at, opened = mark.end(), None
    return "".join((*kept, text[at:]))
