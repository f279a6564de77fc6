"""A stand-in for Anthropic's Messages API that refuses what the real one refuses and counts what it counts.

``MessagesApi`` is the application; ``serving`` puts it behind a real port, ``in_process`` behind a client without one.
``faults`` names what can go wrong, ``verdict`` what the client did wrong. By hand: ``python -m
tests.support.messages_api --help``.
"""

from tests.support.messages_api import faults
from tests.support.messages_api.answers import Answer, Brain, text, thinking_block
from tests.support.messages_api.api import MessagesApi
from tests.support.messages_api.brains import BRAINS
from tests.support.messages_api.clock import VirtualClock
from tests.support.messages_api.faults import Fault
from tests.support.messages_api.latency import Latency
from tests.support.messages_api.limits import Limits
from tests.support.messages_api.serving import in_process, refusing, serving
from tests.support.messages_api.verdict import verdict
from tests.support.messages_api.wanted import Wanted

__all__ = [
    "BRAINS",
    "Answer",
    "Brain",
    "Fault",
    "Latency",
    "Limits",
    "MessagesApi",
    "VirtualClock",
    "Wanted",
    "faults",
    "in_process",
    "refusing",
    "serving",
    "text",
    "thinking_block",
    "verdict",
]
