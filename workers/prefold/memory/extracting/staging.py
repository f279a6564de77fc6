"""Turns in which a user plays a part or wants a text written or translated: what is said there is nobody's own."""

import re

__all__ = ["Stage"]

_TASK = re.compile(
    r"\b(?:translat(?:e|ion)|proofread|paraphrase|rephrase|rewrite|correct\s(?:this|the\sfollowing|my\s(?:text|grammar|english|sentence))|grammar|(?:fix|check|improve|polish|shorten|edit|review|revise|reword)\s(?:this|my|the|the\sfollowing)\s(?:text|sentence|paragraph|essay|grammar|wording|letter|e-?mail|message|draft|speech|cv|resume|bio|application|cover\sletter))\b|\b(?:summari[sz]e|classify|label|annotate|rate|extract|parse)\s(?:\w+\s){0,3}?(?:these|this|(?:the\s)?following|the\s(?:text|passage|paragraph|sentences?|facts?|sentiments?|entit(?:y|ies)|keywords?|names?))\b|\b(?:summari[sz]e|classify|annotate)\s?:|\b(?:passage|paragraph|sentences?|text)\s(?:below|above)\b|\bwhich\s(?:one\s|sentence\s)?is\scorrect\b|\bdear\s(?:sir|madam|hiring|mr|ms|mrs|dr|prof\w*|customer|team|all)\b"
    r"|\b(?:write|compose|draft|create|make\sup|tell|generate|continue|finish)\b[^.?!\n]{0,40}\b(?:stor(?:y|ies)|poems?|songs?|lyrics|novel|screenplay|script|sketch|fairy\s?tale|fiction|dialogue|monologue|persona|character|testimonial|bio|tweet|haiku|limerick|speech|scene|diary\sentry)\b"
    r"|\b(?:imagine|suppose|assume|say)\s(?:that\s)?(?:i|we|i'm|we're|somebody|someone|a\suser)\b|\bfictional\b|\b(?:sample|example|dummy|fake|placeholder|test|mock)\s(?:data|text|profile|users?|persona|sentences?|input|output|prompt|message|e-?mail|letter)\b"
    r"|翻译|译成|润色|改写|校对|修改(?:下面|以下|这)|语法|(?:写|编|创作|续写)[^。？！\n]{0,16}(?:故事|小说|诗|歌词|剧本|台词|对话|童话|作文|自我介绍|演讲|日记)|造句|虚构|例句"
    r"|翻訳|物語を書|小説",
    re.IGNORECASE,
)
"""Done within one turn."""
_PLAY = re.compile(
    r"\brole[\s-]?play(?:ing)?\b|(?:^|[.!?,:;]\s|\b(?:please|now|and|you|you'll|to|let's|i'll|we'll)\s)pretend\b|\bimagine\s(?:that\s)?(?:you|you're)\b|(?:^|[.!?,:;]\s|\b(?:please|you|you'll|to)\s)act\sas\b|\byou\sare\snow\b|\bstay\sin\scharacter\b"
    r"|\b(?:you|you'll|i|i'll)\s(?:will\s)?(?:play|be)\sthe\s(?:role|part|waiter|customer|patient|interviewer|dungeon\smaster|dm|villain|hero|detective|wizard|narrator)\b|\btext\sadventure\b"
    r"|角色扮演|扮演|假装|假扮|你现在是|你来当|我来当|我们来玩|ロールプレイ|演じて",
    re.IGNORECASE,
)
"""Goes on until it is ended."""
_ENDED = re.compile(
    r"\b(?:end|stop|quit|finish|exit|leave|enough)\b[^.?!\n]{0,24}\b(?:role[\s-]?play|game|pretending|playing|scene|character|act)\b|\bout\sof\scharacter\b|\bback\sto\s(?:reality|normal|real\slife|business|my\s(?:own|actual|real))\b|\bseriously\snow\b|\bno\smore\s(?:role|pretend|games)"
    r"|(?:结束|停止|不玩|别再)[^。\n]{0,8}(?:扮演|游戏|角色|玩|演)?|言归正传|回到现实",
    re.IGNORECASE,
)
_TEXT_COMES = re.compile(
    r"[^:\"“\n]{0,80}\b(?:translat(?:e|ion|ing)|proofread(?:ing)?|rephras(?:e|ing)|paraphras(?:e|ing)|grammar)\b[^:\"“\n]{0,60}"
    r"|[^：:“\n]{0,20}(?:翻译|润色|校对)[^：:“\n]{0,20}",
    re.IGNORECASE,
)
"""Said of a text that the next turn brings."""
_MOST_TURNS = 30
"""Turns of the user after which a play that nobody ended is over."""


class Stage:
    """Whether a play is on, over turns in order."""

    def __init__(self) -> None:
        self._left = 0
        self._is_awaited = False

    def is_played(self, text: str) -> bool:
        """Whether the next turn of the user, which says ``text``, is not to be taken as their own word."""
        is_awaited, self._is_awaited = self._is_awaited, bool(_TEXT_COMES.fullmatch(text.strip()))
        if self._left and _ENDED.search(text):
            self._left = 0
            return True
        if _PLAY.search(text):
            self._left = _MOST_TURNS
            return True
        self._left = max(0, self._left - 1)
        return is_awaited or self._left > 0 or bool(_TASK.search(text))
