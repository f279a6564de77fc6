"""Answers that are no summary at all: refusals, errors, placeholders, and the conversation going on."""

import re
from collections.abc import Sequence

from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.gate.words import share_of, stems_of

_REFUSAL = re.compile(
    r"""^\W{0,6}(?:
      (?:i(?:['’]m|\ am)?\ (?:(?:so\ |very\ |really\ )?sorry|afraid|unable|not\ able|not\ comfortable|not\ allowed|not\ permitted))
    | (?:(?:sorry|apologies|unfortunately)\b[^.!?]{0,30}\bi\ (?:can|am|do|must|will)\b) | i\ (?:can(?:['’]?t|not|\ not)|won['’]?t|will\ not|do\ not|don['’]t|must\ decline|decline|refuse)\b[^.]{0,40}\b(?:help|assist|summari|provide|comply|do\ (?:that|this)|fulfil|process|create|continue|complete|discuss|engage|answer|feel\ comfortable)
    | as\ an?\ (?:ai|language\ model|assistant) | (?:this|that|your)\ (?:request|content|conversation)\ (?:violates|goes\ against|is\ not\ something\ i|cannot\ be)
    | es\ tut\ mir\ leid | (?:dabei|damit)\ kann\ ich | ich\ kann\ (?:dabei|das|diese\w*|dir|ihnen|leider)\b[^.]{0,40}\bnicht | (?:leider|tut\ mir\ leid)\b[^.]{0,30}\bkann\ ich
    | (?:je\ suis\ )?désolée?\b | je\ ne\ (?:peux|suis) | malheureusement,?\ je\ ne | (?:lo\ siento|lo\ lamento|disculp) | no\ puedo\ (?:ayudar|resumir|cumplir|hacer|proporcionar|continuar)
    | (?:desculpe|sinto\ muito|lamento) | não\ posso\ (?:ajudar|resumir|fazer) | mi\ dispiace | non\ posso\ (?:aiutar|riassum|far)
    | (?:het\ spijt\ me|sorry,\ maar) | (?:извините|к\ сожалению|простите)[^.]{0,30}(?:не\ могу|я\ не) | я\ не\ могу\ (?:помочь|выполнить|обобщить)
    | (?:üzgünüm|maalesef) | (?:عذر|آسف|للأسف) | (?:माफ़|क्षमा|मुझे\ खेद) | (?:죄송|미안) | 도와드릴\ 수\ 없
    | (?:很|非常)?(?:抱歉|对不起|遺憾|遗憾)[，,。!！\ ]?(?:但|我|，)? | (?:我|作为).{0,12}(?:无法|不能|不可以)(?:协助|帮助|提供|总结|完成|回答|继续|满足|处理) | 作为(?:一个|一名)?(?:ai|人工智能|语言模型)
    | 申し訳(?:ありません|ございません|ない) | (?:お手伝い|お答え|要約|対応)(?:する(?:こと)?は|は)?(?:でき|いたしかね) | すみませんが
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ERROR = re.compile(
    r"""^\W{0,6}(?:(?:an?\ )?(?:(?:internal|unexpected|unknown|api|server|network|http|fatal)\ ){0,3}(?:error|exception|failure)\b(?:\s?[:\-–]|\ (?:occurred|code|\d{3}|while|generating|processing)|$)
    | http\ (?:4\d\d|5\d\d)\b | (?:overloaded|rate_limit|invalid_request|api|authentication|permission|not_found)_error | traceback | rate\ limit | too\ many\ requests
    | (?:service|server|model)\b.{0,20}\b(?:unavailable|overloaded|busy|timed\ out|not\ respond) | (?:request|connection|operation)\ (?:timed\ out|failed|aborted|reset) | something\ went\ wrong
    | (?:failed|unable)\ to\ (?:generate|produce|create|process|summari) | please\ try\ again | \{"?(?:error|type)"?\s?: | bad\ gateway | gateway\ time-?out | quota\ exceeded | context\ length
    | 错误[:：] | (?:服务|系统|网络)(?:错误|异常|繁忙|不可用) | 请求(?:超时|失败) | 发生(?:了)?错误 | エラー(?:が発生|:|：) | サーバーエラー | (?:ein\ )?fehler\b | une\ erreur | se\ produjo\ un\ error | произошла\ ошибка)""",
    re.IGNORECASE | re.VERBOSE,
)
_PLACEHOLDER = re.compile(
    r"""^\W*(?:none|n/?a|null|nil|undefined|tbd|tba|todo|empty|unknown|lorem\b.*|x{3,}|test|example|sample|placeholder\b.*|a\ line|one\ line|line\ \d|text|content|summary|the\ summary|your\ (?:text|summary)\b.*
    | (?:insert|add|write|put|enter)\b.{0,40}\b(?:here|summary) | .{0,30}\b(?:goes|comes)\ here | (?:summary|text|content|intent|state|details?)\ (?:here|of\ the\ conversation|tbd)
    | (?:no|nothing)\ (?:summary|to\ (?:report|summari[sz]e|add|note)|content|information|data|conversation|available|provided|applicable|relevant)\b.{0,30} | not\ (?:available|applicable|provided|specified|mentioned|known)
    | (?:此处|这里)(?:填写|插入|为|是)?.{0,10} | (?:摘要|总结|内容)(?:在此|待定|为空)? | 无|没有|暂无|待定|不适用|未知 | なし|特になし|未定|不明|該当なし | ここに.{0,12})\W*$""",
    re.IGNORECASE | re.VERBOSE,
)
_TALK = re.compile(
    r"""^\W{0,6}(?:sure|of\ course|certainly|absolutely|great|okay|ok|alright|thank(?:s|\ you)|you(?:['’]re)?\ welcome|hello|hi|hey|no\ problem|happy\ to|glad\ to|i(?:['’]d|\ would)\ (?:be\ happy|love|recommend|suggest)|let(?:['’]s|\ me)|here(?:['’]s|\ is|\ are)\b.{0,30}\b(?:you|your|how|what|the)|feel\ free|good\ (?:question|choice|morning|luck)
        |natürlich|gerne|klar|selbstverständlich|bien\ sûr|avec\ plaisir|d['’]accord|voici|¡?claro|por\ supuesto|con\ gusto|aquí\ tienes|com\ certeza|claro|certo|certamente|ecco|natuurlijk|конечно|разумеется|вот|tabii|elbette|بالتأكيد|طبعا|ज़रूर|물론|네[,.!]|当然|好的|没问题|可以的|没关系|不客气|您好|你好|もちろん|承知|かしこまり|はい[、。]|わかりました)(?:\b|(?<=[^\x00-\x7f]))
      |\b(?:let\ me\ know|would\ you\ like|do\ you\ want|can\ i\ help|shall\ i|hope\ (?:this|that)\ helps|you\ (?:can|could|should|might|may|will\ (?:need|want)|need|want)\ |i(?:['’]ll|\ will|['’]ve|\ have|['’]d|\ can|\ would)\ |if\ you\ |your\ )
      |(?:您|你)(?:可以|需要|想要|觉得|是否)|我(?:会|可以|建议|来)|(?:いかがでしょう|ください|ますか[？?])|(?:können|möchten)\ sie|(?:kannst|möchtest)\ du|(?:vous|tu)\ (?:pouvez|peux|devriez)|(?:puedes|podrías|te\ recomiendo)|(?:вы\ можете|ты\ можешь)
      |[?？]\W*$""",
    re.IGNORECASE | re.VERBOSE,
)
_ROLE_LINE = re.compile(
    r"^\W{0,4}(?:user|human|assistant|ai|customer|agent|bot|用户|助手|用戶|ユーザー|アシスタント)\W{0,3}[:：]\s?\S",
    re.IGNORECASE,
)
_TAG_LINE = re.compile(r"^\W{0,4}</?(?:turn|transcript|result|call|part|summaries)\b", re.IGNORECASE)
_SHORT_ANSWER = 4
"""Lines up to which one of them decides."""
_FEW = 0.34


def check_is_summary(lines: Sequence[str], said: str) -> None:
    """Refuses lines that are none of a summary: ``summary_placeholder``, ``_refusal``, ``_error``, ``_continues``.

    ``said`` is all of the source, lower case, white space folded: what stands there was said, and may be told.
    """
    novel = [line for line in lines if " ".join(line.lower().split()).strip(" .\"'") not in said]
    _check_share(lines, novel, _PLACEHOLDER, "summary_placeholder", 0.5)
    _check_share(lines, novel, _REFUSAL, "summary_refusal", _FEW)
    _check_share(lines, novel, _ERROR, "summary_error", _FEW)
    stems = stems_of(said)
    talk = [line for line in novel if _TALK.search(line) and not _is_report(line)]
    roles = [line for line in novel if _ROLE_LINE.match(line)]
    new_talk = [line for line in talk if share_of(stems_of(line), stems) < 1]
    if (
        len(roles) >= max(2, len(lines) * _FEW)
        or len(talk) >= max(2, len(lines) * 0.5)
        or len(new_talk) * 3 > len(lines) > 2
    ):
        raise GateRefusedError("it goes on with the conversation", code="summary_continues")
    if sum(1 for line in lines if _TAG_LINE.match(line)) > len(lines) * 0.2:
        raise GateRefusedError("it repeats the transcript", code="summary_copied")


def refusal_of_text(text: str) -> GateRefusedError:
    """Why an answer without any section is none: its code says what it looks like."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    for pattern, code in (
        (_REFUSAL, "summary_refusal"),
        (_ERROR, "summary_error"),
        (_PLACEHOLDER, "summary_placeholder"),
        (_ROLE_LINE, "summary_continues"),
        (_TALK, "summary_continues"),
    ):
        if pattern.search(first[:400]):
            return GateRefusedError("no section, and no summary either", code=code)
    return GateRefusedError("the answer has no section", code="summary_form")


def _check_share(lines: Sequence[str], novel: Sequence[str], pattern: re.Pattern[str], code: str, most: float) -> None:
    hits = sum(1 for line in novel if pattern.search(line))
    if hits and (hits > len(lines) * most or (len(lines) <= _SHORT_ANSWER and hits * 2 >= len(lines))):
        raise GateRefusedError(f"{hits} of {len(lines)} lines", code=code)


_REPORT = re.compile(
    r"^\W{0,4}(?:\[\d|(?:the\ )?(?:user|assistant|customer|agent|client|people|they|he|she|it|asked|implied|both|team|speaker|caller)\b|用户|助手|客户|双方|ユーザー|利用者|アシスタント|der\ nutzer|l['’]utilisateur|el\ usuario|пользователь)",
    re.IGNORECASE | re.VERBOSE,
)


def _is_report(line: str) -> bool:
    return bool(_REPORT.match(line))
