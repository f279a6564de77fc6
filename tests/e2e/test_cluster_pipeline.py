"""The processes on a cluster: an append leads to vectors and to a standby, also behind a primary that was replaced."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from prefold.embedding import create_embedder
from prefold.recall import CollectionSpec, connect_vectors
from prefold.storage import Sessions, connect_sessions
from prefold.storage.types import SessionOptions
from tests.support.cluster import RunningCluster, home, mended, one_at, one_of_each
from tests.support.storage import TENANT, append, turn
from tests.support.vectors import running_vectors
from tests.support.waiting import wait_until_async
from tests.support.worker_jobs import environment, role_process

TEXT = "Order {0} of the shop in Lyon came late, and the parcel held {0} broken cups. "


async def fill(sessions: Sessions, session: str) -> int:
    """Publishes until a standby is wanted; how many turns that took."""
    await sessions.open(TENANT, session, SessionOptions(hard_limit_tokens=2_000))
    turns = 0
    while (await sessions.view(TENANT, session)).status != "soft":
        turns += 1
        await append(sessions, turn("user", TEXT.format(turns) * 4, id=f"t{turns}"), session=session)
    return turns


@pytest.mark.long
@pytest.mark.timeout(180)
async def test_an_append_leads_to_vectors_and_to_a_standby_on_every_primary(
    cluster: RunningCluster, cluster_url: str, queue_url: str, tmp_path: Path
) -> None:
    embedder = create_embedder("minilm")
    spec = CollectionSpec(embedder.id, embedder.dimension)
    with ExitStack() as running:
        vectors = running.enter_context(running_vectors(tmp_path))
        settings = environment(queue_url, cluster_url, embedder="minilm", qdrant_url=vectors.url)
        for role in (("dispatcher",), ("worker", "embed"), ("worker", "compact")):
            running.enter_context(role_process(*role, **settings))
        async with (
            connect_sessions(cluster_url) as sessions,
            connect_vectors(vectors.url, spec, scale=embedder.scale) as index,
            mended(cluster),
        ):
            await index.ensure()
            names = one_of_each(cluster)
            turns = sum([await fill(sessions, name) for name in names])

            async def all_done() -> bool:
                views = [await sessions.view(TENANT, name) for name in names]
                return all(view.standby for view in views) and await index.count(TENANT) == turns

            await wait_until_async("standbys and vectors are there", all_done, timeout=60)

            primary = home(cluster, names[0])
            (replica,) = cluster.replicas_of(primary)
            primary.kill()
            await asyncio.to_thread(cluster.wait_until_serving, replica)
            late = one_at(cluster, replica, "late")
            turns += await fill(sessions, late)
            names.append(late)
            await wait_until_async("those of the new primary too", all_done, timeout=60)
            hits = await index.search(TENANT, vector=embedder.embed_query("broken cups"), query="cups")
            assert hits and {hit.ref.session for hit in hits} <= set(names)
