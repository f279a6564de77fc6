"""Sessions in Redis: keys, scripts and their typed callers."""

from prefold.storage.append import Defaults
from prefold.storage.sessions import Sessions, connect_sessions

__all__ = ["Defaults", "Sessions", "connect_sessions"]
