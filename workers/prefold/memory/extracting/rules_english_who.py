"""How people say in English who they are, how to reach them and where they live.

Patterns begin where a clause begins; see ``rule`` for their short forms.
"""

from prefold.memory.extracting.rule import Rule, english
from prefold.memory.extracting.shapes import (
    email,
    number,
    own_name,
    person,
    phone,
    phrase,
    place,
    role,
    things,
    token,
    words,
)
from prefold.memory.extracting.shapes_measured import measure, size, year, zone
from prefold.memory.extracting.vocabulary import MONTHS, NATIONALITIES, OCCUPATIONS, SOON

__all__ = ["WHO"]

ADDRESS = r"[\w.+-]{1,64}@[\w.-]{1,128}"

WHO: tuple[Rule, ...] = (
    english("name", r"my (?:full |first |real |given |legal |actual )?name(?: is|'s)(?: now)?", person),
    english(
        "name",
        r"(?:I'M called|(?:people |everyone |everybody |friends |my friends )?(?:please )?(?:just )?call me|i go by|my friends call me|everyone calls me)",
        person,
    ),
    english(
        "last_name", r"my (?:last name|surname|family name)(?: is|'s)(?: now)?(?: spell?ed(?: as)?| spelt)?", person
    ),
    english("nickname", r"my nickname(?: is|'s)", person),
    english("name", r"I'M(?= \w)", own_name),
    english(
        "membership",
        r"I'M~ an?(?= (?:silver|gold|platinum|premium|diamond|bronze|vip|regular|elite) (?:elite )?(?:member|cardholder|customer)\b)",
        phrase,
    ),
    english(
        "age",
        r"(?:I'M~|i(?:'ve)? (?:just )?turned)(?= \d{2}(?: years old|[\s-]year[\s-]old|,? and\b|,? from\b|,? (?:living|working|based|today|yesterday|last|this|in|on)\b|[,.!]|$))",
        number,
    ),
    english("pronouns", r"my pronouns are", words),
    english("birthday", rf"my (?:birthday|birth date|date of birth|dob)(?:~ is|'s)(?: on)?(?!{SOON})", phrase),
    english("birthday", rf"i was born (?:on|in)(?= (?:(?:on |the )*\d{{1,2}}(?!\d)|{MONTHS}))", phrase),
    english("anniversary", r"(?:my|our)(?: wedding)? anniversary(?: is|'s)(?: on)?(?= .*\d)", phrase),
    english("birth_year", r"i was born in(?= (?:19|20)\d\d\b)", year),
    english(
        "born_in",
        r"i was born (?:and raised )?in",
        place,
    ),
    english(
        "from",
        r"(?:I'M~(?: originally)? from|i(?: originally)? come from)",
        place,
    ),
    english(
        "grew_up_in",
        r"i grew up in",
        place,
    ),
    english(
        "nationality",
        rf"I'M~(?: an?)?(?= {NATIONALITIES}(?: citizen| national)?(?:[,.!]|$| and\b| living\b| but\b))",
        phrase,
    ),
    english(
        "native_language",
        r"(?:my (?:native|first|mother) (?:language|tongue)(?: is|'s)|i'm a native speaker of)",
        phrase,
    ),
    english(
        "speaks",
        r"i~ speak(?! with| to| at| up| in| for| about| out)(?: fluent)?",
        things,
    ),
    english("time_zone", r"my time ?zone(?: is|'s)", phrase),
    english("time_zone", r"I'M~ (?:in|on)(?: the)?(?= [\w/+-]+(?: [\w/+-]+)? time(?: ?zone)?\b)", zone),
    english(
        "time_zone",
        r"I'M~ (?:in|on)(?= (?-i:(?:UTC|GMT)(?:\s?[+-]\s?\d{1,2})?|CES?T|EES?T|WES?T|[EPCM][SD]T|BST|IST|JST|SGT|AE[SD]T)\b)",
        phrase,
    ),
    english(
        "height",
        r"(?:I'M~|my height is)(?= (?:1\d\d|2[0-4]\d) ?cm\b| [12][.,]\d\d ?m\b| [4-7] ?(?:ft|feet|foot|')(?: ?\d{1,2}(?: ?(?:inches|in|\"))?)?(?!\w))(?! [\d.,'\" a-z]+ (?:from|away|off|above|below|deep|under|over|to)\b)",
        measure,
    ),
    english("weight", r"(?:i~ weigh|my weight is)(?: about| around)?(?= \d)", measure),
    english(
        "shoe_size",
        r"(?:my shoe size(?: is|'s)|i~ (?:wear|take) (?:a )?shoe size|i~ wear size(?= [\d.]+ shoes?))",
        size,
    ),
    english(
        "clothing_size",
        r"(?:i~ wear (?:a )?size|my (?:shirt|dress|clothing|clothes|jacket|t-shirt) size(?: is|'s))",
        size,
    ),
    english("handedness", r"I'M~(?= (?:left|right)[\s-]?handed\b|ambidextrous\b)", role),
    english(
        "email",
        rf"(?:my|our)(?: new| personal| private| main| primary| current)? e-?mail(?: address)?(?: is| has|'s|:| just| recently)?(?: now| changed(?: to)?:?| is| actually| currently| still(?: the same)?:?)+(?: from {ADDRESS} to)?|my(?: account| login| contact)? e-?mail(?: address)?(?: is|:)|(?:the|my) e-?mail(?: address)? (?:on|for|of) my account is(?: now)?|i(?:'ve| have)?~ changed my e-?mail(?: address)?(?: from {ADDRESS})? to",
        email,
    ),
    english(
        "email",
        r"(?:please )?(?:you can |use |send it to |)(?:reach|contact|e-?mail|write(?: to)?) me at",
        email,
    ),
    english("work_email", r"my (?:work|office|business|company) e-?mail(?: address)?(?: is|'s|:)(?: now)?", email),
    english(
        "phone",
        r"my(?: new| personal| private| main| current)? (?:phone|cell|mobile|telephone|contact)(?: phone)?(?: number)?(?: is| has|'s|:)(?: now| changed(?: to)?:?| actually| currently| still(?: the same)?:?)*",
        phone,
    ),
    english("phone", r"my(?: new)? number(?: is|'s|:)(?: now)?(?= (?:\+|0)\d)", phone),
    english("phone", r"(?:you can )?(?:call|text|reach|phone) me (?:at|on)", phone),
    english(
        "address",
        r"my(?: new| home| mailing| postal| current| shipping| delivery)* address(?: is|'s|:)(?: now)?(?= \d)",
        words,
    ),
    english("address", r"i~ live at(?= \d)", phrase),
    english("zip_code", r"my (?:zip|postal|post)[\s-]?(?:code)?(?: is|'s|:)(?: now)?", token),
    english(
        "user_id",
        r"my (?:user|customer|client|member|membership|account|profile|employee|student|loyalty|frequent flyer)(?: account)?[\s-]?(?:id|number|no\.?|#)?(?: is|'s|:)(?: now)?",
        token,
    ),
    english(
        "username",
        r"my (?:user ?name|handle|login|gamertag|github(?: handle| username)?|twitter(?: handle)?|instagram(?: handle)?|telegram(?: handle)?|discord(?: handle| tag)?)(?: is|'s|:)(?: now)?",
        token,
    ),
    english(
        "lives_in",
        r"(?:i|we)~ (?:live|reside)~(?: right| over)?(?: here| alone| together| with (?:my|a|two|three|some) [\w' ]{2,30}?)? (?:in|near|outside|outside of)(?: an? (?:[\w-]+ ){0,3}?(?:flat|house|apartment|village|town|city|suburb|studio|cottage|farm|condo|neighbou?rhood|dorm) (?:called|named|near|in|outside)(?: of)?)?",
        place,
    ),
    english(
        "lives_in",
        r"(?:I'M|i've been|we've been|we're|we are)~ (?:living|based|located|residing)~(?: out| here| with my [\w' ]{2,30}?)? (?:in|near|outside)",
        place,
    ),
    english(
        "lives_in",
        r"(?:i|we)(?:'ve| have)?~ (?:moved|relocated)(?: here| back| away)?(?: from [\w ]{2,30})? to",
        place,
    ),
    english(
        "home_town",
        r"my home ?town(?: is|'s)",
        place,
    ),
    english("age", r"I'M~(?: (?-i:[A-Z]\w+(?: [A-Z]\w+)?,))? an?(?= \d{2}[\s-]year[\s-]old\b)", number),
    english(
        "from",
        rf"I'M~(?: (?-i:[A-Z]\w+(?: [A-Z]\w+)?,))? an?(?: \d{{2}}[\s-]year[\s-]old)? {OCCUPATIONS} from",
        place,
    ),
    english(
        "lives_in",
        rf"I'M~(?: (?-i:[A-Z]\w+(?: [A-Z]\w+)?,))? an?(?: \d{{2}}[\s-]year[\s-]old)? {OCCUPATIONS},? (?:living|based) in",
        place,
    ),
    english(
        "lives_in",
        r"i've~ lived in(?= .*\b(?:for|since|all my life)\b)",
        place,
    ),
)
