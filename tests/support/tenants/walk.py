"""One tenant's random walk through the API, which looks for others' words in everything that it is answered."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from tests.support.tenants.people import Person, key_of, owner_of_session, people_in

Json = dict[str, Any]
PLANNED = 501
"""A call that is part of the API and does not exist yet."""
_KINDS = ("turn", "segment", "summary", "fact")
_SPEECH = (
    "My name is {who}.",
    "I live in {who} since last spring, with my sister.",
    "I am allergic to {who} and to nothing else.",
    "My budget is {number} euros, and {who} has to agree to it.",
    "Please send order {number} to {who}; the parcel broke on its way from Leipzig, and the third cup is missing.",
    "我住在{who}，我对花生过敏。",
)
_ANSWER = (
    "I have noted {who} for order {number}. The carrier says that it left the warehouse on Tuesday, that it was seen in "
    "Halle, and that it should be there by Friday; if it is not, tell me and I will open a claim the same day."
)


@dataclass
class Figures:
    """What the walks did, and what came of it."""

    operations: int = 0
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    own_words: Counter[str] = field(default_factory=Counter)
    """How many answers of each route had the asker's own words in them: only these say that the others' are missing."""
    fact_ids: dict[str, Person] = field(default_factory=dict)
    """Whose fact each id is: everybody tries everybody's."""

    def statuses(self) -> dict[int, int]:
        """How many answers had each status."""
        by_status: Counter[int] = Counter()
        for (_, status), count in self.answers.items():
            by_status[status] += count
        return dict(by_status)

    def missing(self) -> set[str]:
        """Routes that do not exist yet."""
        return {route for route, status in self.answers if status == PLANNED}


class Walk:
    """Knows what its tenant's sessions must hold. One operation at a time."""

    def __init__(self, client: httpx.AsyncClient, people: list[Person], others: list[Person], figures: Figures) -> None:
        self.people = people
        self.tenant = people[0].tenant
        self._client = client
        self._others = others
        self._figures = figures
        self._random = Random()
        self._headers = {"authorization": f"Bearer {key_of(self.tenant)}"}
        self.logs: dict[str, list[tuple[int, str]]] = {}
        """Seq and id of each turn of each session that is open."""
        self.kept_facts: dict[Person, str] = {}
        """A fact of each user that only others try to change."""
        self._numbers = 0

    async def begin(self, seed: str) -> None:
        """Opens a session of each user."""
        self._random.seed(seed)
        for person in self.people:
            await self.open(person, person.sessions[0])
            await self.append(person, person.sessions[0])
            await self.keep_a_fact(person)

    async def step(self) -> None:
        """One operation."""
        person = self._random.choice(self.people)
        session = self._random.choice([name for name in self.logs if owner_of_session(self.tenant, name) == person])
        operation, _ = self._random.choices(_OPERATIONS, [weight for _, weight in _OPERATIONS])[0]
        self._figures.operations += 1
        await operation(self, person, session)

    async def finish(self) -> None:
        """Reads everything once more that may by now hold words of others."""
        person = self._random.choice(self.people)
        for read in (Walk.write_state, Walk.read_state, Walk.read_facts, Walk.recall):
            await read(self, person, person.sessions[0])
        await self._user("GET", "/graph", person)
        await self.search_everything(person, person.sessions[0])
        for session in self.logs:
            await self.read_log(owner_of_session(self.tenant, session), session)

    async def ask(self, method: str, route: str, owner: Person | None, **given: Any) -> httpx.Response:
        """One call. The answer may hold the owner's words alone, or without an owner those of this tenant's people.

        ``route`` is the path with ``{…}`` filled from ``given["path"]``.
        """
        path = route.format(**given.pop("path", {}))
        answer = await self._client.request(method, f"/v1{path}", headers=self._headers, **given)
        self._figures.answers[f"{method} {route}", answer.status_code] += 1
        found = people_in(answer.content + repr(answer.headers).encode())
        allowed = {owner} if owner else set(self.people)
        assert found <= allowed, f"{method} {path} of {self.tenant} tells of {sorted(found - allowed)}"
        self._figures.own_words[f"{method} {route}"] += bool(found)
        assert answer.status_code < 500 or answer.status_code in (PLANNED, 503), f"{method} {path}: {answer.text}"
        return answer

    # Sessions and their turns

    async def open_another(self, person: Person, session: str) -> None:
        await self.open(person, self._random.choice(person.sessions))

    async def open(self, person: Person, session: str) -> None:
        body = {"user": person.name, "hard_limit_tokens": 1_500, "system": f"You serve {person.canary}."}
        body |= {"metadata": {"of": person.canary}, "close_after_seconds": self._random.choice([0, 1, 1800])}
        body |= {"proposals": self._random.choice(["hold", "apply"])}
        answer = await self._session("PUT", "", person, session, json=body)
        assert answer.status_code == 200, answer.text
        self.logs.setdefault(session, [])

    async def append(self, person: Person, session: str) -> None:
        turns = [self._turn(person, role) for role in ("user", "assistant", "user")[: self._random.randint(1, 3)]]
        if self._random.random() < 0.2:
            turns += self._tool_round(person)
        answer = await self._session("POST", "/turns", person, session, json={"turns": turns})
        assert answer.status_code == 201, answer.text
        self.logs[session] += [(turn["seq"], turn["id"]) for turn in answer.json()["turns"]]

    async def read_log(self, person: Person, session: str) -> None:
        """What others do to sessions and turns of the same names must not show here."""
        found: list[tuple[int, str]] = []
        pages = True
        while pages:
            params = {"limit": 500, "after_seq": found[-1][0] if found else 0}
            answer = await self._session("GET", "/turns", person, session, params=params)
            page = [(turn["seq"], turn["id"]) for turn in answer.json()["turns"]]
            found += page
            pages = len(page) == 500
        assert found == self.logs[session], f"{self.tenant} {session}"

    async def read_session(self, person: Person, session: str) -> None:
        answer = await self._session("GET", "", person, session)
        assert answer.json()["user"] == person.name

    async def edit(self, person: Person, session: str) -> None:
        if mine := [one for _, one in self.logs[session] if "-plain-" in one]:
            turn = self._random.choice(mine)
            role = turn.rpartition("-")[2]
            body = {"role": role, "content": f"I meant that {person.canary} has moved to Halle."}
            await self._session("PUT", "/turns/{turn}", person, session, turn, json=body)

    async def remove(self, person: Person, session: str) -> None:
        if self.logs[session]:
            _, turn = self._random.choice(self.logs[session])
            await self._session("DELETE", "/turns/{turn}", person, session, turn)

    async def rewind(self, person: Person, session: str) -> None:
        if len(self.logs[session]) > 6:
            to_seq = self.logs[session][-self._random.randint(2, 4)][0]
            answer = await self._session("POST", "/rewind", person, session, json={"to_seq": to_seq})
            if answer.status_code == 200:
                self.logs[session] = [one for one in self.logs[session] if one[0] <= to_seq]

    async def fork(self, person: Person, session: str) -> None:
        branch = f"{session[:2]}f{self._random.randint(0, 2)}"
        if branch in self.logs or not self.logs[session]:
            return
        at_seq = self._random.choice(self.logs[session])[0]
        answer = await self._session("POST", "/fork", person, session, json={"session": branch, "at_seq": at_seq})
        if answer.status_code == 201:
            self.logs[branch] = [one for one in self.logs[session] if one[0] <= at_seq]

    async def erase(self, person: Person, session: str) -> None:
        answer = await self._session("DELETE", "", person, session)
        assert answer.status_code == 200, answer.text
        del self.logs[session]
        if session == person.sessions[0]:
            await self.open(person, session)

    async def close(self, person: Person, session: str) -> None:
        await self._session("POST", "/close", person, session)

    async def listen(self, person: Person, session: str) -> None:
        """What stands already is told at once; then the stream would go on for ever."""
        path = f"/v1/sessions/{session}/events"
        async with self._client.stream("GET", path, headers=self._headers) as answer:
            self._figures.answers["GET /sessions/{session}/events", answer.status_code] += 1
            async for piece in answer.aiter_raw():
                assert not people_in(piece), f"events of {self.tenant} have words: {piece!r}"
                break

    # Contexts

    async def read_context(self, person: Person, session: str) -> None:
        await self._session(
            "GET", "/context", person, session, params={"format": self._random.choice(["anthropic", "openai"])}
        )

    async def recall(self, person: Person, session: str) -> None:
        params = {"query": self._query(person), "budget_tokens": self._random.choice([300, 600, 1_400])}
        await self._session("GET", "/context", person, session, params=params)

    async def read_records(self, person: Person, session: str) -> None:
        await self._session("GET", "/contexts", person, session, params={"limit": 10})

    # Search

    async def search_everything(self, person: Person, session: str) -> None:
        await self.ask("POST", "/search", None, json={"query": self._query(person), "limit": 50})

    async def search_one_kind(self, person: Person, session: str) -> None:
        body = {"query": self._query(person), "limit": 30, "kinds": [self._random.choice(_KINDS)], "user": person.name}
        await self.ask("POST", "/search", person, json=body)

    async def search_one_session(self, person: Person, session: str) -> None:
        await self.ask("POST", "/search", person, json={"query": self._query(person), "session": session})

    async def read_usage(self, person: Person, session: str) -> None:
        await self.ask("GET", "/usage", None)

    # Pinned state

    async def write_state(self, person: Person, session: str) -> None:
        number = self._number()
        state = {
            "goal": f"Bring order {number} to {person.canary}",
            "constraints": [f"{person.canary} pays at most {number}"],
        }
        await self._session("PUT", "/state", person, session, json=state)

    async def change_state(self, person: Person, session: str) -> None:
        patch = {"entities": {f"order {self._number()}": person.canary}, "goal": None}
        await self._session("PATCH", "/state", person, session, json=patch)

    async def read_state(self, person: Person, session: str) -> None:
        answer = await self._session("GET", "/state", person, session)
        proposals = answer.json().get("proposals") if answer.status_code == 200 else None
        if proposals:
            one = self._random.choice(proposals)["id"]
            method = self._random.choice(["PUT", "DELETE"])
            await self._session(method, "/state/proposals/{proposal}", person, session, proposal=one)

    # What is known of users

    async def keep_a_fact(self, person: Person) -> None:
        fact = {"subject": "user", "relation": f"keeps_{self._number()}", "object": person.canary}
        answer = await self._user("POST", "/facts", person, json=fact)
        if answer.status_code < 300:
            self.kept_facts[person] = answer.json()["id"]
            self._figures.fact_ids[answer.json()["id"]] = person

    async def read_facts(self, person: Person, session: str) -> None:
        params = {"history": "true"} if self._random.random() < 0.3 else {}
        answer = await self._user("GET", "/facts", person, params=params)
        if answer.status_code == 200:
            ids = {fact["id"] for fact in answer.json()["facts"]}
            self._figures.fact_ids.update(dict.fromkeys(ids, person))
            assert self.kept_facts[person] in ids, f"{person} has lost a fact to somebody"

    async def add_fact(self, person: Person, session: str) -> None:
        number = self._number()
        fact = {
            "subject": "user",
            "relation": "works_at",
            "object": f"{person.canary} works {number}",
            "category": "work",
        }
        await self._user("POST", "/facts", person, json=fact)

    async def touch_anothers_fact(self, person: Person, session: str) -> None:
        """By its id, under a user of the same name."""
        if not (theirs := [(fact, who) for fact, who in self._figures.fact_ids.items() if who.tenant != self.tenant]):
            return
        fact, who = self._random.choice(sorted(theirs))
        mine = self.people[who.number]
        if self.kept_facts.get(mine) == fact:
            return
        change = {"subject": "user", "relation": "is", "object": mine.canary}
        given = {"json": change} if self._random.random() < 0.5 else {}
        await self._user("PUT" if given else "DELETE", "/facts/{fact}", mine, fact=fact, **given)

    async def read_graph(self, person: Person, session: str) -> None:
        """The whole of it, or what is around a name: one's own, or another's."""
        around = self._random.choice([None, person, self._random.choice(self._others)])
        params = {} if around is None else {"entity": around.canary, "hops": 2}
        await self._user("GET", "/graph", person, params=params)

    async def erase_user(self, person: Person, session: str) -> None:
        answer = await self._user("DELETE", "", person)
        if answer.status_code == PLANNED:
            return
        assert answer.status_code == 200, answer.text
        self.logs = {name: log for name, log in self.logs.items() if owner_of_session(self.tenant, name) != person}
        await self.open(person, person.sessions[0])
        await self.keep_a_fact(person)

    # At the door

    async def come_without_a_key(self, person: Person, session: str) -> None:
        answer = await self._client.get(f"/v1/sessions/{session}/context", headers={"authorization": "Bearer guessed"})
        assert (answer.status_code, people_in(answer.content)) == (401, set())

    async def _session(
        self, method: str, route: str, person: Person, session: str, turn: str = "", proposal: str = "", **given: Any
    ) -> httpx.Response:
        path = {"session": session, "turn": turn, "proposal": proposal}
        return await self.ask(method, f"/sessions/{{session}}{route}", person, path=path, **given)

    async def _user(self, method: str, route: str, person: Person, fact: str = "", **given: Any) -> httpx.Response:
        return await self.ask(
            method, f"/users/{{user}}{route}", person, path={"user": person.name, "fact": fact}, **given
        )

    def _turn(self, person: Person, role: str) -> Json:
        words = self._random.choice(_SPEECH) if role == "user" else _ANSWER
        number = self._number()
        return {
            "id": f"t{number}-plain-{role}",
            "role": role,
            "content": words.format(who=person.canary, number=number),
            "name": person.canary if role == "user" else "Clerk",
            "metadata": {"of": person.canary},
        }

    def _tool_round(self, person: Person) -> list[Json]:
        number = self._number()
        call = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {"who": person.canary}}
        found = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"row {number}: {person.canary}"}
        return [
            {"id": f"t{number}-call", "role": "assistant", "content": [call]},
            {"id": f"t{number}-result", "role": "user", "content": [found]},
        ]

    def _query(self, person: Person) -> str:
        """Asks for the words of others, too, as whoever wants to get at them would."""
        others = " ".join(one.canary for one in self._random.sample(self._others, 2))
        return f"Where do {person.canary} and {others} live, and what is in order {self._numbers}?"

    def _number(self) -> int:
        """The same ones at every tenant."""
        self._numbers += 1
        return self._numbers


Operation = Callable[[Walk, Person, str], Awaitable[None]]
_OPERATIONS: list[tuple[Operation, int]] = [
    (Walk.append, 26), (Walk.recall, 9), (Walk.read_context, 5), (Walk.read_records, 4), (Walk.read_log, 6),
    (Walk.read_session, 3), (Walk.search_everything, 6), (Walk.search_one_kind, 6), (Walk.search_one_session, 4),
    (Walk.read_state, 4), (Walk.write_state, 3), (Walk.change_state, 3), (Walk.read_facts, 5), (Walk.add_fact, 3),
    (Walk.touch_anothers_fact, 3), (Walk.read_graph, 3), (Walk.close, 3), (Walk.edit, 3), (Walk.remove, 2),
    (Walk.open_another, 2), (Walk.rewind, 2), (Walk.fork, 2), (Walk.erase, 1), (Walk.erase_user, 1), (Walk.read_usage, 1),
    (Walk.come_without_a_key, 1), (Walk.listen, 1),
]  # fmt: skip
"""With how often each is taken."""
