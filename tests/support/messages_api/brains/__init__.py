"""The brains by name. Each answers from the request alone."""

from tests.support.messages_api.answers import Brain
from tests.support.messages_api.brains import bad
from tests.support.messages_api.brains.faithful import faithful
from tests.support.messages_api.brains.lossy import drops_facts, in_another_language

BRAINS: dict[str, Brain] = {
    "faithful": faithful,
    "drops_facts": drops_facts,
    "refuses": bad.refuses,
    "apologises": bad.apologises,
    "empty": bad.empty,
    "whitespace": bad.whitespace,
    "truncated": bad.truncated,
    "cut_short": bad.cut_short,
    "other_language": in_another_language,
    "continues_chat": bad.continues_chat,
    "continues_in_form": bad.continues_in_form,
    "quotes_everything": bad.quotes_everything,
    "obeys_injection": bad.obeys_injection,
    "error_sentence": bad.error_sentence,
    "none_placeholder": bad.none_placeholder,
    "placeholders_in_form": bad.placeholders_in_form,
    "tool_call_only": bad.tool_call_only,
    "thinking_only": bad.thinking_only,
    "fragment": bad.fragment,
    "gibberish": bad.gibberish,
    "loops": bad.loops,
    "invents": bad.invents,
    "two_blocks": bad.two_blocks,
}


def brain_called(brain: Brain | str) -> Brain:
    """The brain itself, or the one of that name."""
    return BRAINS[brain] if isinstance(brain, str) else brain
