"""What is known of a user: rows that statements become, which of them hold, and how they are shown."""

from prefold.facts.book import FactBook
from prefold.facts.categories import categories_of
from prefold.facts.graph import Edge, Graph, Node, entities_in, graph_of, neighbours
from prefold.facts.outcomes import Learnt, NewFact, Withdrawn
from prefold.facts.rendering import text_of
from prefold.facts.rows import CATEGORIES, Category, Fact, Origin, Source, Stated
from prefold.facts.settling import is_live, now_confidence

__all__ = [
    "CATEGORIES",
    "Category",
    "Edge",
    "Fact",
    "FactBook",
    "Graph",
    "Learnt",
    "NewFact",
    "Node",
    "Origin",
    "Source",
    "Stated",
    "Withdrawn",
    "categories_of",
    "entities_in",
    "graph_of",
    "is_live",
    "neighbours",
    "now_confidence",
    "text_of",
]
