"""The cues there are."""

from enum import IntFlag


class Cue(IntFlag):
    """What the wording of a sentence says about its weight."""

    NONE = 0
    CONSTRAINT = 1
    """It binds: a limit, a ban, a standing instruction."""
    CONDITION = 2
    """A requirement in weaker words."""
    CORRECTION = 4
    UPDATE = 8
    """A value has changed in the course of things."""
    PREFERENCE = 16
    IDENTITY = 32
    """Who the speaker is, has, lives with."""
    DECISION = 64
    OPEN = 128
    """Something is still to be done."""
    REQUEST = 256
    NARRATION = 512
    """An assistant telling what it is about to do, or asking for what it needs."""
    OUTCOME = 1024
    """Something was done, or failed."""
    FILLER = 2048
    """Greeting, thanks, an offer to help."""
    FIRST_PERSON = 4096
    QUESTION = 8192
