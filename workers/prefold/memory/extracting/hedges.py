"""Wording that keeps a sentence from being a statement: doubt, conditions, wishes, jokes, what others said.

Both extractors go by it. When in doubt a sentence states nothing.
"""

import re
from collections.abc import Sequence

__all__ = ["doubtful", "is_doubtful", "is_joke", "is_secret", "why_no_statement"]

_DOUBT = re.compile(
    r"""\b(?:maybe|perhaps|possibly|probably|presumably|supposedly|apparently|hopefully|mayb|prob|might|allegedly|theoretically|hypothetically|in\stheory|for\sargument's\ssake|for\sthe\ssake\sof\sargument|either\s\S.{0,60}?\sor
      |could(?:n't|'ve)?|should(?:n't|'ve)?|would(?:n't|'ve)?|i'd|we'd|ought
      |wonder(?:ing|ed|s)?|consider(?:ing|ed|s)?|contemplat\w+|debating|undecided|unsure|uncertain|dunno|ponder\w*|mulling|tempted|toying
      |think(?:ing)?(?!\s(?:visually|in\s))|thought|guess|suppose|supposing|assum(?:e|es|ed|ing)|believe|reckon|suspect|doubt|seems?|feels?\slike|imagine|pretend\w*
      |kind\sof|sort\sof|kinda|sorta|sometimes\swonder|or\ssomething|or\swhatever|or\sso|so\sto\sspeak|at\sleast\si\shope
      |wish(?:ed|ing)?|hope|hoping|hoped|if\sonly|dream(?:t|ed|ing)?\s(?:of|about|that)|dreamt|fantasi[sz]\w+
      |what\sif|whether|as\sif|as\sthough|let's\ssay|say\si|for\s(?:example|instance)|e\.g\.|like\sif
      |some\s?day|one\sday|eventually|sooner\sor\slater|in\sanother\slife|used\sto|almost|nearly|formerly|previously|back\s(?:then|in\sthe\sday)|as\sa\s(?:kid|child|teen\w*|student|boy|girl)
      |when\si\swas|in\s(?:my|the|a)\s(?:dream|story|game|novel|film|movie|play|song|scene|script)s?)\b
      | \bmay\s(?:\w+\s)?(?:be|have|want|need|like|move|go|try|get|take|switch|change|not|also|even|well|become|end|start|stop|buy|use|prefer)\b
      | \b(?:pretty|fairly|quite|almost|half|reasonably)\s(?:sure|certain)\b | \b(?:not|never|hardly|isn't|aren't|ain't)\s(?:\w+\s)?(?:sure|certain|clear|decided|convinced|necessarily)\b | \b(?:can't|cannot|couldn't|haven't|not)\s(?:\w+\s)?decided?\b | \b(?:don't|do\snot|no)\s(?:really\s)?(?:know|idea)\b
      | \b(?:torn|deciding|choosing)\sbetween\b | \bleaning\stowards?\b | \bon\sthe\sfence\b | \btrying\sto\s(?:decide|figure|choose)\b | \bup\sin\sthe\sair\b | \bnot\s(?:yet\s)?(?:final|set\sin\sstone)\b
      | \b(?:more|half)[\s-](?:or[\s-]less|serious|joking)\b | \btentativ\w+ | \bpotentially\b | \ballegedly\b | \btbd\b | ^\W*in\s\w+\syears\b""",
    re.IGNORECASE | re.VERBOSE,
)
_CONDITION = re.compile(
    r"\b(?:if|unless|in\scase|provided\sthat|assuming|as\slong\sas|were\si|had\si|otherwise|depending|depends|until\si)\b",
    re.IGNORECASE,
)
_CONDITION_WIDE = re.compile(r"如果|要是|假如|假设|假使|倘若|若是|若(?!干)|的话|除非|要不|不然|万一|前提是|取决于")
_JOKE = re.compile(
    r"\b(?:just\s|only\s|totally\s|i'm\s|am\s)*(?:kidding|joking|jk|j/k)\b|\b(?:lol|lmao|lmfao|rofl|lolz|haha\w*|hehe\w*|sarcas\w+|ironic(?:ally)?|joke|prank|teasing|figuratively|metaphor\w*)\b|(?:^|\s)/s\b|\byeah,?\s(?:right|sure)\b|,\s(?:obviously\s|of\scourse\s|absolutely\s)?not[.!]*$|[😂🤣😜😝😉🙃]|[;:]-?[)pP](?!\w)"
    r"|开玩笑|玩笑|哈哈|呵呵|嘿嘿|嘻嘻|逗你|骗你|反话|才怪|冗談",
    re.IGNORECASE,
)
_NUISANCE = (
    r"(?:bugs?\s(?:in|on)|waiting|on\shold|being\s(?:ignored|stuck|put\son|charged|lied|woken|interrupted|kept|told\sto)|getting\s(?:stuck|ignored|charged|woken|soaked|lost|yelled)|stuck\sin"
    r"|crash(?:es|ing)|outages?|downtime|time-?outs?|traffic\sjams?|rush\shour|delays|delayed|errors|failures|failing|broken\s\w+|spam|paperwork|overtime|merge\sconflicts|hidden\sfees|long\slines|queu(?:es|e?ing)|standing\sin\sline)\b"
)
_SARCASM = re.compile(
    rf"^\W*(?:(?:oh|well|just|yeah|wow|ah),?\s)*(?:great|wonderful|fantastic|awesome|lovely|brilliant|perfect|terrific|super|excellent|nice|oh\sjoy|thanks\sa\slot)\b[,.!\s-]+(?:i|we)\s(?:(?:just|really|absolutely|so|simply|truly|totally|always)\s)*(?:love|adore|enjoy|like)\b[^,.;]{{0,30}}?\b{_NUISANCE}"
    rf"|\b(?:i|we)\s(?:just|so)\s(?:love|adore|enjoy)\s(?:it\swhen\s)?(?:the\s|these\s|all\s)*{_NUISANCE}",
    re.IGNORECASE,
)
"""Praise of what nobody likes, after a cheer or with "just": no mark is needed."""
_TAKEN_BACK = re.compile(
    r"^\W*(?:just\s|only\s|i'm\s|nah\W+|no\W+|wait\W+|sorry\W+|oops\W+|haha\W+|lol\W+)*(?:kidding|joking|jk|j/k|not\sreally|not(?=!)|psych|gotcha|that(?:'s|\swas)\s(?:a\sjoke|not\strue)|scratch\sthat|never\s?mind|forget\s(?:it|that)|(?:that's|it's|i\smean)\s(?:my|his|her|their)|asking\sfor\s(?:a\sfriend|someone|somebody)|(?:said|says)\s(?:my|his|her|the|a)\s)\b|^\W*(?:开玩笑|骗你|逗你|才怪|算了|不是真的)",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"""\b(?:(?i:he|she|they|you|who|it|people|someone|somebody|everyone|everybody|friends?|doctors?|boss(?:es)?|wife|husband|partner|m[ou]m|dad|mother|father|sister|brother|son|daughter|colleagues?|coach|therapist|article|book|e-?mail|letter|card|sign|note|form|profile|bot|assistant|system)|(?!I\b)[A-Z]\w+)
        \s(?i:always\s|often\s|just\s|once\s|also\s|even\s)?(?i:says?|said|saying|tells?|told|thinks?|claims?|claimed|insists?|insisted|mentioned|noted|suggests?|wrote|writes|asked|asks|reads|quotes?|recalled|remember(?:ed|s)?|assumed?|called\sme|calls\sme)\b
      | (?i:\b(?:says|said|claims|claimed|insists|insisted|writes|wrote)\s(?:my|his|her|their|our|the|an?)\s\w
      | \basking\sfor\s(?:a\sfriend|someone|somebody|my)\b | \bon\sbehalf\sof\b | [-–—,;]\s(?:well|no|wait|sorry|oops|rather|i\smean),?\s(?:actually,?\s)?(?:it's\s|that's\s)?(?:my|his|her|their)\s
      | \b(?:as|like|what)\s(?:you|he|she|they)\s(?:\w+\s)?(?:said|mentioned|told|noted|wrote|remember\w*|recalled)\b | \baccording\sto\b | \b(?:your|the)\s(?:notes?|memory|memories|records?|summary|profile)\s(?:of\sme\s)?(?:says?|show|shows|said|have|has|state[sd]?)\b
      | \bquote[sd]?\b | \bunquote\b | \bstereotype\b | \btypical\b | \brumou?rs?\b | \bquoting\b)""",
    re.VERBOSE,
)
_WIDE = re.compile(r"[\u3400-\u9fff]")
_SECRET = re.compile(
    r"\[redacted|\b(?:pass(?:word|wd|code|phrase)s?|pwd|pin|cvv|cvc|otp|secret|credentials?|api[\s_-]?keys?|access[\s_-]?(?:key|token)|private\skey|seed\sphrase|recovery\scode|security\s(?:code|question|answer)|ssn|social\ssecurity|card\snumber|bank\saccount|iban|routing\snumber|passport\s(?:number|no))\b"
    r"|密码|口令|密钥|验证码|身份证|银行卡|信用卡号|卡号|护照号|暗証番号|パスワード",
    re.IGNORECASE,
)
_DOUBT_WIDE = re.compile(
    r"可能|也许|大概|或许|好像|似乎|似的|仿佛|考虑|在想|想过|曾想|犹豫|纠结|不确定|不一定|说不定|没准|没想好|还没(?:想|决)|未必|应该(?:是|会|要|能|可以|算)|恐怕|估计|据说|听说|听人说|传说|以为|觉得|感觉|猜|怀疑|不知道|不晓得|不太清楚|万一|差点|几乎"
    r"|比如|譬如|例如|比方|打个比方|试想|想象|幻想|做梦|梦见|梦到|梦里|梦想着|希望|但愿|恨不得|真想|好想|想要|巴不得|宁愿|本来|原来(?!是)|曾经|以前|过去|小时候|那时|当年|当时|从前|上学时|年轻时|有点想|想不想|不妨"
    r"|要么|还是说|是否|是不是|会不会|有没有|能不能|可不可以|要不要|该不该|到底|究竟|为什么|怎么|什么时候|哪(?:里|儿|个|些|种)|几点|多少钱|吗[。！!~～]?$|呢[。！!~～]?$|难道|何必|何尝|何不"
    r"|かもしれ|たぶん|多分|と思|もし|だったら|でしょうか|ですか|かな"
)
_REPORTED_WIDE = re.compile(
    r"(?:他|她|他们|她们|你|您|你们|人家|别人|有人|朋友|同事|老板|医生|老师|妈妈|爸爸|妻子|丈夫|老公|老婆|大家|[他她]们|姐姐|妹妹|哥哥|弟弟|记录|资料|笔记|记忆)(?:\S{0,3})(?:说|讲|告诉|提到|提过|问|认为|觉得|以为|写道|写着|显示)|按照你|根据(?:你|记录|资料|记忆)|所谓|俗话|常言|有句话|[^我]说[：:]"
)


_OPENS_DOUBT = re.compile(
    r"\W*(?:and\s|but\s|so\s|well,?\s|oh,?\s|hmm,?\s)*(?:maybe|perhaps|possibly|probably|presumably|supposedly|apparently|hopefully|hypothetically|theoretically|in\stheory|imagine|suppose|supposing|assum\w+|pretend|let's\ssay|say\si|what\sif|as\sif|as\sthough|i\s(?:dream|wish)|in\s(?:my|the|a)\s(?:dream|story|game|novel|film|movie|play|song|scene|script)|for\s(?:example|instance)|when\si\swas|as\sa\s(?:kid|child)|back\s(?:then|in)|i\s(?:\w+\s)?(?:think|believe|guess|suppose|assume|doubt|suspect|reckon|wonder|thought)|one\sday|some\s?day|in\s\w+\syears"
    r"|可能|也许|大概|或许|好像|如果|要是|假如|假设|想象|幻想|做梦|梦|希望|但愿|比如|例如|小时候|以前|曾经|当时|那时|听说|据说|我(?:在)?想)",
    re.IGNORECASE,
)
"""A clause that begins so makes all that follows it in its sentence doubtful."""
_WOULD_BE = re.compile(
    r"(?!.*\b(?:i|i'd|we|we'd|it|it'd|that|maybe|perhaps)\b)(?:\S+\s){1,3}(?:would|could|should)\b", re.IGNORECASE
)
"""A wish that follows from what was said before: it takes nothing back."""
_SHORT_WORDS = 5
_SHORT_WIDE = 8


def why_no_statement(sentence: str) -> str | None:
    """Code of what keeps the whole of ``sentence`` (without its question) from stating anything; None: it may."""
    if _SECRET.search(sentence):
        return "secret"
    if is_joke(sentence):
        return "joke"
    if _CONDITION.search(sentence) or _CONDITION_WIDE.search(sentence):
        return "condition"
    if _REPORTED.search(sentence) or _REPORTED_WIDE.search(sentence):
        return "reported"
    return None


def is_doubtful(clause: str) -> bool:
    """Whether a clause has doubt, a wish or the past in its wording."""
    return bool(_DOUBT.search(clause) or _DOUBT_WIDE.search(clause))


def doubtful(clauses: Sequence[str]) -> list[bool]:
    """Which of a sentence's clauses are no statements: those with doubt in them, and those beside a doubt that spreads.

    "I think" before a comma is a doubt about what follows; "I guess" after one, about what was said.
    """
    found = [is_doubtful(clause) for clause in clauses]
    spread = list(found)
    for at, is_found in enumerate(found):
        if not is_found:
            continue
        is_short = _is_short(clauses[at]) and not _WOULD_BE.match(clauses[at])
        if is_short and at:
            spread[at - 1] = True
        if (is_short and _ends_in_doubt(clauses[at])) or _OPENS_DOUBT.match(clauses[at]):
            spread[at:] = [True] * (len(clauses) - at)
    return spread


def _ends_in_doubt(clause: str) -> bool:
    bare = clause.rstrip(" ,.!;:，。！")
    return any(found.end() >= len(bare) - 1 for pattern in (_DOUBT, _DOUBT_WIDE) for found in pattern.finditer(bare))


def _is_short(clause: str) -> bool:
    return len(clause.split()) <= _SHORT_WORDS and len(_WIDE.findall(clause)) <= _SHORT_WIDE


def is_joke(sentence: str, following: str = "") -> bool:
    """Whether ``sentence`` is marked as a joke, or taken back by the one after it."""
    return bool(_JOKE.search(sentence) or _SARCASM.search(sentence) or (following and _TAKEN_BACK.search(following)))


def is_secret(text: str) -> bool:
    """Whether ``text`` speaks of a password, a key or a number that nobody should keep."""
    return bool(_SECRET.search(text))
