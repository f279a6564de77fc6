"""Wording of what a person states once and means for good, in English: patterns as in ``cues_english``."""

import re

from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.cues_english import DAYS, MONTHS, Rule

_NUMBERED = (
    r"(?:order|booking|reservation|ticket|case|invoice|confirmation|customer|client|account|member(?:ship)?|policy|passport|tracking|reference|user|employee|student|patient|contract"
    r"|licen[cs]e|parcel|shipment|serial|flight|loyalty|frequent\sflyer|tax|registration)"
)
_KIN = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|son|daughter|kid|child|baby|mother|father|mom|mum|dad|brother|sister|boss|manager|dog|cat|guest\sof\shonou?r|doctor|colleague|friend"
    r"|flatmate|roommate|landlord|client|assistant|accountant|lawyer|nurse|grandmother|grandfather|family|household|team)s?"
)
_AN_AMOUNT = (
    r"(?:[$€£¥₹]\s?\d|\d[\d,.]*\s?(?:k\b|dollars?|euros?|pounds?|bucks|kronor|francs|yen|yuan|rupees|usd|eur|gbp|chf))"
)


def _rule(cue: Cue, words: str, pattern: str) -> Rule:
    return cue, frozenset(words.split()), re.compile(pattern, re.VERBOSE)


LASTING: tuple[Rule, ...] = (
    _rule(
        Cue.HEALTH,
        """allergic allergy allergies intolerant intolerance vegan vegans vegetarian vegetarians pescatarian kosher halal gluten gluten-free celiac coeliac lactose
        lactose-free dairy-free diabetic diabetes pregnant asthma epilepsy epileptic hives anaphylaxis anaphylactic epipen inhaler insulin wheelchair pacemaker
        hospital swells sick rash ill medication blood-thinners blood thinners migraines migraine dyslexic deaf blind
        eat drink tolerate stomach digest handle bear""",
        r"""
        \b(?:(?:i|we|he|she|they)(?:'m|'re|'s)?|am|are|is|has|have|my\s\w+)\s(?:\w+\s){0,3}?(?:allergic|intolerant|vegans?|vegetarians?|pescatarian|kosher|halal|gluten-free|lactose-free|dairy-free|celiac
          |coeliac|diabetic|pregnant|epileptic|dyslexic|deaf|blind)\b
      | \b(?:i|we|he|she|they|i've|my\s\w+)\s(?:\w+\s){0,2}?(?:have|has|got|had|suffer\sfrom|suffers\sfrom|take|takes|use|uses)\s(?:\w+\s){0,4}?(?:allerg(?:y|ies)|intolerance|diabetes|asthma|epilepsy|insulin
          |celiac|coeliac|hives|wheelchair|pacemaker|epipen|inhaler|migraines?|blood[\s-]thinners)\b
      | \ballerg(?:y|ies)\b(?:\sto\b|:) | \b(?:gives?|gave)\s(?:me|us|him|her)\s(?:\w+\s)?(?:hives|a\srash|migraines?)\b | \b(?:makes?|made)\s(?:me|him|her|my\s\w+)\s(?:\w+\s)?(?:sick|ill)\b
      | \b(?:vegan|vegetarian|kosher|halal|gluten-free)\s(?:household|family|kitchen|home|diet)\b
      | \b(?:i|we|he|she|they|my\s\w+)\s(?:can't|cannot|can\snot|don't|doesn't|do\snot|does\snot|never)\s(?:ever\s)?(?:eat|drink|tolerate|stomach|digest)\b
      | \b(?:i|we|he|she|they)\s(?:only\s)?eats?\s(?:\w+\s)?(?:vegan|vegetarian|kosher|halal|gluten-free)\b
      | ^(?:no|strictly\sno)\s(?:meat|fish|nuts|dairy|pork|alcohol|sugar|gluten|seafood|eggs|milk)\b
        """,
    ),
    _rule(
        Cue.STANDING,
        "never always don't dont do not from now forward onwards every each must stop only please under circumstances no",
        r"""
        (?:^|[.,;:!]\s|\bplease\s|\bmust\s|\band\s)(?:you\s(?:must|should|may)\s)?(?:never|always)\s(?!mind\b|been\b|had\b|heard\b|knew\b|seen\b|met\b|wanted\b|loved\b|thought\b|good\b|great\b|nice\b|a\b|gonna\b|again\b|too\b)[a-z]+\s
      | \bfrom\s(?:now|here|today)\s(?:on(?:wards?)?|forward)\b | ^going\sforward\b | \b(?:do\snot|don't|dont)\sever\b | \bunder\sno\scircumstances\b
      | ^(?:please\s)?(?:do\snot|don't|dont)\s(?:call|phone|contact|email|e-mail|text|message|send|mention|tell|share|use|include|write|change|delete|touch|book|charge|quote|reveal|post|push|commit|deploy|run)\b
      | \b(?:in|for|with)\s(?:every|each|all)\s(?:answer|repl(?:y|ies)|message|email|response|code|file|summar(?:y|ies))s?\b
      | ^(?:please\s)?(?:only\s)?(?:answer|reply|respond|write|address|call|contact|quote|give|show|use|keep|send|format|speak)\b[^?]{0,60}\b(?:only|always|every\stime|at\sall\stimes|all|any|each|every)\b
        """,
    ),
    _rule(
        Cue.CONTACT,
        """my our email e-mail mail phone cell mobile number address order booking reservation ticket case invoice confirmation customer client account member membership
        policy passport tracking reference user username login reach contact write text call ring deliver deliveries ship send live lives based writing from name name's
        called moved home city town street apartment flat apt iban birthday born surname nickname handle id no employee student patient contract license licence parcel
        shipment serial flight loyalty registration registered tax wife husband son daughter
        mother father mom mum dad brother sister boss doctor dog cat guest""",
        rf"""
        \b(?:my|our)\s(?:\w+\s){{0,2}}?(?:e-?mail|mail|phone|cell|mobile|number|address|login|username|user\s?name|handle|account|order|booking|reservation|ticket|case|id|iban|birthday|name|surname|nickname|passport|policy
          |flat|apartment|house|home\stown|hometown|home|office|branch|company|employer|timezone|time\szone|tracking|reference|membership|licen[cs]e)\b(?:\s\w+){{0,2}}?(?:'s|\sis|\sare|:|\sreads?|\sends?)
      | \b{_NUMBERED}\s(?:\w+\s)?(?:number|no\.?|id|code|reference|ref\.?|\#)(?:\s|:|\.|$)
      | \b(?:it(?:'s|\sis)|this\sis|i(?:'m|\sam)\s(?:asking|writing|calling))\sabout\s(?:my\s|the\s|an?\s)?(?:\w+\s)?{_NUMBERED}\b | \b{_NUMBERED}\s(?:is\s)?(?=[a-z\#]*[-/\#]?\d)[\w\#/-]*\d
      | \b(?:reach|contact|email|e-mail|text|call|ring|phone|write\s(?:to\s)?|message|invoice|bill)\s(?:me|us)\s(?:\w+\s){{0,2}}?(?:at|on|under|via|by|through|:)\b
      | \b(?:address|number|e-?mail|way)\s(?:for|to\sreach)\s(?:me|us)\b | \b(?:send|forward|deliver|ship|mail|post|address|deliveries|parcels|invoices)\s(?:\S+\s){{0,4}}?(?:to|go\sto|goes\sto)\s\S*[@\d]
      | \b(?:registered|filed|booked|listed|saved)\s(?:to|under|in|for|as)\b
      | \b(?:i|we)(?:'m|'re|\sam|\sare)?\s(?:\w+\s)?(?:live|living|lived|based|located|reside|residing|moved|writing|calling|staying|stay|settled|born|come|from|grew\sup)\s?(?:\w+\s)?(?:in|from|at|to|near|outside)?\s
      | \b(?:i'm|i\sam|we're|we\sare)\sfrom\s\w+
      | \b(?:the|my|her|his|our)\s(?:\w+\s)?name(?:'s|\sis)\s | \bcall\sme\s | \bi(?:'m|\sam)\s(?:called|named)\b | \bi\sgo\sby\b | \bpeople\scall\sme\b
      | \b(?:my|our|the)\s{_KIN}(?:'s\s\w+)?\s(?:is|are|was|has|have|lives?|works?|turns?|was\sborn|named|called)\b
        """,
    ),
    _rule(
        Cue.LIMIT,
        """budget spend afford cap capped limit limited maximum max minimum most least exceed deadline due finished done ready delivered submitted expires expire
        runs ends closes by before until no than not have has at under below within off only can't cannot can must cent penny pinned stuck work needs need required latest""",
        rf"""
        \b(?:can|could|will|may|want\sto|prepared\sto|willing\sto|able\sto|planned\sto)\s(?:only\s)?(?:spend|pay|afford)\b[^?]{{0,30}}{_AN_AMOUNT} | \b(?:have|has|got|we've\sgot|i've\sgot)\s(?:about\s|only\s|around\s)?{_AN_AMOUNT}[^?]{{0,30}}\b(?:to\s(?:work|spend|play)|for|left|available)\b
      | \bbudget\b[^?]{{0,24}}{_AN_AMOUNT} | {_AN_AMOUNT}[^?]{{0,20}}\b(?:budget|at\smost|max(?:imum)?|tops|and\snot\sa\s(?:cent|penny)|limit)\b
      | \b(?:at\smost|no\smore\sthan|not\smore\sthan|up\sto|a\smaximum\sof|max(?:imum)?|under|below|less\sthan|at\sleast|no\sfewer\sthan|no\sless\sthan|a\sminimum\sof|within|cap(?:ped)?\sat|limit(?:ed)?\sto)\s(?:\w+\s)?[$€£¥]?\d
      | \b(?:can't|cannot|can\snot|must\snot|mustn't|may\snot|shouldn't|won't)\s(?:\w+\s)?(?:exceed|hold|take|fit|have|be|go|carry|weigh|cost|last|spend|seat)\b[^?]{{0,30}}\d
      | \b(?:deadline|due(?:\sdate)?)\s(?:is|was|will\sbe|:|by|on)\b
      | \b(?:has|have|had|needs?|must|should|ought|want(?:s|ed)?|required)\s(?:\w+\s){{0,3}}?(?:be\s)?(?:finish(?:ed)?|done|ready|delivered?|submit(?:ted)?|handed|arrive|over|complete[d]?|there|back|in|sent|live|paid|signed|booked)\s
          (?:\w+\s){{0,3}}?(?:by|before|until|no\slater\sthan|on)\s(?:the\s)?(?:\d|{MONTHS}\b|{DAYS}|tomorrow|tonight|noon|end|next|this|christmas|easter)
      | \b(?:expires?|runs\sout|ends|closes|lapses|is\sdue)\s(?:\w+\s)?(?:on|at|by|in)\s(?:the\s)?(?:\d|{MONTHS}\b|{DAYS}) | \bno\slater\sthan\b | \bat\sthe\slatest\b
      | \b(?:pinned|locked|fixed|bound|limited|restricted|tied|stuck)\s(?:to|at|on|with)\s | \b(?:off\sthe\stable|out\sof\sthe\squestion|non-?negotiable)\b
        """,
    ),
    _rule(
        Cue.MUSING,
        """i'm i've i'd trying thinking wondering considering kinda worried stressed curious struggling planning working looking using think feel help can could
        what how if goal challenge reached completed saved achieved improved motivated proud excited heard noticed having getting learning reading implemented""",
        r"""
        \b(?:i'm|i\sam|we're|i've\sbeen|i\swas)\s(?:\w+\s)?(?:trying|thinking|wondering|considering|kinda|worried|stressed|curious|struggling|planning|looking|unsure|not\ssure|hoping|excited|proud|having\s(?:trouble|issues|a\s)
          |getting|learning|reading|exploring|interested|confused|frustrated|using|working\son)\b
      | \b(?:i|we)(?:'ve|\shave)?\s(?:\w+\s)?(?:reached|completed|saved|achieved|improved|noticed|heard|read|tested|implemented|donated|reduced|used|identified|encountered|finished|tried|started|refactored|estimated|set\sup|set\sa\s\w*\s?goal)\b
      | \b(?:can|could)\syou\s(?:help|please|suggest|provide|explain|show|give|tell|review) | \bhelp\sme\b | \bhow\s(?:can|do|should|would|could)\s(?:i|we)\b | \bi\s(?:feel|think|guess|wonder)\b | \bany\s(?:advice|tips|suggestions)\b
      | \bdo\syou\sthink\b | \bi'd\s(?:like|love)\s(?:to|some|your)\b | \bmy\sgoal\b | \bwhat\s(?:if|are|is|should|do)\b
        """,
    ),
)
