"""Wording that carries a cue, in English. Patterns see lower case, straight apostrophes, single spaces.

Each pattern goes with words of which one must be there for it to match at all: a set intersection spares the
patterns for most sentences.
"""

import re

from prefold.compaction.reading.cue import Cue

MONTHS = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*"
DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SUBJECT = r"(?:i|we|he|she|they|you|my \w+|our \w+|this|that|it)"
_START = r"(?:^|[.,;:!?]\s|\b(?:please|and|but|so|must|should|shall)\s)"
_ORDER = r"(?:^|[.,;:!?]\s|\b(?:please|must|should|shall)\s)"

Rule = tuple[Cue, frozenset[str], re.Pattern[str]]


def _rule(cue: Cue, words: str, pattern: str) -> Rule:
    return cue, frozenset(words.split()), re.compile(pattern, re.VERBOSE)


ENGLISH: tuple[Rule, ...] = (
    _rule(
        Cue.CONSTRAINT,
        """never must mustn't not allowed forbidden prohibited mandatory exceptions cannot can't can couldn't won't only no more
        most least max maximum minimum limit limited cap capped restricted budget afford deadline due by allergic allergy
        allergies intolerant intolerance vegan vegetarian kosher halal gluten celiac lactose diabetic pregnant don't dont
        doesn't without insist always now forward whenever ask""",
        rf"""
        {_ORDER}never\s(?!mind\b|been\b|heard\b|knew\b) | \bmust(?!-|\ssee\b|\shave\s\w+(?:ed|n|elt)\b|\sbe\s(?:so|very|really|tough|hard|nice|great|exciting)\b)(?:n't)?\b | \bshall\snot\b | \bmay\snot\b | \bnot\sallowed\b
      | \b(?:forbidden|prohibited|mandatory|no\sexceptions?)\b
      | \b{_SUBJECT}\s(?:can(?:not|\snot|'t)|am\snot\sable\sto|are\snot\sable\sto|won't\sbe\sable\sto)\s
          (?!find|figure|see|remember|believe|seem|understand|think|help|wait|get|tell|imagine|stop)\w+
      | \bcan\sonly\b | \bonly\s(?:available|free|on|during|between|after|before|works?|one|two|\d|if|when|use|in\sthe)\b
      | \bno\s(?:more|later|less|fewer|earlier|longer|higher|lower)\sthan\b | \bnot\s(?:more|later|less|to\sexceed|exceed(?:ing)?)\b
      | \bmore\sthan\s(?:once|twice|(?:one|two|three|four|five|\d+)\b(?!%)) | \bat\s(?:most|least)\b | \bmax(?:imum)?\s(?:of|is|\d) | \bminimum\s(?:of|is|\d)
      | \b(?:limit(?:ed)?|cap(?:ped)?|restricted)\s(?:is|of|to|at)\b | \bbudget\s(?:is|of|:|limit|for)|\b(?:my|our)\sbudget\b | \bafford\b
      | \bdeadline\b | \bdue\s(?:by|on|date)\b | \bby\s(?:{MONTHS}\s\d|\d{{1,2}}(?:st|nd|rd|th)\b|{DAYS}|tomorrow|tonight|the\send\sof|eod\b|noon\b)
      | \ballerg(?:ic|y|ies)\b | \bintoleran(?:t|ce)\b
      | \b(?:i|we|she|he|they|i'm|we're|she's|he's|my\s\w+|am|are|is)\s(?:\w+\s){{0,2}}?(?:vegan|vegetarian|kosher|halal|gluten|celiac|lactose|diabetic|pregnant)\b
      | \b(?:i|we|she|he|they|my\s\w+)\s(?:do\snot|don't|dont|does\snot|doesn't)\s(?:\w+\s){{0,2}}?(?:want|like|wish|eat|drink|use)\b
      | {_START}(?:do\snot|don't|dont)\s(?:\w+\s){{0,2}}?(?:use|call|contact|send|change|include|add|remove|delete|touch|tell|mention|eat|drink|share
          |commit|push|modify|exceed|book|charge|email|spend|work\son|assume|forget|make|give|ask|put|let|write|create|install|run)\b
      | \bwithout\s(?:changing|touching|exceeding|downtime)\b | \binsist\b | \bno\s(?:meat|fish|nuts|dairy|pork|alcohol|sugar)\b
      | {_ORDER}always\s(?!been\b|wanted\b|loved\b|had\b|good\b|great\b|nice\b) | \bfrom\snow\son\b | ^going\sforward\b | \bwhen(?:ever)?\si\sask\b
        """,
    ),
    _rule(
        Cue.CONDITION,
        """avoid avoiding without unless require requires required requirement requirements has have need needs under below
        within less up over sure long because willing""",
        r"""
        \bavoid(?:ing)?\b | \bwithout\s(?:using|adding|breaking|any|compromising|affecting)\b | \bunless\b | \brequire(?:s|d|ment)s?\b
      | \b(?:has|have|needs?)\sto\sbe\s(?:\w+\s)?(?:before|after|under|below|within|at|in|on|by|less|no|done|ready|compatible)\b
      | \b(?:under|below|within|less\sthan|up\sto|over)\s[$€£]?\d | \bmake\ssure\b | \bas\slong\sas\b
      | \bbecause\sof\s(?:work|my|our|the|health|school)\b | \bwilling\sto\b
        """,
    ),
    _rule(
        Cue.CORRECTION,
        """no nope wait sorry oops whoops hold scratch hmm actually meant misspoke mistyped wrong mistake mind mistaken bad
        apologies correction corrected correct typo right incorrect not instead rather change changed longer more anymore
        forget ignore disregard cancel""",
        r"""
        ^(?:no|nope|wait|sorry|oops|whoops|hold\son|scratch\sthat|hmm,?\sno)\b[,.!:;\s-]+(?:(?:sorry|no|wait|oops|actually|i\smean),?\s)?
          (?:i(?:'d|\smeant|\smean|\ssaid|\swant|\sneed|\sdon't|\sdidn't|\swas)|it(?:'s|\sis|\sshould|\swas)|that(?:'s|\sis|\swas|\sshould)|this\sis|the\s|my\s|we\s(?:need|want)|not\s|make\s|change\s|use\s|should\s|meant|wrong|typo|actually|\d|[\w.+-]+@)
      | \bactually\b[,\s]\s?(?:it(?:'s|\sis|\sshould|\swas)|that(?:'s|\sis|\swas)|no\b|not\b|make\b|change\b|let(?:'s|\sme)\b|i(?:'d|\smeant|\smean|\swant|\sneed|\sprefer|\swould|\sdon't|\shave\sto|\scan't|'m\s(?:not|allergic))
          |we\s(?:need|want)|my\b|the\b|please\b)
      | \b(?:i|we)\s(?:meant|misspoke|mistyped|was\swrong|were\swrong|was\smistaken|made\sa\smistake|got\s(?:it|that)\swrong|changed\smy\smind)\b
      | \bmy\s(?:mistake|bad|apologies,)\b | \bcorrection\b | \bcorrected\sto\b | \bto\scorrect\b | \btypo\b | \b(?:that|it)(?:'s|\sis|\swas)\s(?:not\sright|wrong|incorrect)\b
      | \bnot\s(?!just\b|only\b|sure\b|really\b|too\b|bad\b|even\b)[^,.;]{1,40},?\s(?:but|rather)\s
      | ,\snot\s(?!just\b|only\b|sure\b|really\b|too\b|bad\b|even\b|to\s|so\b|because\b|that\b|like\b|much\b|yet\b|all\b|always\b|to\smention)(?:the\s|a\s|on\s|in\s|at\s)?[\w@$€£#] | \binstead\sof\b | \brather\sthan\b
      | \bchange(?:d)?\s(?:it|that|this|my\s\w+(?:\s\w+)?|the\s\w+(?:\s\w+)?)\s(?:to|from)\b
      | \bno\slonger\b | \bnot\s\w*\s?any\s?more\b | \b(?:forget|ignore|disregard|cancel)\s(?:that|what\si|my\s(?:last|previous|earlier))\b
        """,
    ),
    _rule(
        Cue.UPDATE,
        """now recently just finally currently increased decreased grown grew improved dropped extended moved pushed rescheduled
        postponed raised lowered reduced updated switched upgraded has have new since gone""",
        r"""
        \b(?:now|recently|just|finally|currently)\s(?:reached|improved|increased|decreased|dropped|changed|moved|updated|grown|set|at|uses?|switched|extended)\b
      | \b(?:increased|decreased|grown|grew|improved|dropped|extended|moved|pushed|rescheduled|postponed|raised|lowered|reduced|updated|switched|upgraded|gone)
          \s(?:\w+\s){0,4}?(?:to|from|until)\b
      | \b(?:has|have)\s(?:now|since|recently)\s\w+ | \b(?:my|our|the|a)\snew\s(?:deadline|date|address|number|phone|email|job|plan|goal|target|budget|limit)\b
        """,
    ),
    _rule(
        Cue.PREFERENCE,
        """prefer preferred preference like love hate dislike enjoy favor favour favorite favourite goal aim target priority dream
        call remember mind important interested keen fan please""",
        r"""
        \bi(?:'d|\swould)?\s(?:(?:really|strongly|also|still|just|do|always|usually|definitely)\s)?(?:prefer|like|love|hate|dislike|enjoy|favou?r)\b
      | \b(?:my|our)\s(?:favou?rite|preference|preferred|goal|aim|target|priority|dream)\b | \bpreference\sfor\b | \bcall\sme\b
      | \bremember\s(?:that|to|my)\b | \bkeep\sin\smind\b | \bplease\s(?:make\ssure|ensure|use|keep|note|remember|include|write|answer|reply|respond|speak)\b
      | \bimportant\s(?:to|for)\s(?:me|us)\b | \b(?:interested|keen)\s(?:in|on)\b | \bfan\sof\b
        """,
    ),
    _rule(
        Cue.IDENTITY,
        "my i'm i i've this it here it's this's here's",
        r"""
        \bmy\s(?:(?:full|first|last|middle|user|order|account|phone|booking|reservation|e-?mail|home|new|old|work)\s)?(?:name|id|number|e-?mail|address|phone|account|birthday
          |birth|age|username|handle|reference|zip|card|passport|order|reservation|ticket|city|country|timezone|company|team|job|role)\b
      | \bi(?:'m|\sam)\s(?:an?\s(?!bit|little|lot|fan|big)|from\s|based\s|\d+\b|the\s(?:owner|manager|lead|author)|married|single|called|working\s(?:as|at|for))
      | \bi(?:'ve|\shave)\snever\b | \bi\s(?:live|lived|was\sborn|grew\sup|moved|teach|own|manage|work\s(?:as|at|for|in)|worked\s(?:as|at|for|in)|stud(?:y|ied)\s(?:at|in|\w+\sat)|run\s(?:an?|my|the))\b
      | \bi\shave\s(?:an?|two|three|four|\d+)\s(?:\w+\s)?(?:sons?|daughters?|kids?|child(?:ren)?|dogs?|cats?|pets?|wife|husband|sisters?|brothers?|account|reservation|booking|flight|appointment
          |meeting|job|car|house|degree|condition|disease|allergy)\b
      | \bmy\s(?:wife|husband|partner|girlfriend|boyfriend|fianc\w+|sons?|daughters?|kids?|children|mother|father|mom|mum|dad|parents|brothers?|sisters?|friends?|family|boss|doctor|dogs?|cats?|pets?)
          (?:'s)?\s(?:\w+\s)?(?:is|was|are|were|has|have|had|may|will|works?|lives?|likes?|loves?|name|born|passed|got|turned|called|can't|cannot|wants?|needs?)\b
        """,
    ),
    _rule(
        Cue.DECISION,
        """decided decide deciding chose chosen picked settled agree agreed going go opt opted opting confirm confirmed stick take use
        implemented set switched started finished completed bought booked signed applied joined quit moved adopted won passed let's
        let ahead decision choice good approved approve rejected reject proceed""",
        r"""
        \b(?:i|we)(?:'ve|\shave|'ll|\swill|'m|\sam|\sare)?\s(?:also\s|now\s|finally\s|already\s)?(?:decid\w+|chose|chosen|picked|settled|agreed?|going\s(?:with|for)|go\swith|opt(?:ed|ing)?|confirm(?:ed)?|stick\swith
          |take\sthe|implemented|set\sup|switched|started|finished|completed|bought|booked|signed|applied|joined|quit|moved|adopted|won|passed)\b
      | \blet(?:'s|\sus)\s(?:go\swith|do|use|take|book|choose|pick|stick|keep|drop|start)\b
      | \bgo\sahead\b | \b(?:final|our|my)\s(?:decision|choice)\b | \bsounds\sgood,\s(?:let|we|i|please)\b | \bapproved?\b | \brejected?\b | \bproceed\b
        """,
    ),
    _rule(
        Cue.OPEN,
        "still yet to-do todo todos tbd pending unresolved outstanding follow follow-up followup next remains remain waiting remind get do",
        r"""
        \bstill\s(?:need|needs|have\sto|has\sto|waiting|pending|not|missing|unclear|open|failing|broken|looking)\b | \bnot\syet\b | \byet\sto\b
      | \b(?:to-?dos?|tbd|pending|unresolved|outstanding|follow[- ]?up|next\sstep|remains?\sto)\b | \bwaiting\s(?:for|on)\b | \bremind\sme\b | \bget\sback\sto\b
        """,
    ),
    _rule(
        Cue.REQUEST,
        "can could would will please help need want",
        r"""\b(?:can|could|would|will)\syou\s(?:please\s)?(?:also\s)?\w+ | \bplease\s\w+ | \bhelp\sme\b | \bi(?:'d\slike|\s(?:just\s|really\s|also\s)?(?:need|want))\b""",
    ),
    _rule(
        Cue.NARRATION,
        "let's let i'll i i'm we can should to please one could would before understand hold",
        r"""
        ^\W*(?:now,?\s|first,?\s|next,?\s|okay,?\s|great,?\s|so,?\s)?(?:let(?:'s|\sus|\sme)|i(?:'ll|\swill)|i(?:'m|\sam)\sgoing\sto|we\s(?:can|should|need\sto|could))\s
      | ^\W*to\s\w+\b.{0,120}?,\s(?:let(?:'s|\sme)|i(?:'ll|\sneed|\swill)|we|please|follow|you\scan)\b
      | \b(?:please\s(?:hold\son|wait|bear\swith|provide|confirm|let\sme)|one\smoment|could\syou\s(?:please\s)?(?:provide|confirm|tell|share|clarify)|would\syou\slike\s(?:me\s)?to
          |i\sunderstand\s(?:your|how|that\syou|the\sfrustration)|i\scan\s(?:assist|help|look)|before\swe\s(?:proceed|start|begin))\b
        """,
    ),
    _rule(
        Cue.OUTCOME,
        """has have had was were is are successfully failed failure fails crash crashed crashes segfault segfaults not denied refused
        timed timeout invalid unable total root turns turn error exception""",
        r"""
        \b(?:has|have|had|was|were|is|are)\s(?:now\s)?(?:been\s)?(?:successfully\s)?(?:done|completed|finished|fixed|resolved|cancell?ed|booked|sent|created|updated|submitted|installed|merged
          |deployed|approved|rejected|refunded|processed|confirmed|added|removed|deleted|changed|transferred|scheduled|upgraded|downgraded|declared|defined|found|located)\b
      | \bsuccessfully\b | \b(?:failed|failure|fails|crash(?:ed|es)?|segfault\w*|not\sfound|denied|refused|timed\sout|timeout|invalid|unable\sto|does\snot\sexist|doesn't\sexist)\b
      | \btotal\b | \bthe\sissue\s(?:is|was)\b | \broot\scause\b | \bturns?\sout\b | \b(?:error|exception)\b
        """,
    ),
    _rule(
        Cue.FILLER,
        """hi hello hey good thanks thank thx great awesome perfect wow cool nice sure certainly absolutely course okay ok alright got
        sounds you're you welcome problem pleasure glad happy bye goodbye see take congrats congratulations haha lol yes yeah yep no nope hmm hmmm
        see noted understood makes let feel hope i'm don't any other questions is anything how question here's here""",
        r"""
        ^\W*(?:hi|hello|hey|good\s(?:morning|evening|afternoon)|thanks|thank\syou|thx|great|awesome|perfect|wow|cool|nice|sure|certainly|absolutely|of\scourse|okay|ok|alright|got\sit|sounds\sgood
          |you(?:'re|\sare)\s(?:very\s)?welcome|no\sproblem|my\spleasure|glad|happy\sto\shelp|bye|goodbye|see\syou|take\scare|congrat\w+|haha\w*|lol|i\ssee|noted|understood|that\smakes\ssense|makes\ssense|yes|yeah|yep|no|nope|good\sluck|hmm+)\b[\w\s,']{0,40}[.!?~]*$
      | \b(?:let\sme\sknow\sif|feel\sfree\sto|hope\s(?:this|that|it)\shelps|i'm\shere\sto\shelp|don't\shesitate|any\s(?:other|further|more)\squestions|happy\s(?:coding|to\sassist)|is\sthere\sanything\selse
          |how\s(?:can|may)\si\s(?:help|assist)|(?:great|good)\s(?:question|to\shear)|here(?:'s|\sis|\sare)\s(?:how|an?\s|the\s|some))\b
      | \b(?:certainly|absolutely|of\scourse|sure)[!,]
        """,
    ),
    _rule(
        Cue.FIRST_PERSON,
        "i i'm i've i'd i'll my mine me we our us",
        r"\b(?:i|i'm|i've|i'd|i'll|my|mine|me|we|our|us)\b",
    ),
)

SELF_NAMED = re.compile(
    r"\bI(?:'m| am) [A-Z][a-z]+\b|\b(?:[Tt]his|[Ii]t|[Hh]ere)(?:'s| is) [A-Z][a-z]\w*(?: [A-Z]\w+)?(?=[,.!]|$)"
)
"""A speaker's name: the one cue that needs the original letters."""
