"""One way of stating something about oneself."""

import re
from dataclasses import dataclass

from prefold.memory.extracting.shapes import Shape

__all__ = ["Rule", "english", "wide"]

_LEAD = re.compile(
    r"""(?:\s*(?:
        (?:hi|hello|hey|hiya|greetings|good\s(?:morning|afternoon|evening)|thanks?|thank\syou)(?:\s(?:there|again|all|everyone|everybody|guys|team|so\smuch|a\slot))?[,!.:\s]
      | (?:well|so|oh|ah|yes|yeah|yep|yup|no|nope|ok|okay|sure|great|cool|right|exactly|definitely|totally|indeed|wow|and|but|also|because|since|plus|then|btw|fyi|actually|personally|honestly|basically|additionally|moreover|furthermore
          |besides|unfortunately|fortunately|luckily|sadly|thankfully|currently|nowadays|now|again|first|firstly|second|lastly|finally|important|correction|update|same|me\stoo)\b[,!.:]?\s
      | (?:by\sthe\sway|as\swell|at\sthe\smoment|these\sdays|right\snow|in\sfact|to\sbe\shonest|tbh|for\scontext|for\s(?:your\s)?(?:info|information|reference)|for\sthe\srecord|just\sso\syou\sknow|in\saddition
          |of\scourse|first\sof\sall|to\sstart(?:\swith)?|as\sfor\sme|one\s(?:more\s|other\s)?thing|a\s(?:quick\s|little\s)?(?:note|reminder|heads[\s-]up)|as\sa\s(?:reminder|heads[\s-]up|note)|about\sme
          |as\si\s(?:said|mentioned|told\syou)(?:\s(?:before|earlier))?|i\s(?:should|must)\s(?:mention|say|add)\sthat|since\s\d{4})[,:]?\s
      | (?:please\s)?(?:just\s)?(?:note|remember|know|keep\sin\smind|be\saware|don't\sforget|take\sinto\saccount|bear\sin\smind)(?:\sthat)?[,:]?\s
      ))*\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_NOW = r"(?:\s(?:also|still|just|now|currently|actually|really|presently|already|recently|finally|mostly|both|always|absolutely|truly|genuinely|totally|usually|generally|typically|strongly|definitely|especially|particularly|simply|personally|both|only|originally|happily|officially|do))*"


@dataclass(frozen=True, slots=True)
class Rule:
    """A clause that begins so states ``relation`` of its user."""

    relation: str
    """A name of ``known_relations``; ``{kind}`` in it stands for what the pattern's group ``kind`` matched."""
    pattern: re.Pattern[str]
    shape: Shape
    confidence: float
    retracts: bool = False
    binds: bool = False
    """An order or a limit: conditions, ``should`` and the like belong to it."""


def without_lead(clause: str) -> int:
    """Where ``clause`` begins in earnest."""
    found = _LEAD.match(clause)
    return found.end() if found else 0


def english(relation: str, pattern: str, shape: Shape, confidence: float = 0.9, **how: bool) -> Rule:
    """``pattern``: in lower case; ``~`` stands for adverbs that change nothing, ``I`` for I, ``I'M`` for I am."""
    pattern = pattern.replace("I'M", r"(?:i'm|i\sam|im)").replace("~", _NOW).replace(" ", r"\s")
    return Rule(relation, re.compile(rf"(?i:{pattern})(?:(?<!\w)|(?!\w))\s*(?P<object>.*)"), shape, confidence, **how)


def wide(relation: str, pattern: str, shape: Shape, confidence: float = 0.9, **how: bool) -> Rule:
    """Chinese; ``~`` stands for adverbs that change nothing."""
    pattern = pattern.replace(
        "~",
        r"(?:一直|现在|目前|平时|平常|也|还|都|就|真的|真|确实|特别|非常|十分|很|最|超|超级|挺|蛮|比较|个人|从小|从来|已经|其实|主要|通常|一般|本人|自己|可|太|极|尤其|都很|其实很|一向)*",
    )
    return Rule(relation, re.compile(rf"{pattern}\s?(?P<object>.*)"), shape, confidence, **how)
