"""From a row to what is answered."""

from prefold.facts import Fact, Graph, now_confidence, text_of
from prefold.gateway.fact_answers import FactAnswer, GraphAnswer, GraphEdge, GraphNode
from prefold.gateway.recall_answers import FactSource
from prefold.gateway.summary_views import iso_time

__all__ = ["fact_answer", "graph_answer"]


def fact_answer(fact: Fact, now_ms: int) -> FactAnswer:
    """The documented shape of a row as it is now."""
    return FactAnswer(
        id=fact.id,
        subject=fact.subject,
        relation=fact.relation,
        object=fact.object,
        category=fact.category,
        confidence=_confidence(fact, now_ms),
        sources=_sources(fact),
        said=fact.said,
        text=text_of(fact),
        origin=fact.origin,
        is_entity=fact.is_entity,
        first_seen=iso_time(fact.first_seen_ms),
        last_confirmed=iso_time(fact.last_confirmed_ms),
        expires_at=None if fact.expires_at_ms is None else iso_time(fact.expires_at_ms),
        superseded_by=fact.superseded_by,
        superseded_at=None if fact.superseded_at_ms is None else iso_time(fact.superseded_at_ms),
    )


def graph_answer(graph: Graph, now_ms: int) -> GraphAnswer:
    """The documented shape of a graph."""
    return GraphAnswer(
        nodes=[GraphNode(id=node.id, name=node.name, facts=list(node.facts)) for node in graph.nodes.values()],
        edges=[
            GraphEdge(
                source=edge.source,
                target=edge.target,
                relation=edge.relation,
                fact=edge.fact,
                confidence=_confidence(graph.facts[edge.fact], now_ms),
                sources=_sources(graph.facts[edge.fact]),
            )
            for edge in graph.edges
        ],
    )


def _confidence(fact: Fact, now_ms: int) -> float:
    return round(min(1.0, max(0.0, now_confidence(fact, now_ms))), 4)


def _sources(fact: Fact) -> list[FactSource]:
    return [FactSource(session=one.session, turn_id=one.turn_id, seq=one.seq) for one in fact.sources]
