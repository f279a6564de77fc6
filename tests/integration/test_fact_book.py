"""A user's facts on a real server: learnt, said by a backend, corrected, deleted, shown."""

import asyncio
import threading

import pytest
from redis.asyncio import Redis

from prefold.errors import ConflictError, InvalidInputError, NotFoundError
from prefold.facts import FactBook, NewFact, changing, text_of
from prefold.facts import book as fact_book
from prefold.storage.users import StoredUser, Users
from prefold.tokens import load_counter
from tests.support.facts import DAY_MS, NOW_MS, START_MS, TENANT, USER, everything, learn, live, objects, said, source


@pytest.fixture
def users(redis: Redis) -> Users:
    return Users(redis)


@pytest.fixture
def book(users: Users) -> FactBook:
    return FactBook(users, load_counter())


async def test_the_newest_wins_whichever_extractor_named_the_relation(book: FactBook) -> None:
    await learn(book, said("lives_in", "Berlin", 1), said("email", "a@x.de", 2))
    learnt = await learn(book, said("moved_to", "Lisbon", 5, origin="model"), said("E-Mail", "b@x.de", 6))
    assert [fact.object for fact in learnt.added] == ["Lisbon", "b@x.de"]
    assert len(learnt.superseded) == 2
    assert {(fact.relation, fact.object) for fact in await live(book)} == {("lives_in", "Lisbon"), ("email", "b@x.de")}
    history = {fact.object: fact for fact in await everything(book)}
    assert history["Berlin"].superseded_by == history["Lisbon"].id
    assert history["Berlin"].superseded_at_ms == START_MS + 5


async def test_what_was_said_before_what_is_known_is_history_at_once(book: FactBook) -> None:
    await learn(book, said("lives_in", "Lisbon", 5))
    learnt = await learn(book, said("lives_in", "Berlin", 1))
    assert [fact.object for fact in learnt.added] == ["Berlin"]
    assert learnt.superseded == []
    assert objects(await live(book), "lives_in") == ["Lisbon"]


async def test_learning_again_writes_nothing(book: FactBook, users: Users) -> None:
    told = [said("lives_in", "Berlin", 1), said("likes", "tea", 2)]
    await learn(book, *told)
    before = await users.snapshot(TENANT, USER)
    again = await learn(book, *reversed(told), now_ms=NOW_MS + DAY_MS)
    assert (again.added, again.confirmed, again.superseded, again.refused) == ([], [], [], {})
    assert await users.snapshot(TENANT, USER) == before


async def test_another_turn_confirms_a_row_and_makes_it_surer(book: FactBook) -> None:
    await learn(book, said("likes", "Tea", 1, confidence=0.8))
    learnt = await learn(book, said("loves", "tea", 9, session="s2", confidence=0.8))
    (fact,) = await live(book)
    assert learnt.confirmed == [fact.id]
    assert fact.sources == (source(1), source(9, "s2"))
    assert (fact.first_seen_ms, fact.last_confirmed_ms) == (START_MS + 1, START_MS + 9)
    assert 0.8 < fact.confidence < 1


async def test_what_a_user_takes_back_ends_and_nothing_takes_its_place(book: FactBook) -> None:
    await learn(book, said("eats", "meat", 1), said("lives_in", "Oslo", 2), said("works_at", "Acme", 3))
    await learn(
        book,
        said("eats", "Meat", 5, retracts=True),
        said("no_longer_lives_in", "oslo", 6),
        said("works_at", "", 7, retracts=True),
    )
    assert await live(book) == []
    assert all(fact.superseded_by == fact.id for fact in await everything(book))


async def test_an_opposite_takes_the_place_for_the_same_object_only(book: FactBook) -> None:
    await learn(book, said("likes", "coffee", 1), said("likes", "tea", 2))
    await learn(book, said("hates", "Coffee", 3))
    found = await live(book)
    assert (objects(found, "likes"), objects(found, "dislikes")) == (["tea"], ["Coffee"])


async def test_a_time_yet_to_come_does_not_win_for_ever(book: FactBook) -> None:
    await learn(book, said("lives_in", "Future", 1, said_at_ms=NOW_MS + 10_000 * DAY_MS))
    await learn(book, said("lives_in", "Present", 2, said_at_ms=NOW_MS + 5), now_ms=NOW_MS + 5)
    assert objects(await live(book), "lives_in") == ["Present"]


async def test_at_one_moment_the_backends_word_wins_and_later_the_users(book: FactBook) -> None:
    await learn(book, said("lives_in", "Said", 1, said_at_ms=NOW_MS, origin="model"))
    await book.add(TENANT, USER, NewFact("user", "lives_in", "Backend"), now_ms=NOW_MS)
    assert objects(await live(book), "lives_in") == ["Backend"]
    await learn(book, said("lives_in", "Moved", 2, said_at_ms=NOW_MS + 1), now_ms=NOW_MS + 1)
    assert objects(await live(book), "lives_in") == ["Moved"]


async def test_a_deleted_fact_is_not_learnt_again_in_any_words(book: FactBook) -> None:
    await learn(book, said("lives_in", "Zürich", 1))
    (fact,) = await live(book)
    assert await book.delete(TENANT, USER, fact.id) == fact
    learnt = await learn(book, said("moved_to", "the ZURICH", 9, session="s2"), said("lives_in", "Zürich", 1))
    assert (learnt.added, learnt.refused) == ([], {"suppressed": 2})
    assert await everything(book) == []
    with pytest.raises(NotFoundError) as unknown:
        await book.delete(TENANT, USER, fact.id)
    assert unknown.value.code == "fact_not_found"


async def test_a_deleted_fact_leaves_no_sentence_behind_that_tells_it(book: FactBook) -> None:
    both = "I live in Zürich and I'm allergic to walnuts."
    told = [
        said("lives_in", "Zürich", 1, said=both),
        said("allergic_to", "walnuts", 1, said=both),
        said("likes", "cheese", 1, said="In zurich I love cheese."),
        said("likes", "chess", 1, said="I love chess."),
        said("works_at", "Acme", 2, said="I work at Acme, in Zürich."),
        said("likes", "Zürich lake", 3, said="I love the Zürich lake."),
    ]
    await learn(book, *told)
    home = next(fact for fact in await live(book) if fact.relation == "lives_in")
    await book.delete(TENANT, USER, home.id)
    left = {"walnuts": "", "cheese": "", "chess": "I love chess.", "Acme": "", "Zürich lake": "I love the Zürich lake."}
    assert {fact.object: fact.said for fact in await everything(book)} == left
    await learn(book, *told)
    for alone in (told[1], told[4]):
        await learn(book, alone)
    assert {fact.object: fact.said for fact in await everything(book)} == left
    assert all(fact.sources for fact in await everything(book))
    later = said("allergic_to", "pollen", 9, said="I live in Zürich and pollen makes me sneeze.")
    await learn(book, said("lives_in", "Zürich", 9, said=later.said), later)
    assert {fact.object: fact.said for fact in await everything(book)} == {**left, "pollen": ""}


async def test_what_a_deleted_fact_had_replaced_stays_history(book: FactBook) -> None:
    await learn(book, said("lives_in", "Berlin", 1), said("lives_in", "Lisbon", 2))
    (current,) = await live(book)
    await book.delete(TENANT, USER, current.id)
    assert await live(book) == []
    assert objects(await everything(book), "lives_in") == ["Berlin"]
    await learn(book, said("lives_in", "Berlin", 5))
    assert objects(await live(book), "lives_in") == ["Berlin"]


async def test_a_backend_may_add_a_deleted_fact_again(book: FactBook) -> None:
    added = await book.add(TENANT, USER, NewFact("user", "likes", "tea"), now_ms=NOW_MS)
    await book.delete(TENANT, USER, added.id)
    again = await book.add(TENANT, USER, NewFact("user", "likes", "Tea"), now_ms=NOW_MS)
    assert again.id != added.id
    assert (await learn(book, said("likes", "tea", 3))).confirmed == [again.id]


async def test_a_correction_makes_the_old_row_history_and_it_does_not_come_back(book: FactBook) -> None:
    await learn(book, said("allergic_to", "penuts", 1, category="health"))
    (old,) = await live(book)
    new = await book.correct(TENANT, USER, old.id, NewFact("user", "allergic_to", "peanuts"), now_ms=NOW_MS)
    assert (new.object, new.category, new.origin, new.confidence) == ("peanuts", "health", "backend", 1.0)
    await learn(book, said("allergic_to", "penuts", 1, category="health"), said("allergic_to", "penuts", 2))
    assert objects(await live(book), "allergic_to") == ["peanuts"]
    history = {fact.object: fact for fact in await everything(book)}
    assert history["penuts"].superseded_by == new.id
    with pytest.raises(ConflictError) as refused:
        await book.correct(TENANT, USER, old.id, NewFact("user", "allergic_to", "soy"), now_ms=NOW_MS)
    assert refused.value.code == "fact_superseded"


async def test_a_correction_of_what_is_not_the_statement_keeps_its_id(book: FactBook) -> None:
    await learn(book, said("likes", "tea", 1))
    (old,) = await live(book)
    given = NewFact("user", "likes", "Tea", category="health", confidence=0.7, expires_at_ms=NOW_MS + 5)
    new = await book.correct(TENANT, USER, old.id, given, now_ms=NOW_MS)
    assert (new.id, new.category, new.confidence, new.expires_at_ms) == (old.id, "health", 0.7, NOW_MS + 5)
    assert new.sources == old.sources
    assert await live(book, now_ms=NOW_MS + 4) == [new]
    assert await live(book, now_ms=NOW_MS + 5) == []


async def test_correcting_twice_after_a_lost_reply_is_as_once(book: FactBook) -> None:
    old = await book.add(TENANT, USER, NewFact("user", "email", "a@x.de"), now_ms=NOW_MS)
    once = await book.correct(TENANT, USER, old.id, NewFact("user", "email", "b@x.de"), now_ms=NOW_MS + 1)
    assert await book.correct(TENANT, USER, old.id, NewFact("user", "email", "b@x.de"), now_ms=NOW_MS + 1) == once


async def test_writers_at_the_same_time_lose_nothing_of_each_other(users: Users) -> None:
    books = [FactBook(users, load_counter()) for _ in range(12)]
    await asyncio.gather(
        *(one.learn(TENANT, USER, [said("likes", f"thing {at}", at)], now_ms=NOW_MS) for at, one in enumerate(books)),
        *(one.add(TENANT, USER, NewFact("user", "owns", f"car {at}"), now_ms=NOW_MS) for at, one in enumerate(books)),
    )
    found = await live(books[0])
    assert objects(found, "likes") == sorted(f"thing {at}" for at in range(12))
    assert objects(found, "owns") == sorted(f"car {at}" for at in range(12))


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (NewFact("", "likes", "tea"), "subject"),
        (NewFact("user", " ", "tea"), "relation"),
        (NewFact("user", "likes", "\n"), "object"),
        (NewFact("user", "likes", "x" * 301), "object"),
        (NewFact("user", "no_longer_lives_in", "Oslo"), "relation"),
        (NewFact("user", "likes", "tea", confidence=1.5), "confidence"),
        (NewFact("user", "likes", "tea", confidence=float("nan")), "confidence"),
        (NewFact("user", "likes", "tea", expires_at_ms=-1), "expires_at_ms"),
        (NewFact("user", "likes", "tea", expires_at_ms=10**18), "expires_at_ms"),
        (NewFact("user", "likes", "tea", category="nonsense"), "category"),  # type: ignore[arg-type]
        (NewFact("user", "likes", "tea", sources=[source(at) for at in range(16)]), "sources"),
    ],
)
async def test_what_a_backend_says_is_refused_with_the_field_that_is_wrong(
    book: FactBook, new: NewFact, field: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await book.add(TENANT, USER, new, now_ms=NOW_MS)
    assert refused.value.field == field
    assert await everything(book) == []


async def test_a_user_has_so_many_rows_at_most_and_what_goes_is_counted(
    book: FactBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "MOST_LIVE", 5)
    monkeypatch.setattr(changing, "MOST_ROWS", 8)
    await book.add(TENANT, USER, NewFact("user", "likes", "backend's", confidence=0.5), now_ms=NOW_MS)
    for at in range(6):
        await learn(book, said("lives_in", f"city {at}", at))
    assert len(await everything(book)) == 7
    learnt = await learn(book, *(said("likes", f"thing {at}", 10 + at, confidence=0.6) for at in range(5)))
    found = await live(book)
    assert len(found) == 5
    assert {"backend's", "city 5"} <= {fact.object for fact in found}
    assert len(await everything(book)) == 8
    assert len(learnt.dropped) + learnt.refused["too_many"] == 4
    assert [fact.object for fact in await everything(book) if fact.relation == "lives_in"] == [
        "city 5",
        "city 4",
        "city 3",
        "city 2",
    ]


async def test_what_goes_for_want_of_room_does_not_bring_back_what_it_had_replaced(
    book: FactBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "MOST_LIVE", 1)
    await learn(book, said("lives_in", "Berlin", 1), said("lives_in", "Lisbon", 2, confidence=0.6))
    await learn(book, said("name", "Ada", 3))
    assert [fact.object for fact in await everything(book)] == ["Ada"]


async def test_a_later_turn_of_a_session_beats_an_earlier_one_of_the_future(book: FactBook) -> None:
    wrong = said("lives_in", "Berlin", 1, said_at_ms=NOW_MS + 70 * 365 * DAY_MS)
    right = said("lives_in", "Lisbon", 2, said_at_ms=NOW_MS - 5_000)
    await learn(book, wrong, right)
    assert [(one.object, one.last_confirmed_ms) for one in await live(book)] == [("Lisbon", NOW_MS - 5_000)]
    between = said("lives_in", "Porto", 1, session="s2", said_at_ms=NOW_MS - 2_000)
    await learn(book, between)
    assert objects(await live(book), "lives_in") == ["Porto"], "of another session, and said after both"


async def test_what_a_later_turn_had_replaced_stays_history_when_that_one_is_deleted(book: FactBook) -> None:
    await learn(book, said("lives_in", "Berlin", 1, said_at_ms=NOW_MS + DAY_MS), said("lives_in", "Lisbon", 2))
    (lisbon,) = await live(book)
    await book.delete(TENANT, USER, lisbon.id, now_ms=NOW_MS)
    assert await live(book) == []
    assert objects(await everything(book), "lives_in") == ["Berlin"]


async def test_an_expired_line_leaves_the_profile_at_the_next_reading(book: FactBook, users: Users) -> None:
    await learn(book, said("name", "Ada", 1, category="identity"))
    given = NewFact("user", "plans", "move to Oslo", expires_at_ms=NOW_MS + 10)
    await book.add(TENANT, USER, given, now_ms=NOW_MS)
    assert "Oslo" in (await book.profile(TENANT, USER, now_ms=NOW_MS + 9)).text
    later = await book.profile(TENANT, USER, now_ms=NOW_MS + 10)
    assert later.text == text_of(next(fact for fact in await live(book) if fact.relation == "name"))
    assert await users.read_profile(TENANT, USER) == later  # from now on it is one GET again
    assert len(await everything(book)) == 2


async def test_an_end_that_has_passed_when_it_is_given_ends_the_row_until_it_is_said_again(book: FactBook) -> None:
    given = NewFact("user", "plans", "move to Oslo", category="plan", expires_at_ms=NOW_MS - 10)
    await book.add(TENANT, USER, given, now_ms=NOW_MS)
    assert await book.list(TENANT, USER, now_ms=NOW_MS) == []
    again = said("plans", "move to Oslo", 1, category="plan", said_at_ms=NOW_MS + 5)
    await book.learn(TENANT, USER, [again], now_ms=NOW_MS + 5)
    assert [one.object for one in await book.list(TENANT, USER, now_ms=NOW_MS + 5)] == ["move to Oslo"]


async def test_a_category_is_listed_alone_and_the_newest_first(book: FactBook) -> None:
    await learn(
        book,
        said("likes", "tea", 1, category="preference"),
        said("likes", "jam", 3, category="preference"),
        said("name", "Ada", 2, category="identity"),
    )
    assert [fact.object for fact in await live(book)] == ["jam", "Ada", "tea"]
    found = await book.list(TENANT, USER, category="preference", now_ms=NOW_MS)
    assert [fact.object for fact in found] == ["jam", "tea"]


async def test_no_name_of_a_tenant_or_user_reaches_anothers_facts(book: FactBook) -> None:
    await learn(book, said("likes", "tea", 1))
    (fact,) = await live(book)
    for tenant, user in (
        ("acme:ada", "x"),
        ("*", "*"),
        ("acme", "{ada}"),
        ("acme", "*"),
        ("ac", "me:ada"),
        ("ACME", "ada"),
    ):
        assert await book.list(tenant, user, history=True, now_ms=NOW_MS) == []
        assert (await book.profile(tenant, user)).text == ""
        with pytest.raises(NotFoundError):
            await book.delete(tenant, user, fact.id)
        with pytest.raises(NotFoundError):
            await book.correct(tenant, user, fact.id, NewFact("user", "likes", "x"), now_ms=NOW_MS)
        assert (await book.withdraw(tenant, user, session="s1")).dropped == []
    assert await live(book) == [fact]


async def test_many_rows_are_read_and_changed_beside_the_event_loop(
    book: FactBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 rows take some 60 ms: so long no other request may wait."""
    await learn(book, *(said("likes", f"tea {number}", number) for number in range(60)))
    threads: set[int] = set()

    def opened(stored: StoredUser) -> changing.Book:
        threads.add(threading.get_ident())
        return changing.opened(stored)

    monkeypatch.setattr(fact_book, "opened", opened)
    assert len(await live(book)) == 60
    await learn(book, said("likes", "coffee", 70))
    await book.unreadable(TENANT, USER)
    assert threads and threading.get_ident() not in threads
