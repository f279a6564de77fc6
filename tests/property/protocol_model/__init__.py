"""An explicit-state model of one session's protocol: see ``docs/protocol-model.md``."""

from tests.property.protocol_model.checker import Search, Violation, search
from tests.property.protocol_model.scope import ALL_GUARDS, Guard, Scope

__all__ = ["ALL_GUARDS", "Guard", "Scope", "Search", "Violation", "search"]
