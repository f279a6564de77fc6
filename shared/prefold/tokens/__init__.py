"""Offline token counting: ``load_counter()`` gives the fastest counter there is, ``load_reference()`` tiktoken itself."""

from prefold.tokens.counter import TokenCounter
from prefold.tokens.loading import load_counter, load_reference, warm

__all__ = ["TokenCounter", "load_counter", "load_reference", "warm"]
