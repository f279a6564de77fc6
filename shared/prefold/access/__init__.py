"""Who may do what and how much: API keys, their scopes, quotas, and the file that holds them."""

from prefold.access.allowances import EVERYBODY, UNLIMITED, Allowance, Allowances, parse_allowances
from prefold.access.key_file import KeyFile, KeyRecord, iso, parse_key_file
from prefold.access.key_text import MOST_KEY_BYTES, id_in, keyed_hash, mark_of, new_key
from prefold.access.scopes import ALL_SCOPES, SCOPES, Scope, scopes_of
from prefold.access.secret import secret_of
from prefold.access.watched_file import WatchedFile

__all__ = [
    "ALL_SCOPES",
    "EVERYBODY",
    "MOST_KEY_BYTES",
    "SCOPES",
    "UNLIMITED",
    "Allowance",
    "Allowances",
    "KeyFile",
    "KeyRecord",
    "Scope",
    "WatchedFile",
    "id_in",
    "iso",
    "keyed_hash",
    "mark_of",
    "new_key",
    "parse_allowances",
    "parse_key_file",
    "scopes_of",
    "secret_of",
]
