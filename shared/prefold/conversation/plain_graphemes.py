"""Characters as a reader sees them, without the tables of the regex package: marks, joiners, flags and syllables stay whole."""

import re
from typing import Final

_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0900-\u0903\u093a-\u093c\u093e-\u094f"
    "\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc\u09be-\u09cd\u09d7\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a81-\u0a83"
    "\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bd7\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6"
    "\u0d00-\u0d03\u0d3b-\u0d57\u0dca-\u0ddf\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ecd"
    "\u0f18-\u0f19\u0f35\u0f37\u0f39\u0f3e\u0f3f\u0f71-\u0f84\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u200c\u20d0-\u20ff\u302a-\u302f\u3099\u309a\ua8e0-\ua8f1\ufe00-\ufe0f\ufe20-\ufe2f"
    "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
"""What belongs to the character before it."""
_VIRAMA: Final = "[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0c4d\u0ccd\u0d4d]"
_JAMO: Final = "[\u1100-\u115f]*(?:[\uac00-\ud7a3]|[\u1160-\u11a7]+)[\u1160-\u11ff]*"

_ONE: Final = r"(?:\r\n|[\U0001f1e6-\U0001f1ff]{2}|.)"

GRAPHEME: Final = re.compile(
    rf"{_JAMO}[{_MARKS}\u200d]*|(?:{_ONE}[{_MARKS}]*(?:\u200d|(?<={_VIRAMA})))*{_ONE}[{_MARKS}\u200d]*",
    re.DOTALL,
)
"""One such character."""
