"""What a rule's object may look like: the words after the verb, cut to what they name, or nothing at all."""

import re
from collections.abc import Callable

__all__ = [
    "LANGUAGES",
    "Shape",
    "allergens",
    "allergy",
    "amount",
    "counted",
    "email",
    "habit",
    "intention",
    "language",
    "number",
    "organisation",
    "own_name",
    "person",
    "phone",
    "phrase",
    "place",
    "preference",
    "role",
    "technology",
    "things",
    "token",
    "words",
]

Shape = Callable[[str], tuple[str, ...]]
"""Of the rest of a clause: the objects that it begins with; none: the rule does not hold."""

_MOST_WORDS = 10
_STOPS = re.compile(
    r"""[!?;:()\[\]{}"“”|]|\.(?!\w)|\s[-–—]\s|—
      |,?\s(?:because|since|so|but|which|who|whom|whose|where|when|whenever|while|although|though|as|until|unless|if|than|then|after|before|and\s(?:i|it|we|he|she|they|my|that's|am|was|is|have|would|there|the\sfact|also)|or\s(?:i|we)
        |thanks|please|plus|lately|recently|(?:an?|one|two|three|four|five|six|ten|\d+|a\sfew|a\scouple\sof|some)\s(?:days?|weeks?|months?|years?)\sago|last\s(?:night|week|weekend|month|year|summer|winter|spring|fall)|today|tonight|yesterday|tomorrow|this\s(?:week|month|year|morning|weekend|summer|winter|spring|fall)|these\sdays|right\snow|at\sthe\smoment|for\snow|nowadays|now|anymore|any\smore|too|as\swell|btw|by\sthe\sway|though|actually|honestly|either|so\smuch|very\smuch|a\slot|a\sbunch|the\smost|more\sthan|most\sof\sall|for\s(?:years|ages|a\swhile|\w+\syears?|\w+\smonths?|the\spast|the\slast|almost|over|about)|since|everywhere|every\s(?:day|week|month|year|morning|evening|night|weekend|time|other)|once\sa|twice\sa|just\slike|like\s(?:you|that|this|my|a))\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FOREIGN = re.compile(
    r"""\s(?:y|e|et|und|och|og)\s(?:j'|(?:[\w']+\s)?(?:vivo|trabajo|soy|estoy|tengo|quiero|hablo|uso|tambi[eé]n|me|mi|mis|moro|abito|lavoro|sono|ho|trabalho|tenho|gosto|mio|mia|meu|minha
        |ich|wohne|lebe|arbeite|bin|habe|mag|mein|meine|auch|nicht|je|mon|ma|mes|habite|suis|travaille|aussi|jag|bor|arbetar|jeg|jobber)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""The sentence goes on in another language."""
_POINTS = re.compile(
    r"\b(?:this|these|those|it|them)\b(?!\s(?:days|week|month|year|summer|winter|spring|fall|weekend|morning)\b)|\b(?:to|in|of|on|at|with|for|from|about|into|like|making|doing|seeing)\sthat\b|\b(?:their|its)\b|\b(?:with|for|to|by|of|from)\s(?:him|her|you)\b|\bthat\s(?:one|way|stuff)\b",
    re.IGNORECASE,
)
"""It names something that only its conversation knows."""
_ADJECTIVE_LAST = re.compile(r"\b(?:an?|such|very|so|really)\s[\w-]+$", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:an?|some|the|my|our|any|all|both|also|really|to)\s+", re.IGNORECASE)
_NOTHING = re.compile(
    r"""(?:it|its|it's|that|that's|this|these|those|them|they|you|your|yours|him|her|hers|his|their|theirs|me|us|everything|anything|nothing|something|someone|anyone|everyone|nobody|i|i'm|i've|he|she|we|what|how|when|where|why|who|whatever|here|there|one|ones|being|be|having|seeing\s(?:you|your|how|that|this|it|the)|hearing
      |to|the\s(?:way|fact|idea|thought|sound|look|feeling|feel|part|one|color|colour|colors|concept|energy|vibe|design|view|name|picture|photo|pic|art|work|post|rest|other|first|last|same|new)|lots|much|many|more|so|such|too|very|not|no|just|both|same|stuff|things?|way|fact|idea|lot|bit|another|enough|quite|rather
      |most|least|well|getting\s(?:it|that|this)|doing\s(?:it|that|this|so)|each|every|else|and|or|but|of|in|on|at|with|for|about|from|myself|yourself|people)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_PLACE = re.compile(
    r"(?:the\s)?(?:(?:downtown|central|northern|southern|eastern|western|north|south|east|west|upstate|rural|greater|inner)\s)?[A-ZÀ-ÞŁŚŻ][\w'.-]*(?:(?:\s|-)(?:(?:of|de|del|la|le|upon|am|an\sder|do|da|the)\s)?[A-ZÀ-ÞŁŚŻ][\w'-]*)*(?:,\s(?!I\b|I'm\b|I've\b)[A-ZÀ-Þ][\w'.]*(?:\s[A-ZÀ-Þ][\w'-]*)*)*"
)
_PERSON = re.compile(r"[A-ZÀ-ÞŁŚŻ][\w'-]*\.?(?:\s(?:van|von|de|der|la|bin|al|O')?\s?[A-ZÀ-ÞŁŚŻ][\w'-]*\.?){0,3}")
_LOWER_PLACE = re.compile(r"[a-z][a-z-]+(?:\s[a-z][a-z-]+)?(?:,\s[a-z]+)?$")
_NO_PLACE = frozenset(
    """i i'm the a an my our this that here there it peace harmony fear hope pain love town city country countryside house home apartment flat hotel hostel dorm suburb
    suburbs village area place same different small big large tiny nice quiet rural middle moment present past future fact general theory world student shared rented neither both either none between another one two three
    january february march april may june july august september october november december team monday tuesday wednesday thursday friday saturday sunday""".split()
)
LANGUAGES = frozenset(
    """english german french spanish italian portuguese dutch swedish danish norwegian finnish polish czech russian ukrainian turkish arabic hebrew hindi urdu bengali tamil
    mandarin cantonese chinese japanese korean vietnamese thai indonesian malay greek romanian hungarian catalan basque irish welsh swahili persian farsi tagalog
    deutsch français español italiano português 中文 英文 英语 汉语 普通话 日语 日文 法语 德语 韩语 西班牙语 俄语 粤语 葡萄牙语 意大利语 阿拉伯语 葡语 法文 德文 韩文""".split()
)
_AFTER_NAME = re.compile(
    r"$|'?[,.!;:()]|\s(?:and|but|from|now|by|please|instead|for|here|too|with|at|in|who|btw|though|thanks|thx|lol|[-–(])",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{2,63}){1,4}", re.ASCII)
_PHONE = re.compile(r"\+?\(?\d[\d\s().-]{5,22}\d")
_AMOUNT = re.compile(
    r"(?:(?:about|around|roughly|approximately|at\smost|up\sto|under|max(?:imum)?|only|just)\s)?(?:(?:US|CA|AU|NZ|HK|S)?[$€£¥₹]\s?\d[\d,.]*(?:\s?(?:k|m|million|thousand|万))?\b|\d[\d,.]*\s?(?:k\s)?(?:dollars?|euros?|pounds?|bucks|usd|eur|gbp|cad|aud|chf|yen|yuan|rmb|rupees|francs?)\b)"
    r"(?:\s?(?:-|–|to)\s?[$€£¥₹]?\d[\d,.]*k?)?(?:\s(?:annually|yearly|monthly|weekly))?(?:\s(?:for|per|a|each|in\stotal|total|max(?:imum)?|tops)\b(?:\s(?!i\b|and\b|can\b|what\b|so\b|but\b)[\w'-]+){0,5})?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d{1,3}")
_TOKEN = re.compile(r"#?(?=[\w.#/-]*\d|[a-z]+_)[\w.#/-]{3,40}\b")
_TRAILING = re.compile(
    r"(?:[\s,.;:!'\"”-]|\b(?:and|or|but|with|in|on|at|for|of|to|the|a|an|my|is|are|as|so|very|really|just|from|by)\s*$)+$",
    re.IGNORECASE,
)


def cut(rest: str) -> str:
    """``rest`` up to where its thing ends, without what hangs on at both ends."""
    text = rest.strip()
    while found := _ARTICLE.match(text):
        text = text[found.end() :]
    if found := _FOREIGN.search(text):
        text = text[: found.start()]
    found = _STOPS.search(text)
    return _TRAILING.sub("", text[: found.start()] if found else text).strip()


def phrase(rest: str) -> tuple[str, ...]:
    """A thing or an activity in at most nine words."""
    first, _, more = rest.partition(", ")
    if more and _ADJECTIVE_LAST.search(first):
        first = f"{first}, {more.partition(', ')[0]}"
    if _NOTHING.match(rest.strip()) or _POINTS.search(first):
        return ()
    text = cut(first)
    is_named = bool(text) and not _NOTHING.match(text) and len(text.split()) <= _MOST_WORDS and len(text) > 1
    return (text,) if is_named and re.search(r"[^\W\d_]{2}", text) else ()


def preference(rest: str) -> tuple[str, ...]:
    """What is preferred, with what it is preferred to; not one of the things that are just talked about."""
    parts = re.split(r"[!?;()]|\.(?!\w)|\s[-–]\s", rest.strip())[0].split(", ")
    text = _TRAILING.sub("", ", ".join(parts[:2]) if len(parts[0].split()) == 1 else parts[0])
    text = re.sub(r"\sto\s\w+$", "", text)
    text = text.removeprefix("to ")
    is_choice = re.match(
        r"(?:an?|the)\s(?:.*\b(?:that|which|my|at|on)\b|(?:[\w-]+\s){0,2}(?:approach|way|style|option|method|one|solution|version)$)",
        text,
        re.IGNORECASE,
    )
    if is_choice or _NOTHING.match(text) or _POINTS.search(text) or not 1 <= len(text.split()) <= 18:
        return ()
    return (text,)


def role(rest: str) -> tuple[str, ...]:
    """What somebody works as, without where and since when."""
    found = phrase(
        re.split(r"\s(?:on|with|in|at|for|from|who|living|based|working|by|during|since|over|here)\b|,", rest.strip())[
            0
        ]
    )
    return found if found and len(found[0].split()) <= 6 else ()


def own_name(rest: str) -> tuple[str, ...]:
    """A name that is all of the clause, or stands before a comma: what "I'm" may be followed by is mostly no name."""
    found = person(rest)
    return (
        found
        if found and re.match(r"(?:[,.!]|$|\sand\b)", rest.strip()[len(found[0]) :]) and len(found[0].split()) <= 3
        else ()
    )


def intention(rest: str) -> tuple[str, ...]:
    """What is planned, in its own words; nothing that is over tonight or that only its conversation knows."""
    text = _TRAILING.sub("", re.split(r"[!?;()]|\.(?!\w)|\s[-–]\s|,\s(?!\d|[A-Z])", rest.strip())[0])
    if _POINTS.search(text) or _SOON.search(text) or not 2 <= len(text.split()) <= 20:
        return ()
    return (text,)


def habit(rest: str) -> tuple[str, ...]:
    """What somebody does again and again, with how often."""
    text = _TRAILING.sub(
        "", re.split(r"[!?;()]|\.(?!\w)|\s[-–]\s|,\s|\s(?:but|so|because|and\sthen)\s", rest.strip())[0]
    )
    return (text,) if 3 <= len(text.split()) <= 14 and not _POINTS.search(text) else ()


def allergens(rest: str) -> tuple[str, ...]:
    """Each of a list, ``most reptiles`` as well."""
    most = re.match(r"(?:all|most|both|many|some|certain)\s", rest.strip())
    found = things(rest.strip()[most.end() :] if most else rest)
    return (f"{most.group()}{found[0]}", *found[1:]) if most and found else found


_SOON = re.compile(
    r"\b(?:now|today|tonight|yesterday|ago|last\s(?:night|week|month|year)|this\s(?:morning|afternoon|evening)|right\saway|in\sa\s(?:bit|minute|moment|while)|later|talk\sto\syou|let\syou|you)\b",
    re.IGNORECASE,
)


def words(rest: str) -> tuple[str, ...]:
    """The clause as it stands, for what binds by its wording."""
    text = re.sub(r"[\s,.;:!]+$", "", rest.strip())
    return (text,) if 2 <= len(text) <= 200 else ()


def things(rest: str) -> tuple[str, ...]:
    """One thing, or each of a list: only short items make one."""
    text = rest.strip()
    splits = r",\s(?:and\s|or\s)?|\s(?:and|or)\s" if ", " in text else r"\s(?:and|or|&)\s(?=\w+[.!]?$)"
    parts = [part for part in re.split(splits, text) if part.strip()]
    found = [phrase(part) for part in parts]
    short = [one[0] for one in found if one and len(one[0].split()) <= 3]
    if len(parts) > 1 and len(short) == len(parts):
        return tuple(dict.fromkeys(short))
    return phrase(text)


def technology(rest: str) -> tuple[str, ...]:
    """A product by its name, without what it is for."""
    found = re.match(r"[A-Z][\w.+#]*(?:\s\d[\d.]*)?", rest.strip())
    return (found.group().rstrip("."),) if found else ()


def counted(rest: str) -> tuple[str, ...]:
    """Of a list the items that say how many; names that follow are none."""
    items = re.split(r",\s(?:and\s)?|\sand\s", rest.strip())
    return tuple(named for item in items if re.match(_COUNT, item) for named in phrase(item))


_COUNT = re.compile(r"(?:an?|one|two|three|four|five|six|seven|\d)\s", re.IGNORECASE)


def person(rest: str) -> tuple[str, ...]:
    """A name of one to four words, with nothing said of it."""
    text = rest.strip()
    found = _PERSON.match(text)
    name = found.group().rstrip(".'") if found else ""
    is_name = (
        len(name) > 1
        and not {*re.split(r"[\s-]", name.lower())[:2]} & _NOT_NAMES
        and not name.isupper()
        and name[:2] != "I'"
    )
    return (name,) if is_name and _AFTER_NAME.match(text[len(name) :]) else ()


def place(rest: str) -> tuple[str, ...]:
    """Where it names a place: in capitals, or in a text that has none."""
    text = rest.strip()
    found = _PLACE.match(text)
    if found:
        name = found.group().rstrip(".'")
        first = name.removeprefix("the ").removeprefix("The ").split()[0].lower()
        return (name,) if first not in _NO_PLACE and len(name) > 1 else ()
    text = cut(text)
    if _LOWER_PLACE.match(text) and not set(re.split(r"[\s,]+", text)) & _NO_PLACE and not _NOTHING.match(text):
        return (text,)
    return ()


def organisation(rest: str) -> tuple[str, ...]:
    """A company or a school: a name, or a short description with its kind."""
    text = rest.strip()
    found = _PLACE.match(re.sub(r"^(?:an?|my)\s", "", text))
    if found and found.group().lower() not in _NO_PLACE:
        return (found.group().rstrip(".'"),)
    described = phrase(text)
    return described if described and _KIND.search(described[0]) else ()


_KIND = re.compile(
    r"\b(?:company|firm|startup|start-up|agency|bank|hospital|clinic|school|university|college|shop|store|restaurant|cafe|bakery|studio|museum|library|office|factory|lab|laboratory|nonprofit|non-profit|ngo|charity|government|ministry|hotel|airline|farm|theat(?:er|re)|gallery|newspaper|publisher|law\sfirm|shelter|salon|gym|pharmacy|brewery|consultancy|institute|department|kindergarten|daycare|station|warehouse)\b",
    re.IGNORECASE,
)
_NOT_NAMES = frozenset(
    """i sorry sure not here looking going trying fine ok okay good great happy glad so very really just also still currently new a an the from in on at with available interested allergic vegan
    vegetarian single married german french english spanish italian american british canadian chinese japanese korean indian mexican australian irish scottish dutch swedish polish russian
    turkish greek brazilian christian muslim jewish buddhist hindu catholic atheist gay lesbian bi trans transgender asian african european latino latina black white ready done working writing
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december christmas easter back over out there
    team contacting calling planning using thinking excited worried based born it's that's what my your this that muslim's democrat republican virgo aries taurus gemini libra scorpio pisces""".split()
)


def allergy(rest: str) -> tuple[str, ...]:
    """``peanut`` of ``peanut allergy``."""
    named = rest.split(" allergy", maxsplit=1)[0].strip()
    return (named,) if 0 < len(named.split()) <= 2 else ()


def email(rest: str) -> tuple[str, ...]:
    """The address that the rest begins with."""
    found = _EMAIL.match(rest.strip(" <*`'\"(:"))
    return (found.group().rstrip("."),) if found else ()


def phone(rest: str) -> tuple[str, ...]:
    """A number of at least six digits."""
    found = _PHONE.match(rest.strip())
    return (found.group().strip(),) if found and sum(map(str.isdigit, found.group())) >= 6 else ()


def amount(rest: str) -> tuple[str, ...]:
    """Money, with what it is for and how often."""
    found = _AMOUNT.match(rest.strip())
    return (_TRAILING.sub("", found.group()),) if found else ()


def number(rest: str) -> tuple[str, ...]:
    """A small one: an age."""
    found = _NUMBER.match(rest.strip())
    return (found.group(),) if found else ()


def token(rest: str) -> tuple[str, ...]:
    """An id, a number, a user name."""
    found = _TOKEN.match(rest.strip())
    return (found.group().rstrip("."),) if found else ()


def language(rest: str) -> tuple[str, ...]:
    """The name of a language."""
    found = re.match(r"[\w]+", rest.strip())
    is_now = re.search(r"\b(?:once|this\stime|for\snow|today|just)\b", rest, re.IGNORECASE)
    return (found.group(),) if found and not is_now and found.group().lower() in LANGUAGES else ()
