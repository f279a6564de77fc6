"""Facts out of conversations: by rules, or by a model whose every row is held against what was said."""

from prefold.memory.extracting.model import Extraction, ModelExtractor
from prefold.memory.extracting.offline import extract_offline
from prefold.memory.extracting.proposals import propose

__all__ = ["Extraction", "ModelExtractor", "extract_offline", "propose"]
