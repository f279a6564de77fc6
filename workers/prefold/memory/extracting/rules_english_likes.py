"""How people say in English what they like, do again and again, and own.

Patterns begin where a clause begins; see ``rule`` for their short forms.
"""

import re

from prefold.memory.extracting.rule import Rule, english
from prefold.memory.extracting.shapes import habit, phrase, preference, technology, things
from prefold.memory.extracting.vocabulary import OWNED

__all__ = ["LIKES"]

_HABIT = r"(?:drink|eat|take|go|work|wake up|get up|run|walk|cook|read|study|exercise|work out|travel|commute|write|watch|listen|play|buy|shop|wear|sleep|swim|cycle|bike|meditate|train|practi[cs]e|volunteer|paint|jog|journal)\b"


LIKES: tuple[Rule, ...] = (
    english(
        "favorite_{kind}",
        r"(?:my (?:all[\s-]time )?|one of my )(?:favou?rite|fave|go-to) (?P<kind>[\w]+(?: \w+){0,2}?)(?:s)?(?: of all time)?(?: is|'s| are|:)(?! (?:the one|to |when|how|that|probably|so|really|still|just|always|very|coming|getting|on |at |in ))",
        phrase,
    ),
    english(
        "hobby",
        r"my (?:main |favou?rite |biggest )?(?:hobb(?:y|ies)|pastimes?|passions?)(?: are| is| include|'s|:)(?! to)",
        things,
    ),
    english(
        "likes",
        r"i~ (?:love|adore|enjoy|like)(?! (?:it|that|this|these|those|the|your|you|her|his|him|their|them|how|what|when|to see|to hear|to know|to think|to get|to be able|where|my new|being able|seeing|hearing|all|every|our|knowing|having|being|looking forward|both|to)\b)",
        things,
        0.8,
    ),
    Rule(
        "favorite_{kind}",
        re.compile(
            r"(?P<object>[A-Z][^,;:?!]{1,50}?)\s(?:is|are)\s(?:still\s|definitely\s|also\s)?my\s(?:all[\s-]time\s)?favou?rite\s(?P<kind>\w+(?:\s\w+)?)(?=[.!]|$|\sof\sall|\sever)"
        ),
        phrase,
        0.85,
    ),
    english(
        "likes",
        r"i've~ been(?: really)? into(?! (?:it|that|this|these|those|the|your)\b)",
        things,
        0.8,
    ),
    english(
        "likes",
        r"i~ (?:love|like|enjoy) to(?! (?:see|hear|know|think|get|be|have|say|think|thank|ask|tell|find|believe|learn more|show|share|help(?! \w+ \w)|help you|discuss|start|do (?:it|that|this)|check|join|come|chat|talk|catch|meet))",
        phrase,
        0.8,
    ),
    english(
        "likes",
        r"I'M~ (?:(?:a |such a )?(?:big |huge |massive |real |long[\s-]?time |great )?fan of|fond of|passionate about|keen on|interested in(?! (?:\w+ly )?(?:book|buy|know|us|apply|purchas|see|try|gett|explor|find|implement|understand|improv|learn|mak|tak|do|hear|check|look|gain|ensur|incorporat|compar|discuss)\w*ing\b)|really into|into|crazy about|obsessed with|addicted to)(?! (?:it|that|this|these|those|the|your|you|her|his|him|their|them|how|what|all|getting|joining|checking|trying|learning more|finding|knowing|hearing|seeing)\b)",
        things,
        0.8,
    ),
    english(
        "dislikes",
        r"i~ (?:hate|dislike|despise|detest|can't stand|cannot stand|don't like|do not like|don't enjoy|loathe)(?! (?:it|that|this|these|those|the|your|you|her|his|him|their|them|how|what|when|to|all|seeing|being able|my|being)\b)",
        things,
        0.8,
    ),
    english(
        "prefers",
        r"i~ prefer(?! (?:it|its|that|this|these|those|the|your|you|one|not|to do|to go|to see|to get|to use this|option|if|when)\b)",
        preference,
        0.85,
    ),
    english(
        "plays",
        r"(?:i~ play|i've~ been playing)(?= (?:the )?(?:guitar|piano|violin|cello|drums|flute|saxophone|clarinet|trumpet|bass|ukulele|keyboard|harp|soccer|football|basketball|tennis|chess|golf|volleyball|badminton|hockey|cricket|rugby|baseball|squash|table tennis|pickleball|dungeons)\b)",
        things,
        0.85,
    ),
    english(
        "collects",
        r"i~ collect(?! (?:it|that|this|the|my|data|them)\b)",
        things,
        0.85,
    ),
    Rule(
        "likes",
        re.compile(
            r"(?P<object>[A-Z][^,;:?!]{1,50}?)\s(?:is|are)\s(?:also\s|definitely\s|still\s)?(?:one\sof\s)?my\s(?:absolute\s|all[\s-]time\s)?favou?rites(?:\s\w+){0,2}(?=[.!]|$)"
        ),
        phrase,
        0.8,
    ),
    english(
        "habit",
        rf"i (?=(?:usually|typically|normally|often|always) {_HABIT})",
        habit,
        0.75,
    ),
    english(
        "habit",
        rf"i~ (?={_HABIT} [^,;]{{0,40}}\b(?:every (?:day|morning|evening|night|week|weekend|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|(?:once|twice|three times|four times|\d times) a (?:day|week|month|year)|daily|weekly)\b)",
        habit,
        0.75,
    ),
    english(
        "uses",
        r"i~ (?:code|program) in",
        things,
        0.8,
    ),
    english(
        "uses",
        r"i~ use(?= (?:an? )?(?:mac\w*|windows|linux|ubuntu|iphone|android|fedora|debian|chromebook|vim|emacs|vs code)\b)",
        things,
        0.8,
    ),
    english(
        "uses",
        r"I'M~ (?:on|running|using)(?: an?| my)?(?!.*\b(?:versions?|page|section|step|tab|build|branch|file|forum)\b)(?= (?:macbook|windows \d|windows\b(?! \w)|ubuntu|linux|macos|mac\b|iphone|ipad|android|pixel \d|samsung galaxy|chromebook|fedora|debian|arch linux|surface pro|thinkpad)\w*)",
        phrase,
        0.8,
    ),
    english("uses", r"i~ use(?= a (?:wheelchair|walker|walking stick|cane|hearing aid|cpap)\b)", phrase),
    english(
        "uses",
        r"our (?:back-?end|front-?end|api|app|code ?base|stack|product|platform|main database|database|website|data pipeline) (?:is|'s) (?:all )?(?:written in|built (?:in|with|on)|hosted on|running on)",
        things,
        0.8,
    ),
    english(
        "uses",
        r"(?:we|our team|our company)~ (?:use|run on|are using|'re using)(?= (?-i:[A-Z])[\w.+#]*(?: \d[\d.]*)? (?:for|as) (?:our|the|all)\b)",
        technology,
        0.8,
    ),
    english(
        "uses", r"we're~ using(?= (?-i:[A-Z])[\w.+#]*(?: \d[\d.]*)? (?:for|as) (?:our|the|all)\b)", technology, 0.8
    ),
    english(
        "drives",
        r"i~ drive(?= an? (?:(?:\d{4}|old|new|used|red|blue|black|white|grey|silver|small|little) ){0,2}(?-i:[A-Z]))",
        phrase,
        0.85,
    ),
    english(
        "owns",
        r"my (?:car|laptop|phone|bike|camera|computer|motorcycle)(?: is|'s) an?",
        phrase,
        0.8,
    ),
    english(
        "owns",
        rf"i~ (?:have|own|'ve got|drive|have got)(?= (?:an? |my own |two |three )(?:[\w'-]+ ){{0,3}}?{OWNED}\b)",
        phrase,
        0.85,
    ),
    english(
        "owns",
        rf"(?:i|we)(?:'ve| have)?~ (?:bought|got|purchased)(?: myself)?(?= (?:an? |my own |my first |my )(?:new |used |[\w'-]+ ){{0,3}}?{OWNED}\b(?! (?:game|case|cover|strings|lens|charger|book|class)))",
        phrase,
        0.8,
    ),
)
