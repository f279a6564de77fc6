"""Secrets out of a text before it is summarised: keys, tokens, passwords, card numbers.

Better a harmless word lost than a secret kept, but a summary of a talk *about* passwords must stay readable:
a labelled value counts as a secret only if it looks like one (digits or symbols in it).
"""

import re

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
_TOKEN = re.compile(
    r"""\b(?:
      (?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,200}
    | (?:AKIA|ASIA)[0-9A-Z]{16}
    | gh[pousr]_[A-Za-z0-9]{20,200} | github_pat_[A-Za-z0-9_]{20,200} | glpat-[A-Za-z0-9_-]{16,100}
    | xox[abeoprs]-[A-Za-z0-9-]{10,200}
    | AIza[A-Za-z0-9_-]{30,60} | ya29\.[A-Za-z0-9_-]{20,300}
    | hf_[A-Za-z0-9]{20,60} | npm_[A-Za-z0-9]{30,60} | SG\.[A-Za-z0-9_-]{16,60}\.[A-Za-z0-9_-]{16,60}
    | eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{6,4000}\.[A-Za-z0-9_-]{6,1000}
    )(?![A-Za-z0-9_-])""",
    re.VERBOSE,
)
_BEARER = re.compile(r"\b(Bearer|Basic)(\s{1,3})([A-Za-z0-9._~+/=-]{16,4000})")
_URL_PASSWORD = re.compile(r"(://[^\s:/@]{1,64}:)([^\s@/]{1,128})(@)")
_LABEL = (
    r"pass(?:word|wd|code|phrase)|pwd|pin(?:\ (?:code|number))?|cvv|cvc|otp|secret(?:[_\ -]key)?|client[_\ -]secret"
    r"|api[_\ -]?key|access[_\ -]?(?:key|token)|auth[_\ -]?token|security\ code|verification\ code|one[- ]time\ code"
)
_LABELLED = re.compile(
    rf"""\b(?P<label>{_LABEL})\b(?P<between>["']?\s{{0,3}}(?:is\ now|is|was|=>|:=|=|:)\s{{0,3}}["'`]?)(?P<value>[^\s"'`,;，。；]{{3,128}})""",
    re.IGNORECASE | re.VERBOSE,
)
_LABELLED_CJK = re.compile(
    r"(?P<label>密码|口令|密钥|验证码|暗証番号|パスワード)(?P<between>\s?(?:是|为|：|:|=|は)\s{0,3})(?P<value>[A-Za-z0-9!@#$%^&*_.+-]{3,64})"
)
_CARD = re.compile(r"(?<![\w.-])[3-6]\d{3}(?:[ -]?\d){9,15}(?![\w-])")
_SYMBOLS = frozenset("!@#$%^&*+?~")
_CODE = frozenset("()[]{}<>")
_CODE_LABELS = frozenset({"pin", "cvv", "cvc", "otp"})


def redact(text: str) -> str:
    """``text`` with every secret replaced by ``[redacted: what it was]``. Idempotent."""
    text = _PRIVATE_KEY.sub("[redacted: private key]", text)
    text = _TOKEN.sub("[redacted: token]", text)
    text = _BEARER.sub(_bearer, text)
    text = _URL_PASSWORD.sub(r"\1[redacted: password]\3", text)
    text = _LABELLED.sub(_labelled, text)
    text = _LABELLED_CJK.sub(_labelled, text)
    return _CARD.sub(_card, text)


def _bearer(found: re.Match[str]) -> str:
    scheme, space, value = found.groups()
    return f"{scheme}{space}[redacted: token]" if any(map(str.isdigit, value)) else found.group()


def _labelled(found: re.Match[str]) -> str:
    label, value = found["label"], found["value"]
    bare = value.rstrip(".!?)")
    if not _looks_secret(label.lower(), bare):
        return found.group()
    return f"{label}{found['between']}[redacted: {label.lower()}]{value[len(bare) :]}"


def _looks_secret(label: str, value: str) -> bool:
    if value.startswith("[redacted") or _CODE & set(value):
        return False
    if label.split(maxsplit=1)[0] in _CODE_LABELS or (label.endswith("code") and label != "passcode"):
        return value.isdigit()
    return len(value) >= 3 and (any(map(str.isdigit, value)) or bool(_SYMBOLS & set(value)))


def _card(found: re.Match[str]) -> str:
    digits = [int(char) for char in found.group() if char.isdigit()]
    if not 13 <= len(digits) <= 19 or not _passes_luhn(digits):
        return found.group()
    return f"[redacted: card ending {''.join(map(str, digits[-4:]))}]"


def _passes_luhn(digits: list[int]) -> bool:
    doubled = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
