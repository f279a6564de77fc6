"""From published turns to the one that answers a question, with the real embedder and the real store."""

import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from prefold.embedding import Embedder, create_embedder
from prefold.recall import (
    CollectionSpec,
    TurnPoint,
    TurnSearch,
    VectorIndex,
    connect_vectors,
    index_turn,
)
from prefold.storage.types import SessionRef
from tests.support.vectors import RunningVectors, running_vectors

DATA = Path(os.environ.get("PREFOLD_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))

TURNS = [
    ("user", "Hello! I run a small bakery in Graz and need help with suppliers."),
    ("assistant", "Of course. Which supplies are you short of?"),
    ("user", "Mostly flour. And please never call me in the morning, I sleep until noon after the night shift."),
    ("assistant", "Noted. Shall I ask three mills for offers?"),
    ("user", "Yes. My customer number at Farina is KX_4471_B."),
    ("assistant", "Thank you. What about the oven?"),
    ("user", "Should I get the oven insured?"),
    ("assistant", "It depends on its age."),
    ("user", "Should I get the oven insured?"),
    ("assistant", "As I said, it depends on its age."),
    ("user", "Die neue Knetmaschine kommt am Donnerstag."),
    ("assistant", "Good, then the dough can rest overnight from Thursday on."),
]


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return create_embedder()


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as running:
        yield running


@pytest.fixture
async def index(vectors: RunningVectors, embedder: Embedder) -> AsyncIterator[VectorIndex]:
    spec = CollectionSpec(embedder.id, embedder.dimension)
    async with connect_vectors(vectors.url, spec, scale=embedder.scale) as opened:
        await opened.ensure()
        await opened.delete("acme")
        yield opened


def points(embedder: Embedder, turns: Sequence[dict[str, object]]) -> list[TurnPoint]:
    indexed = [index_turn(json.dumps(turn).encode()) for turn in turns]
    rows = embedder.embed_documents([turn.text for turn in indexed])
    return [
        TurnPoint(
            ref=SessionRef("acme", "s1", "i1"),
            user="ann",
            seq=number + 1,
            revision=0,
            role=str(turns[number]["role"]),
            ts_ms=indexed[number].ts_ms,
            vector=rows[number],
            words=indexed[number].words(),
            voice=indexed[number].voice,
            speaker=indexed[number].speaker_words(),
        )
        for number in range(len(turns))
    ]


@pytest.mark.parametrize(
    ("query", "seq"),
    [
        ("At what time of day should nobody call me?", 2),
        ("KX_4471_B", 4),
        ("customer number 4471", 4),
        ("What kind of business do I have?", 0),
        ("Knetmaschine", 10),
    ],
)
async def test_the_turn_that_answers_is_among_the_first_three(
    index: VectorIndex, embedder: Embedder, query: str, seq: int
) -> None:
    await index.upsert(points(embedder, [{"role": role, "content": text} for role, text in TURNS]))
    hits = await TurnSearch(index, embedder).find("acme", query)
    assert seq in [hit.seq - 1 for hit in hits[:3]]
    assert await TurnSearch(index, embedder).find("other", query) == []


async def test_the_october_turn_of_the_trip_comes_first(index: VectorIndex, embedder: Embedder) -> None:
    file = DATA / "trip-90.jsonl"
    if not file.exists():
        pytest.skip(f"the development data is not here: {file}")
    turns = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    await index.upsert(points(embedder, turns))
    hits = await TurnSearch(index, embedder).find("acme", "when am I free to travel?")
    assert "October" in turns[hits[0].seq - 1]["content"]
