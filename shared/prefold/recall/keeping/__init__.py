"""What is not worth finding again: greetings, acknowledgements, settled clarifications, output that was retold."""

from prefold.recall.keeping.judging import Reason, hangs_on_others, why_not
from prefold.recall.keeping.rules import Rules, packaged_rules, read_rules
from prefold.recall.keeping.tenants import keeps_all

__all__ = ["Reason", "Rules", "hangs_on_others", "keeps_all", "packaged_rules", "read_rules", "why_not"]
