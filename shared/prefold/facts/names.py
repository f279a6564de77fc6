"""One form of a name, however it was written: case, accents, width, possessive, articles, spaces between CJK."""

import re
import unicodedata

__all__ = ["USER", "WIDE", "clean", "has_wide", "normal_name", "normal_subject", "normal_text"]

USER = "user"
"""Subject of what a user said about themself."""

_SPOKEN_OF_ONESELF = frozenset(
    {"user", "users", "i", "me", "myself", "my", "self", "speaker", "author", "human", "customer"}
    | {"我", "本人", "自己", "我自己", "用户", "使用者", "客户"}
)
_MARKS = re.compile("[\u0300-\u036f]")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_QUOTE_LIKE = str.maketrans({"’": "'", "ʼ": "'", "`": "'", "´": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-"})
_POSSESSIVE = re.compile(r"(?<=\w)(?:'s?)+(?!\w)")
_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=\S)")
_EDGES = " \t.,;:!?\"'()[]{}<>«»。，、；：！？「」『』（）《》【】·*_"
WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"
"""Ranges of characters of languages without spaces, for a class of a regular expression."""
_HAS_WIDE = re.compile(f"[{WIDE}]")
_WIDE_GAP = re.compile(f"(?<=[{WIDE}])\\s+(?=[{WIDE}])")


def clean(text: str) -> str:
    """One line of valid text: control characters and runs of white space become a space, lone surrogates U+FFFD."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _SPACE.sub(" ", whole).strip()


def normal_text(text: str) -> str:
    """A text in which names are looked for: lower case, one width, no accents, no possessives, single spaces."""
    lower = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).translate(_QUOTE_LIKE).casefold()
    bare = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", lower)))
    return _WIDE_GAP.sub("", _SPACE.sub(" ", _POSSESSIVE.sub("", bare)).strip())


def normal_name(name: str) -> str:
    """The name under which an entity is one; what has nothing but punctuation keeps it. Twice is as once."""
    text = normal_text(name)
    while True:
        bare = _ARTICLE.sub("", normal_text(text.strip(_EDGES)))
        if bare in (text, ""):
            return text
        text = bare


def normal_subject(subject: str) -> str:
    """As ``normal_name``; every way of naming the speaker is ``USER``."""
    name = normal_name(subject)
    return USER if name in _SPOKEN_OF_ONESELF else name


def has_wide(text: str) -> bool:
    """Whether it has CJK characters: words of it are not set apart by spaces."""
    return bool(_HAS_WIDE.search(text))
