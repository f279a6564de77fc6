"""How people say in English what they want kept to, cannot do and plan.

Patterns begin where a clause begins; see ``rule`` for their short forms.
"""

from prefold.memory.extracting.rule import Rule, english
from prefold.memory.extracting.shapes import amount, intention, language, phrase, words
from prefold.memory.extracting.vocabulary import MONTHS, PLANNED, TIMES

__all__ = ["WANTS"]

_TOPIC = (
    r"(?:answers?|repl(?:y|ies)|responses?|messages?|explanations?|summar(?:y|ies)|things|it|them|everything|your \w+)"
)

_DOING = r"(?:answer|reply|respond|write|speak|talk|address|call|use|include|format|give|provide|show|explain|keep|send|start|end|begin|add|put|cite|list|mention|tell|ask|recommend|suggest|round|convert|present|highlight|summari[sz]e|check|quote|avoid|skip|translate|display|structure|label|specify|state|note|make|be|remind|offer|double[\s-]check|confirm|reference|link|comment|document|return|assume|consider|stick|refer|treat|follow|sign|spell|cc|copy in|bcc|invite|book|schedule|order|deliver|ship|invoice|leave)"

_SAYING = r"(?:answer|reply|respond|write|speak|use|include|format|provide|show|explain|cite|list|mention|recommend|suggest|round|convert|highlight|summari[sz]e|quote|translate|display|structure|label|specify|document|reference|comment|confirm|address|sign|spell|double[\s-]check)"

_BANNED = r"(?:use|include|write|add|mention|suggest|recommend|call|give|ask|send|contact|share|tell|show|repeat|assume|put|make|apologi[sz]e|explain|start|end|say|offer|remind|quote|translate|change|summari[sz]e|respond|reply|answer|book|charge|delete|commit|push|touch)"


_STYLE = (
    r"(?:(?:the )?(?:metric|imperial) (?:units?|system|measurements?)|metric|si units|celsius|fahrenheit|kilomet(?:er|re)s|miles|(?:the )?(?:24|12)[\s-]hour (?:clock|format|time)|24h|british (?:english|spelling)|american (?:english|spelling)"
    r"|simple (?:words|language|english)|plain (?:english|language|text)|formal language|euros?|dollars|pounds)"
)
_MANNERS = r"(?:emojis?|emoticons|markdown|bullet points|bullets|jargon|tables|exclamation (?:marks|points)|abbreviations|em[\s-]dashes|slang|buzzwords|profanity)"
_DECIDING = r"my (?:boss|manager|employer|company|doctor|landlord|insurance|insurer|school|university|visa|contract|schedule|supervisor|wife|husband|partner|parents|mom|mum|dad|therapist|coach)"

WANTS: tuple[Rule, ...] = (
    english(
        "instruction",
        rf"(?:please )?(?:can you )?(?=(?:always |only |just )?(?:use|give me|stick to|write in) {_STYLE}\b)",
        words,
        binds=True,
    ),
    english(
        "instruction",
        rf"(?:please )?(?=(?:don't|do not|never|no) (?:ever )?(?:(?:use|include|add|send me|put) )(?:any |so many )?{_MANNERS}\b)",
        words,
        binds=True,
    ),
    english("instruction", rf"(?:please )?(?=no (?:more )?{_MANNERS}(?:,? please)?\W*$)", words, binds=True),
    english(
        "constraint",
        rf"(?={_DECIDING} (?:(?:will )?(?:only |doesn't |does not |won't |will not |never )(?:lets?|allows?|permits?)|requires?|forbids?) (?:me|us)\b(?!.*\b(?:today|tonight|tomorrow|this (?:morning|afternoon|evening))\b))",
        words,
        binds=True,
    ),
    english("constraint", r"(?=i only have [\w ]{3,40} (?:free|off|available)\b)", words, binds=True),
    english("constraint", r"(?=(?:I'M|we're|we are)~ (?:only|not) allowed to\b)", words, binds=True),
    english(
        "goal",
        r"I'M~ (?=(?:training for|saving (?:up )?for) (?!nothing|this|that|it\b|you|years|ages|fun)(?:my |the |a |an )?[\w' -]{3,60}|(?:preparing|studying) for [\w' -]{0,40}?\b(?:exams?|test|interview|competition|certification|defen[cs]e|finals|recital|audition)\b)",
        intention,
        0.8,
    ),
    english(
        "goal",
        r"I'M~ trying to(?= (?:lose|gain|quit|stop|save|learn|get (?:fit|pregnant|in shape|healthier|better at)|eat (?:less|more|healthier)|drink less|sleep more|cut (?:down|back)|become|pay off|conceive)\b)",
        intention,
        0.75,
    ),
    english(
        "goal",
        rf"i~ want to(?= (?:{PLANNED}|become|get)\b.* (?:this year|next year|before \w+|by (?:\w+ )?(?:\d|{MONTHS}|summer|spring|winter|autumn|fall|the end)|in 20\d\d|someday soon)\b)",
        intention,
        0.75,
    ),
    english(
        "project",
        r"I'M~ (?:writing|working on|making|recording|building|developing)(?= (?:an?|my)(?: \w+){0,2} (?:novel|book|memoir|thesis|dissertation|phd|album|screenplay|documentary|cookbook|blog|podcast|treehouse|cabin|boat)\b)",
        phrase,
        0.8,
    ),
    english(
        "answer_language",
        r"(?:from now on,? )?(?:please )?(?:always |only )+(?:answer|reply|respond|write|speak|talk)(?: to me)?(?: only)? in",
        language,
    ),
    english(
        "answer_language",
        r"(?:from now on,? |going forward,? |in (?:the )?future,? )(?:please )?(?:always )?(?:answer|reply|respond|write|speak|talk)(?: to me)?(?: only)? in",
        language,
    ),
    english(
        "answer_language",
        r"i~ (?:want|need) (?:you to |all |your )(?:always )?(?:answers?|reply|replies|respond|responses)(?: to me)?(?: to be)? in",
        language,
    ),
    english(
        "instruction",
        rf"(?=(?:please )?(?:from now on(?:wards)?|going forward|from here on(?: out)?|in (?:the )?future|for all (?:future|your) \w+|in all (?:your|future) \w+|in every (?:answer|reply|response|message)),? (?:please )?(?:always |never |only |just |don't |do not )?{_DOING}\b)",
        words,
        binds=True,
    ),
    english(
        "instruction",
        rf"(?:please )?(?:also )?(?=(?:always|never|only) (?:\w+ly )?(?:{_SAYING} (?!up\b)|{_DOING} .*\b(?:me|my|answers?|repl(?:y|ies)|responses?|messages?|code|examples?|sources?|when i|if i)\b))",
        words,
        binds=True,
    ),
    english(
        "instruction",
        rf"(?:please )?(?=(?:don't|do not) (?:ever )?{_BANNED} .*(?:\bever\b|\bagain\b|\banymore\b|\bany more\b|\bfrom now on\b|\bin (?:your|any|the) (?:future )?(?:answers?|repl(?:y|ies)|responses?|messages?|code|summar(?:y|ies)|emails?)\b|\bwhen (?:you|i)\b))",
        words,
        binds=True,
    ),
    english(
        "instruction",
        rf"(?:please )?(?=(?:keep|make) {_TOPIC} (?:\w+ )?(?:short|brief|concise|simple|polite|formal|informal|casual|to the point|under|below|within|in plain).*\b(?:from now on|always|every time|going forward|in (?:the )?future|at all times)\b)",
        words,
        binds=True,
    ),
    english(
        "instruction",
        r"(?:please )?(?=keep (?:all )?(?:of )?(?:your|the) (?:answers|replies|responses|messages|explanations|summaries) )",
        words,
        binds=True,
    ),
    english(
        "instruction",
        rf"(?:please )?(?={_DOING} .*\b(?:from now on|going forward|every time|in all (?:your|future) \w+|in every (?:answer|reply|response|message)|at all times|whenever i|each time i|when i ask)\b)",
        words,
        binds=True,
    ),
    english(
        "instruction",
        r"(?:please )?(?=(?:(?:don't|do not) (?:call|text|email|contact|message|book) .*\b(?:before|after|on)\b|stop (?:using|adding|sending|writing|including|calling|apologi[sz]ing|repeating)\b|no (?:emojis?|jargon|bullet points|markdown|tables|small talk),? please))",
        words,
        binds=True,
    ),
    english(
        "budget",
        r"(?:i|we)~ can(?: only)? spend(?= (?:at most|up to|no more than|a max))(?: at most| up to| no more than| a max(?:imum)? of)",
        amount,
    ),
    english(
        "not_available",
        r"I'M~ not (?:available|free)(?= (?:on|in|before|after|during|until)\b)",
        words,
    ),
    english(
        "must",
        r"i~ (?:have to|must|need to)(?= (?:be (?:back|home|there|done|in)|finish|leave|return|submit|arrive|deliver|check out|complete|hand in)\b[^,;]{0,60} (?:by|before|until|no later than) )",
        intention,
    ),
    english(
        "plans",
        rf"my (?=(?:flight|wedding|exam|interview|appointment|surgery|trip|train|due date|graduation|presentation|vacation)(?: [\w ]{{2,30}}?)? (?:is|leaves|departs|starts) (?:scheduled )?{TIMES})",
        intention,
        0.75,
    ),
    english(
        "can_only",
        r"i~ can only(?= (?:travel|meet|work|come|go|attend|fly|spend|afford|pay|eat|drink|be|make it|call|talk|start|leave|take|stay|visit|drive|join|speak|have|use|write|read|arrive|return|study|train|do (?:it|that|mornings|evenings|weekends|weekdays|calls|meetings))\b)",
        words,
        binds=True,
    ),
    english("can_only", r"I'M only (?:free|available|able to)", words, binds=True),
    english(
        "budget",
        r"(?:my|our) (?:max(?:imum)? |total |overall |monthly |weekly |new |current |travel |trip )?budget(?: is|'s|:)(?: now| only| actually| currently| set at| limited to| capped at)*",
        amount,
    ),
    english(
        "budget",
        r"(?:i|we)~ have(?: got)? a (?:max(?:imum)? |total |monthly |weekly |tight |strict |fixed )?budget of",
        amount,
    ),
    english(
        "cannot",
        r"i~ (?:can't|cannot|can not|am not able to|am not allowed to|am unable to)(?= (?:swim|drive|fly|travel|cycle|ride|walk (?:far|long|without|more)|climb|lift|run (?:because|due|with)|work (?:on|before|after|past|weekends|nights|fridays|saturdays|sundays)|take (?:time|ibuprofen|aspirin|penicillin|the stairs)|attend (?:on|before)|meet (?:on|before|after)|come (?:on|before)|leave (?:before|until)|spend more|afford more|pay more|exceed|use (?:windows|macos|linux|a mac|gpl)|read (?:small)|hear (?:well|high)|see (?:colou?rs|red|green)))",
        words,
        binds=True,
    ),
    english(
        "does_not",
        r"i (?:don't|do not)(?= (?:drive|fly|swim|smoke|have a (?:car|driver's licen[cs]e|driving licen[cs]e|passport|credit card|visa|smartphone|tv|television))\b)",
        phrase,
    ),
    english(
        "deadline",
        rf"my (?:final |hard )?deadline(?: is|'s)(?: now)?(?: on| by)?(?=.*(?:\d|{MONTHS}|day\b|tomorrow|week|month|midnight|noon))",
        phrase,
    ),
    english(
        "plans",
        rf"(?:I'M|we're|we are)~(?= (?:getting married|moving|flying|travell?ing|going (?:to (?!try|be|make|do|have|see|talk|keep|check|get|need|let|look)|on|away)|visiting|starting|leaving|heading|graduating|retiring|running|having (?:a|an|my|another|our|the)|hosting|attending|taking (?:a|an|part|my)|launching|performing|competing|volunteering|opening)\b.* {TIMES})",
        intention,
        0.75,
    ),
    english(
        "plans",
        rf"(?:i|we)~ (?:have(?: got)?|'ve got)(?= (?:an?|my|our|the) (?:[\w'-]+ ){{0,3}}?(?:appointment|interview|exam|surgery|flight|wedding|meeting|trip|deadline|vacation|checkup|check-up|competition|performance|presentation|concert|recital|marathon|race|test)\b.* {TIMES})",
        intention,
        0.75,
    ),
    english(
        "plans",
        rf"I'M~ planning to(?= (?:\w+ly )?{PLANNED}\b)",
        intention,
        0.75,
    ),
    english(
        "plans",
        rf"i~(?:'ve| have)? (?:plan to|intend to|(?:just |finally )?decided to)(?= (?:\w+ly )?{PLANNED}\b)",
        intention,
        0.75,
    ),
    english(
        "goal",
        rf"my (?:main |ultimate |long[\s-]term |biggest |current |next |career |personal )?(?:goal|aim|dream|ambition)(?: is|'s) to(?= (?:\w+ly )?(?:{PLANNED}|create|be|make|help|own|raise|master|earn|get|grow|inspire|reach|live|speak|complete|pay off|improve my|win|play|provide)\b)",
        intention,
        0.8,
    ),
    english(
        "goal",
        r"(?:i've got|i~ have)(?: got)?(?= (?:an?|the|this) (?:[\w-]+ ){0,3}?goal (?:of|to)\b)",
        intention,
        0.8,
    ),
    english(
        "plans",
        r"(?:i've got|i~ have)(?: got)?(?= (?:an?|my) [^,;]{3,80} (?:coming up|scheduled|booked|planned) (?:on|for|in|at|next|this)\b)",
        intention,
        0.75,
    ),
)
