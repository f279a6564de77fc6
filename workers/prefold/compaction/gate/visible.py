"""Text as a reader sees it: without characters that show nothing, turn the writing round, or carry text unseen."""

import re

_UNSEEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, but for tab and line feed
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]"
)
_JOINERS = re.compile("(?<![\u0600-\u08ff\u0900-\u109f\ufb50-\ufdff\ufe70-\ufeff])[\u200c\u200d]+")
"""Between letters of scripts that need them they stay: Persian, Hindi."""
_LINE_ENDS = re.compile("\r\n?|[\u0085\u2028\u2029\x0b\x0c]")


def visible(text: str) -> str:
    """``text`` without what cannot be seen; every line end a line feed. Idempotent."""
    return _JOINERS.sub("", _UNSEEN.sub("", _LINE_ENDS.sub("\n", text)))
