"""The brain that keeps the form and loses everything in it: no digit, no name, no constraint."""

from tests.support.messages_api.brains.form import written
from tests.support.messages_api.brains.reading import source_of
from tests.support.messages_api.wanted import Wanted

_SAID: dict[str, dict[str, list[str]]] = {
    "en": {
        "intent": [
            "The user came with a request and explained the situation behind it in some detail.",
            "They want the matter settled in a way that suits the circumstances they described.",
        ],
        "decisions": ["Both sides settled on an approach after looking at what was possible."],
        "done": [
            "The assistant answered the questions that came up and went through the available choices.",
            "Several points were cleared up along the way and the plan was adjusted to fit.",
        ],
        "pending": ["Some details are still being worked out and the user may come back with more."],
        "state": ["The conversation is going on, and the assistant is helping with what was asked last."],
    },
    "zh": {
        "intent": ["用户提出了自己的请求，并说明了相关的背景情况。", "用户希望事情能按照所描述的情况得到妥善处理。"],
        "decisions": ["双方了解各种可能之后，商定了处理的办法。"],
        "done": ["助手回答了用户提出的问题，并介绍了可供选择的方案。", "讨论中澄清了几个疑问，计划也随之作了调整。"],
        "pending": ["还有一些细节需要继续商量，用户可能会再补充说明。"],
        "state": ["对话仍在继续，助手正在处理用户最近提出的请求。"],
    },
    "ja": {
        "intent": ["ユーザーは要望を伝え、その背景となる事情を説明しました。"],
        "decisions": ["いろいろな可能性を確認したうえで、進め方を決めました。"],
        "done": [
            "アシスタントは質問に答え、選べる方法を紹介しました。",
            "話し合いの中でいくつかの疑問が解消されました。",
        ],
        "pending": ["まだ細かい点が残っており、ユーザーから追加の説明があるかもしれません。"],
        "state": ["会話は続いており、アシスタントは直近の依頼に対応しています。"],
    },
    "ko": {
        "intent": ["사용자가 요청을 전달하고 그 배경이 되는 상황을 설명했습니다."],
        "done": ["도우미가 질문에 답하고 선택할 수 있는 방법을 소개했습니다."],
        "pending": ["아직 세부 사항이 남아 있어 사용자가 더 설명할 수 있습니다."],
        "state": ["대화가 이어지고 있으며 도우미가 최근 요청을 처리하고 있습니다."],
    },
    "ru": {
        "intent": ["Пользователь обратился с просьбой и подробно описал свою ситуацию."],
        "done": ["Помощник ответил на вопросы и рассказал о возможных вариантах."],
        "pending": ["Некоторые подробности ещё обсуждаются, пользователь может дополнить рассказ."],
        "state": ["Разговор продолжается, помощник занимается последней просьбой."],
    },
    "ar": {
        "intent": ["قدم المستخدم طلبه وشرح الظروف المحيطة به بشيء من التفصيل."],
        "done": ["أجاب المساعد عن الأسئلة المطروحة وعرض الخيارات المتاحة."],
        "pending": ["ما زالت بعض التفاصيل قيد النقاش وقد يضيف المستخدم المزيد."],
        "state": ["المحادثة مستمرة والمساعد يعمل على آخر ما طُلب منه."],
    },
    "es": {
        "intent": ["El usuario planteó una petición y explicó con detalle la situación en que se encuentra."],
        "done": ["El asistente respondió a las preguntas y repasó las opciones que había."],
        "pending": ["Quedan algunos detalles por aclarar y el usuario puede volver con más información."],
        "state": ["La conversación sigue y el asistente atiende lo último que se le pidió."],
    },
    "de": {
        "intent": ["Der Nutzer kam mit einem Anliegen und beschrieb die Lage dahinter recht ausführlich."],
        "done": ["Der Assistent beantwortete die Fragen und ging die Möglichkeiten mit ihm durch."],
        "pending": ["Einige Einzelheiten sind noch offen, und der Nutzer wird sich dazu wieder melden."],
        "state": ["Das Gespräch geht weiter, und der Assistent kümmert sich um die letzte Bitte."],
    },
    "fr": {
        "intent": ["L'utilisateur a présenté une demande et expliqué la situation avec quelques détails."],
        "done": ["L'assistant a répondu aux questions et passé en revue les choix possibles."],
        "pending": ["Certains points restent à préciser et l'utilisateur peut revenir avec des compléments."],
        "state": ["La conversation continue et l'assistant s'occupe de la dernière demande."],
    },
    "pt": {
        "intent": ["O usuário apresentou um pedido e explicou a situação com algum detalhe."],
        "done": ["O assistente respondeu às perguntas e mostrou as opções que existem."],
        "pending": ["Ainda há pontos em aberto e o usuário pode voltar com mais informações."],
        "state": ["A conversa continua e o assistente trata do pedido mais recente."],
    },
}


def drops_facts(wanted: Wanted) -> str:
    """A summary that could be of any conversation in this language."""
    return written(_SAID[source_of(wanted).language])


def in_another_language(wanted: Wanted) -> str:
    """The same, in a language that the conversation is not in."""
    language = source_of(wanted).language
    return written(_SAID["en" if language in {"zh", "ja", "ko"} else "zh"])
