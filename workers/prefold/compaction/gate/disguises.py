"""What a text says once its disguise is off: look-alike letters, digits for letters, codes, texts turned round.

Used to look, never to write: nothing that is decoded here is ever shown to anybody.
"""

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from prefold.compaction.gate.visible import visible

_LOOKALIKES = str.maketrans(
    {
        alike: letter
        for letter, group in {
            "a": "аαɑᴀ", "b": "ЬʙƅβВ", "c": "сϲᴄ", "d": "ԁɗᴅ", "e": "еεёҽᴇ", "f": "ƒꜰ", "g": "ɡցɢ", "h": "һհнʜ", "i": "іıɩιíɪ",
            "j": "јϳᴊ", "k": "кκᴋ", "l": "ӏⅼʟ", "m": "мᴍ", "n": "пηոɴ", "o": "оοօσᴏ", "p": "рρᴘ", "q": "ԛզ", "r": "гᴦʀ", "s": "ѕꜱ",
            "t": "тτᴛ", "u": "υսцᴜ", "v": "ѵνᴠ", "w": "ԝωшᴡ", "x": "хχ", "y": "уүγʏ", "z": "ᴢ",
        }.items()
        for alike in group
    }
)  # fmt: skip
_LEET = str.maketrans("013457@$!|€", "oieastasile")
_MIXED = re.compile(r"(?=\S*[A-Za-z])(?=\S*[0-9@$!|€])\S{3,}")
_SPACED = re.compile(r"(?<!\w)(?:\w[ .\-_*·|/,]{1,2}){5,}\w(?!\w)")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,4000}={0,2}(?![A-Za-z0-9+/_-])")
_BASE32 = re.compile(r"(?<![A-Z2-7])[A-Z2-7]{24,4000}={0,6}(?![A-Z2-7=])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[\s,:]?){10,4000}(?![0-9A-Za-z])")
_BINARY = re.compile(r"(?<!\d)(?:[01]{8}\s?){6,2000}(?!\d)")
_DECIMAL = re.compile(r"(?<!\d)(?:1?\d{2}[\s,;]{1,2}){9,2000}1?\d{2}(?!\d)")
_PERCENT = re.compile(r"(?:[\w.+-]{0,12}%[0-9A-Fa-f]{2}){3,2000}[\w.+-]{0,40}")
_ENTITY = re.compile(r"&(?:#x?[0-9A-Fa-f]{2,6}|[a-z]{2,8});")
_ESCAPE = re.compile(r"\\u\{?([0-9A-Fa-f]{4,6})\}?|\\x([0-9A-Fa-f]{2})")
_MORSE = re.compile(r"(?:[.\-•·–—_]{1,6}[ /|]{1,3}){8,2000}[.\-•·–—_]{1,6}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MORSE_CODE = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --..".split()
_FROM_MORSE = dict(zip(_MORSE_CODE, _LETTERS, strict=True))
_READABLE = re.compile(r"[^\W\d_]{2,}")
_MOST = 20_000
_DEPTH = 2


def plain(text: str) -> str:
    """``text`` in lower case, compatibility forms and marks upon letters undone, unseen characters out."""
    wide = unicodedata.normalize("NFKD", visible(text)).lower()
    return unicodedata.normalize("NFC", "".join(char for char in wide if not "\u0300" <= char <= "\u036f"))


def composed(text: str) -> str:
    """``text`` in lower case with its accents, white space folded."""
    return " ".join(unicodedata.normalize("NFKC", visible(text)).lower().split())


def undisguised(text: str) -> tuple[str, ...]:
    """Every form in which ``text`` could be read as words, the text itself first. Forms are lower case."""
    text = html.unescape(text[:_MOST])
    first = composed(text)
    forms = {first: None, " ".join(plain(text).split()): None}
    forms[first.translate(_LOOKALIKES)] = None
    forms[_MIXED.sub(lambda found: found.group().translate(_LEET), plain(text))] = None
    forms[_SPACED.sub(lambda found: re.sub(r"[\W_]", "", found.group()), first)] = None
    for hidden in decoded(text):
        forms[composed(hidden)] = None
    return tuple(forms)


def turned(text: str) -> Iterator[str]:
    """``text`` read backwards, and with its letters moved along the alphabet: whatever makes no sense as it stands."""
    low = plain(text)
    yield low[::-1]
    yield " ".join(word[::-1] for word in low.split())
    for step in range(1, 26):
        yield low.translate(str.maketrans(_LETTERS, _LETTERS[step:] + _LETTERS[:step]))
    yield low.translate(str.maketrans(_LETTERS, _LETTERS[::-1]))


def decoded(text: str, depth: int = _DEPTH) -> list[str]:
    """Readable texts that are encoded in ``text``: base64, base32, hex, binary, percent, entities, escapes, Morse."""
    found = [plain_text for run, decode in _CODES for piece in run.findall(text) if (plain_text := decode(piece))]
    if len(_ENTITY.findall(text)) > 3:
        found.append(html.unescape(text))
    if len(_ESCAPE.findall(text)) > 3:
        found.append(_ESCAPE.sub(lambda one: chr(min(int(one[1] or one[2], 16), 0x10FFFF)), text))
    if depth > 1:
        found += [deeper for one in found for deeper in decoded(one, depth - 1)]
    return found


def _text_of(raw: bytes) -> str:
    """``raw`` as words; empty where it is none."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return ""
    printable = sum(char.isprintable() or char in "\n\t" for char in text)
    letters = sum(map(len, _READABLE.findall(text)))
    return text if text and printable == len(text) and letters * 2 > len(text) else ""


def _from_base64(run: str) -> str:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _text_of(base64.b64decode(bare + "=" * (-len(bare) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _from_base32(run: str) -> str:
    bare = run.rstrip("=")
    try:
        return _text_of(base64.b32decode(bare + "=" * (-len(bare) % 8)))
    except (binascii.Error, ValueError):
        return ""


def _from_hex(run: str) -> str:
    digits = re.sub(r"0x|\\x|[\s,:]", "", run)
    return _text_of(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _from_binary(run: str) -> str:
    digits = "".join(run.split())
    return _text_of(bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits) // 8 * 8, 8)))


def _from_decimal(run: str) -> str:
    return _text_of(bytes(number for number in map(int, re.findall(r"\d+", run)) if number < 256))


def _from_percent(run: str) -> str:
    return _text_of(unquote(run.replace("+", " ")).encode(errors="replace"))


def _from_morse(run: str) -> str:
    marks = re.sub(r"[•·]", ".", re.sub(r"[–—_]", "-", run))
    words = re.split(r"\s{0,3}[/|]\s{0,3}|\s{2,}", marks.strip())
    read = " ".join("".join(_FROM_MORSE.get(mark, "") for mark in word.split()) for word in words)
    return read if len(read) >= 6 else ""


_CODES: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (_BASE64, _from_base64),
    (_BASE32, _from_base32),
    (_HEX, _from_hex),
    (_BINARY, _from_binary),
    (_DECIMAL, _from_decimal),
    (_PERCENT, _from_percent),
    (_MORSE, _from_morse),
)
