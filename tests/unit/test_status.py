"""What ``prefold status`` and ``prefold top`` make of what they found."""

import io
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.exceptions import NoPermissionError
from rich.console import Console

from prefold.config.addresses import Addresses
from prefold.errors import ConfigurationError, UnavailableError
from prefold.status.frame import Frame
from prefold.status.gateways import GatewayCounts, counts_of, sums_of
from prefold.status.look import Look, Looker, QueueState, Store
from prefold.status.main import top
from prefold.status.report import as_json, as_text
from prefold.status.sessions import Seen, Walk
from prefold.status.settings import StatusSettings, metrics_urls, with_running
from prefold.status.troubles import troubles_of
from prefold.storage.backlog import DueBacklog, EventBacklog
from prefold.storage.fullness import Fullness
from prefold.storage.ingest import Waiting

NOW_MS = 1_000_000


def fullness(tokens: int, *, standby: bool = False, degraded: bool = False, session: str = "s") -> Fullness:
    return Fullness("acme", session, tokens, 1_000, standby, degraded, 2, 1)


def seen(*found: Fullness) -> Seen:
    made = Seen(is_whole=True)
    made.add(found, 0.8)
    return made


def store(
    *,
    event_age: float = 0,
    due_age: float = 0,
    letters: Mapping[str, int] | None = None,
    unread: int = 0,
    ingest: Sequence[Waiting] = (),
) -> Store:
    return Store(
        now_ms=NOW_MS,
        events=EventBacklog(unread, 0, NOW_MS - int(event_age * 1000), 1),
        due=DueBacklog({"embed": 3}, NOW_MS - int(due_age * 1000), 2),
        letters=letters or {},
        ingest=tuple(ingest),
    )


def look(**changed: object) -> Look:
    well = Look(
        at=100.0,
        store=store(),
        seen=seen(fullness(900, standby=True), fullness(10)),
        queues=(QueueState("embed", 4, 1), QueueState("compact", 0, 1), QueueState("memory", 0, 1)),
        gateways=GatewayCounts(1, 1, turns=100),
    )
    return replace(well, **changed)  # type: ignore[arg-type]


def exposed(ready: int, missing: int) -> str:
    return (
        "# TYPE prefold_limit_crossings_total counter\n"
        f'prefold_limit_crossings_total{{standby="ready"}} {ready}\n'
        f'prefold_limit_crossings_total{{standby="missing"}} {missing}\n'
        "# TYPE prefold_http_requests_total counter\n"
        'prefold_http_requests_total{method="GET",route="/x",status="503"} 2\n'
        'prefold_http_requests_total{method="GET",route="/x",status="200"} 5\n'
    )


def test_the_ratio_of_several_gateways_is_that_of_their_sums() -> None:
    counts = sums_of([exposed(1, 0), exposed(1, 98)], asked=3)
    assert counts.standby_ready_ratio == 0.02  # the mean of their ratios would be 0.505
    assert (counts.answered, counts.asked) == (2, 3)
    assert (counts.requests, counts.failures) == (14, 4)


def test_without_a_crossing_there_is_no_ratio() -> None:
    assert sums_of([exposed(0, 0)], 1).standby_ready_ratio is None
    assert seen().standby_ready_ratio is None


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"store": store(event_age=61)}, "an event waits for 61 s"),
        ({"store": store(due_age=301)}, "overdue for 301 s"),
        ({"store": store(letters={"compact": 2})}, "2 pieces of work were set aside"),
        (
            {"store": store(ingest=[Waiting("acme", 3, NOW_MS - 61_000)])},
            "turns of acme wait in its ingest stream for 61 s",
        ),
        (
            {"store": store(ingest=[Waiting("acme", 0, 0, is_stream=False)])},
            "ingest stream of acme is a key of another type",
        ),
        ({"queues": (QueueState("memory", 0, 0),)}, "nobody serves the queue memory"),
        ({"gateways": GatewayCounts(1, 1, over_limit_reads=1)}, "1 contexts were served over their limit"),
        ({"store": None, "away": ("sessions redis://x: does not answer",)}, "does not answer"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(changed: dict[str, object], word: str) -> None:
    assert troubles_of(look()) == []
    found = look(**changed)
    [trouble] = troubles_of(found)
    assert word in trouble
    assert as_text(found).splitlines()[-1] == "1 not as it should be"
    assert json.loads(as_json(found))["troubles"] == [trouble]


def test_ingest_streams_have_a_line_while_anything_waits() -> None:
    streams = [Waiting("acme", 3, NOW_MS - 1_500), Waiting("beta", 1, NOW_MS + 5), Waiting("done", 0, 0)]
    found = look(store=store(ingest=streams))
    assert "ingest      4 entries wait, of 2 tenants; the oldest 1.5 s" in as_text(found)
    assert json.loads(as_json(found))["ingest"] == {"entries": 4, "oldest_seconds": 1.5}
    assert "ingest" not in as_text(look())
    assert troubles_of(found) == []


def test_what_is_late_by_moments_is_well() -> None:
    assert troubles_of(look(store=store(event_age=59, due_age=299))) == []


def test_the_fullest_sessions_come_first_and_are_counted() -> None:
    found = seen(fullness(100), fullness(850), fullness(990, standby=True), fullness(1_000, degraded=True))
    assert [one.tokens for one in found.fullest] == [1_000, 990, 850, 100]
    assert (found.sessions, found.near, found.near_without_standby, found.degraded) == (4, 3, 2, 1)
    assert found.standby_ready_ratio == 0.5


def test_a_part_that_does_not_answer_is_null() -> None:
    told = json.loads(as_json(look(store=None, queues=None, away=("a", "b"))))
    assert (told["ok"], told["events"], told["due"], told["dead_letters"], told["queues"]) == (False, *[None] * 4)


def drawn(frame: Frame, width: int, height: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=False)
    console.print(frame)
    return out.getvalue().splitlines()


def frame_of(*looks: Look) -> Frame:
    frame = Frame()
    for one in looks:
        frame.take(one)
    return frame


MANY = seen(*(fullness(900 - number, session=f"{'long-name-' * 20}{number}") for number in range(60)))
WORST = look(
    seen=MANY,
    store=store(event_age=100, due_age=400, letters={"compact": 1}),
    queues=tuple(QueueState(name, 5, 0) for name in ("embed", "compact", "memory")),
    gateways=GatewayCounts(9, 1, over_limit_reads=1),
)


@pytest.mark.parametrize("shown", [look(), look(seen=MANY), WORST], ids=["well", "many", "worst"])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (40, 18)])
def test_the_picture_fits_its_screen(shown: Look, width: int, height: int) -> None:
    lines = drawn(frame_of(shown), width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert lines[-1].startswith("q or Ctrl-C ends")
    assert lines[0].startswith("prefold")


def test_a_larger_screen_shows_more_sessions() -> None:
    small, large = (
        sum("long-name" in line for line in drawn(frame_of(look(seen=MANY)), 80, rows)) for rows in (24, 50)
    )
    assert small >= 8
    assert large >= small + 26


def test_the_rate_is_that_between_two_looks() -> None:
    later = look(at=102.0, gateways=GatewayCounts(1, 1, turns=150))
    assert "25.0 turns/s" in drawn(frame_of(look(), later), 80, 24)[1]
    assert "- turns/s" in drawn(frame_of(look()), 80, 24)[1]
    restarted = look(at=102.0, gateways=GatewayCounts(1, 1, turns=3))
    assert "- turns/s" in drawn(frame_of(look(), restarted), 80, 24)[1]


def test_a_name_cannot_write_to_the_terminal() -> None:
    found = look(seen=seen(fullness(900, session="a\x1b[2J\nb")))
    for text in (as_text(found), "\n".join(drawn(frame_of(found), 80, 24))):
        assert "\x1b" not in text
        assert "\\x1b[2J" in text


def test_top_refuses_where_there_is_no_terminal_and_says_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    with pytest.raises(ConfigurationError, match="prefold status"):
        top([])


async def test_a_page_that_tells_no_metrics_is_no_answer() -> None:
    pages = {"/a": "<html>no such page", "/b": exposed(1, 1), "/c": ""}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text=pages[request.url.path[:2]]))
    async with httpx.AsyncClient(transport=transport) as client:
        counts = await counts_of(client, [f"http://gateway{path}" for path in pages])
    assert (counts.asked, counts.answered, counts.limit_crossings) == (3, 1, 2)
    assert [one.partition(": ")[2] for one in counts.away] == ["200, and no metrics: this is no gateway"] * 2


async def test_a_gateway_that_gives_no_metrics_is_named_with_what_it_answered() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "away":
            raise httpx.ConnectError("refused")
        return httpx.Response(int(request.url.host.removeprefix("gives-")))

    urls = ["http://gives-401:7077", "http://gives-503", "http://ann:secret@away"]
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        wants_key, fails, away = (await counts_of(client, urls)).away
    assert wants_key.startswith("gateway http://gives-401:7077/metrics: 401; let PREFOLD_GATEWAY_URL name its probe")
    assert fails == "gateway http://gives-503/metrics: 503"
    assert away == "gateway http://********@away/metrics: no answer (ConnectError)"


def test_the_probe_of_a_running_stack_is_asked_unless_a_gateway_is_named(tmp_path: Path) -> None:
    unset = StatusSettings(data_dir=tmp_path)
    assert metrics_urls(with_running(unset)) == ("http://127.0.0.1:7077",)
    found = Addresses("redis://s", "redis://q", "http://v", None, "http://127.0.0.1:1", "http://127.0.0.1:2")
    found.write(tmp_path)
    assert metrics_urls(with_running(unset)) == ("http://127.0.0.1:2",)
    named = StatusSettings(data_dir=tmp_path, gateway_url="http://one, http://two/")
    assert metrics_urls(with_running(named)) == ("http://one", "http://two")
    assert with_running(named).redis_url == "redis://s"


class Refusing:
    """A server that lets nobody look."""

    def __getattr__(self, _: str) -> object:
        def refuse(*_arguments: object) -> object:
            raise NoPermissionError("this user has no permissions to run the command")

        return refuse


async def test_a_server_that_does_not_let_us_look_is_told_of() -> None:
    addresses = {"sessions": "redis://a", "queue": "redis://b"}
    refusing: Any = Refusing()
    async with httpx.AsyncClient() as web:
        settings = StatusSettings(gateway_url="", data_dir=Path("nowhere"))
        found = await Looker(refusing, refusing, web, settings, addresses).look(0)
    assert (found.store, found.queues) == (None, None)
    assert [one.partition(":")[0] for one in found.away] == ["sessions redis", "queue redis"]


async def test_a_walk_that_was_broken_off_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = 0

    async def pages(*_: object) -> AsyncIterator[list[tuple[str, str]]]:
        nonlocal walks
        walks += 1
        yield [("acme", "one")]
        if walks == 1:
            raise UnavailableError("away")
        yield [("acme", "two")]

    async def fullness_of_all(_: object, sessions: Sequence[tuple[str, str]]) -> list[Fullness]:
        return [fullness(10, session=name) for _, name in sessions]

    monkeypatch.setattr("prefold.status.sessions.sessions_in_pages", pages)
    monkeypatch.setattr("prefold.status.sessions.fullness_of", fullness_of_all)
    nothing: Any = None
    walk = Walk(nothing, 0.8)
    with pytest.raises(UnavailableError):
        await walk.advance(9)
    await walk.advance(9)
    assert (walk.seen.is_whole, walk.seen.sessions) == (True, 2)
