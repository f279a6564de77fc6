"""What a request asks to summarise, found whatever the instruction's wording."""

import html
import re
from dataclasses import dataclass
from functools import cached_property

from tests.support.messages_api.counting import text_tokens
from tests.support.messages_api.prompt import blocks_of
from tests.support.messages_api.wanted import Wanted, text_of

SECTIONS = ("intent", "corrections", "constraints", "values", "decisions", "errors", "done", "pending", "state")

_TURN = re.compile(r"<turn\b([^>]*)>(.*?)</turn\s*>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_ELEMENT = re.compile(r"<([A-Za-z_][\w.-]*)(?:\s[^<>]*)?>(.*?)</\1\s*>", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_CAP = re.compile(r"(\d[\d,]*)\s*tokens?(?![a-z])", re.IGNORECASE)
_INNER = re.compile(r"<(call|result)\b[^<>]*>(.*?)</\1>", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_MOST_SENTENCE_CHARACTERS = 180
_SAMPLE = 800


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of what is to be summarised."""

    role: str
    text: str
    seq: int = 0
    """0: it has no number."""
    key: str = ""
    """Of a record that is merged: the section that it stood in, if that is known."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One of a turn's, or one line of a record."""

    role: str
    text: str
    seq: int = 0
    key: str = ""


@dataclass
class Source:
    """What the answer is about."""

    said: list[Said]
    cap_tokens: int

    @cached_property
    def text(self) -> str:
        return "\n".join(turn.text for turn in self.said)

    @cached_property
    def tokens(self) -> int:
        return text_tokens(self.text)

    @cached_property
    def language(self) -> str:
        return language_of(self.text)

    def sentences(self) -> list[Sentence]:
        """All, in order."""
        return [sentence for at in range(len(self.said)) for sentence in self.sentences_at(at)]

    def sentences_at(self, at: int) -> list[Sentence]:
        """Of one turn."""
        turn = self.said[at]
        texts = [turn.text] if turn.key else sentences_of(turn.text)
        return [Sentence(turn.role, text, turn.seq, turn.key) for text in texts]


def source_of(wanted: Wanted) -> Source:
    """The turns between their tags; else the conversation before the instruction; else the texts in a wrapper."""
    said = _tagged(wanted) or _conversation(wanted) or _wrapped(wanted.last_text)
    return Source(said, _cap(wanted))


def sentences_of(text: str) -> list[str]:
    """Trimmed, none longer than a line."""
    found = (part.strip(" -*#\t") for part in _SENTENCE_END.split(text))
    return [part[:_MOST_SENTENCE_CHARACTERS] for part in found if len(part) > 1]


def language_of(text: str) -> str:
    """Two letters; ``en`` where nothing else is plain to see."""
    sample = f"{text[:_SAMPLE]} {text[len(text) // 2 : len(text) // 2 + _SAMPLE]}"
    letters = max(1, sum(character.isalpha() for character in sample))
    for language, share, characters in _SCRIPTS:
        if len(characters.findall(sample)) > share * letters:
            return language
    words = set(re.findall(r"[a-zà-ÿß]+", sample.lower()))
    best = max(_WORDS, key=lambda language: len(words & _WORDS[language]))
    return best if len(words & _WORDS[best]) > 2 else "en"


_SCRIPTS = (
    ("ja", 0.1, re.compile(r"[\u3040-\u30ff]")),
    ("zh", 0.2, re.compile(r"[\u4e00-\u9fff]")),
    ("ko", 0.2, re.compile(r"[\uac00-\ud7af]")),
    ("ru", 0.3, re.compile(r"[\u0400-\u04ff]")),
    ("ar", 0.3, re.compile(r"[\u0600-\u06ff]")),
)
_WORDS = {
    "en": set("the and you with for that this what have please".split()),
    "es": set("que los las una por para con está quiero pero".split()),
    "de": set("der die das und nicht ich mit ein eine bitte".split()),
    "fr": set("les des une est pas vous pour avec dans je".split()),
    "pt": set("não uma você para com está meu minha obrigado por".split()),
}


def _tagged(wanted: Wanted) -> list[Said]:
    """What tools were asked and answered inside a turn is the tool's."""
    texts = [text_of(block) for role, blocks in wanted.messages if role == "user" for block in blocks]
    said = []
    for attributes, body in _TURN.findall("\n".join(texts)):
        named = dict(_ATTRIBUTE.findall(attributes))
        number = named.get("n", "")
        seq = int(number) if number.isdecimal() else 0
        inner = [text for _, text in _INNER.findall(body)] if "</" in body else []
        own = _INNER.sub(" ", body) if inner else body
        said += [Said("tool", html.unescape(text).strip(), seq) for text in inner]
        said.append(Said(named.get("role", "user"), html.unescape(own).strip(), seq))
    return said


def _conversation(wanted: Wanted) -> list[Said]:
    instruction = wanted.last_text
    said = [
        Said("tool" if block["type"] == "tool_result" else role, text)
        for role, blocks in wanted.messages
        for block in blocks
        if (text := text_of(block))
    ]
    if said and said[-1].text == instruction:
        said.pop()
    if len(said) < 2:
        return []
    return _between(said, instruction)


def _between(said: list[Said], instruction: str) -> list[Said]:
    """From the first to the last message that the instruction quotes the beginning of; all if it quotes none."""
    folded = _folded(html.unescape(instruction))
    quoted = [index for index, turn in enumerate(said) if (start := _folded(turn.text)[:24]) and start in folded]
    return said[quoted[0] : quoted[-1] + 1] if len(quoted) > 1 else said


def _folded(text: str) -> str:
    return " ".join(text.split())


def _wrapped(text: str) -> list[Said]:
    """Records to merge, line by line with the sections that their English keys name; any other text as one turn."""
    elements = [body for _, body in _ELEMENT.findall(text)]
    body = html.unescape(_TAG.sub("\n", max(elements, key=len, default=text)))
    if "## " not in body:
        return [Said("user", body.strip())]
    said, key = [], ""
    for line in body.splitlines():
        if line.startswith("## "):
            key = next((name for name in SECTIONS if name in line.lower()), "")
        elif line.startswith("- "):
            said.append(Said("user", line.removeprefix("- ").strip(), key=key))
    return said


def _cap(wanted: Wanted) -> int:
    texts = (_TURN.sub(" ", text) for text in (wanted.system, wanted.last_text))
    numbers = [int(number.replace(",", "")) for text in texts for number in _CAP.findall(text)]
    return min((number for number in numbers if number >= 50), default=wanted.max_tokens // 2)


def tool_names(wanted: Wanted) -> list[str]:
    """Of the tools that the request brings."""
    return [str(tool["name"]) for tool in wanted.body.get("tools") or () if "name" in tool]


def last_user_text(wanted: Wanted) -> str:
    """What the user of the summarised conversation said last."""
    said = [turn.text for turn in source_of(wanted).said if turn.role == "user"]
    return said[-1] if said else " ".join(text_of(block) for block in blocks_of(wanted.last_text))
