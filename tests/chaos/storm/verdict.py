"""The last look, when the storm is over and nothing is owed any more: every store against the oracle."""

from collections import Counter
from collections.abc import Mapping, Sequence

import httpx

from prefold.client import Prefold
from prefold.client.results import JsonObject
from prefold.recall.names import COLLECTION_PREFIX, turn_point_id
from prefold.replay.log_check import read_log
from tests.chaos.storm.memory import Points, Refs, to_be_found
from tests.chaos.storm.oracle import Faults, Talk
from tests.chaos.storm.reading import FORMATS, ContextCheck, Moment
from tests.chaos.storm.town import Town
from tests.support.quiet import opened_stores

_LAST_WORDS = "That was all for today, thank you, and until the next time. " * 20


class Verdict:
    """Compares; every difference becomes a fault."""

    def __init__(self, town: Town, check: ContextCheck, faults: Faults) -> None:
        self._town = town
        self._check = check
        self._faults = faults
        self.totals: Counter[str] = Counter()

    def on_sessions(self, talks: Sequence[Talk]) -> None:
        """Logs, states and contexts. Then each session gets one more turn, which swaps many a standby in, and ends."""
        for talk in talks:
            key = self._town.keys[talk.tenant_name]
            with Prefold(self._town.gateways[0], api_key=key) as client:
                self._state(talk, key)
                self._contexts(talk, client)
                self._last_words(talk, client)
                self._contexts(talk, client)
                self._log(talk, read_log(client, talk.name))
            self._close(talk, key)

    def on_turn_vectors(self, refs: Refs, points: Points) -> None:
        """Exactly those turns of the present lives that recall is to find."""
        expected: dict[str, tuple[Talk, int]] = {}
        for talk, ref in refs:
            for seq in to_be_found(talk.turns):
                expected[turn_point_id(ref, seq, 0)] = (talk, seq)
            self.totals["turns"] += len(talk.turns)
        self.totals["turns that are not embedded"] = self.totals.pop("turns") - len(expected)
        self._vectors(expected, points)

    def stored_points(self) -> Points:
        """Of every collection."""
        with opened_stores(self._town.redis_url, self._town.queue_url, *self._town.qdrant) as stores:
            return stores.points()

    def _contexts(self, talk: Talk, client: Prefold) -> None:
        for form in FORMATS:
            context = client.context(talk.name, format=form)
            self._check.look(context, talk, Moment.of(talk), talk.hard_limit_tokens)

    def _last_words(self, talk: Talk, client: Prefold) -> None:
        seq = len(talk.turns) + 1
        turn_id = f"t{talk.tenant}.s{talk.number}.{talk.life}.{seq}"
        turn = {"id": turn_id, "role": "user", "content": f"({turn_id}) " + _LAST_WORDS}
        talk.sent = seq
        (placed,) = client.append_many(talk.name, [turn]).turns
        if placed.seq != seq:
            self._faults.tell("the last turn got another place:", talk, str(placed), seq)
        talk.acknowledged([turn])

    def _close(self, talk: Talk, key: str) -> None:
        address = f"{self._town.gateways[1]}/v1/sessions/{talk.name}/close"
        headers = {"Authorization": f"Bearer {key}"}
        httpx.post(address, json={}, headers=headers, timeout=10).raise_for_status()

    def _log(self, talk: Talk, log: Sequence[JsonObject]) -> None:
        """Acknowledged turns once each, in order, verbatim, and nothing else."""
        ids = Counter(turn["id"] for turn in log)
        for seq, turn in enumerate(talk.turns, 1):
            if not ids[turn["id"]]:
                self._faults.tell("an acknowledged turn is lost:", talk, turn["id"], seq)
        for turn_id, count in ids.items():
            if count > 1:
                self._faults.tell("a turn is doubled:", talk, f"{turn_id} stands {count} times")
        expected = [{"seq": seq, **turn} for seq, turn in enumerate(talk.turns, 1)]
        for wanted, found in zip(expected, log, strict=False):
            if wanted != found:
                self._faults.tell("the log differs:", talk, f"{found} instead of {wanted}", wanted["seq"])
                break
        if len(log) != len(expected):
            self._faults.tell("the log has another length:", talk, f"{len(log)}, not {len(expected)}")
        self.totals["turns in the logs, one more each than before, without the erased"] += len(log)

    def _state(self, talk: Talk, key: str) -> None:
        """Above the soft threshold there is a standby, or a reason why not."""
        address = f"{self._town.gateways[1]}/v1/sessions/{talk.name}"
        state = httpx.get(address, headers={"Authorization": f"Bearer {key}"}, timeout=10).raise_for_status().json()
        self.totals["swaps"] += state["swaps"]
        self.totals["degraded at the end"] += state["degraded"]
        self.totals["limit crossings"] += state["limit_crossings"]
        self.totals["of them with a standby ready"] += state["ready_crossings"]
        if state["tokens"]["total"] < state["limits"]["soft_threshold_tokens"]:
            return
        self.totals["above the soft threshold"] += 1
        if state["standby"] is not None:
            self.totals["with a standby"] += 1
        elif state["last_build_error"]:
            self.totals[f"with a reason: {state['last_build_error'].split(',')[0]}"] += 1
        else:
            self._faults.tell("above the soft threshold without a standby or a reason:", talk, str(state)[:1000])

    def _vectors(self, expected: Mapping[str, tuple[Talk, int]], points: Points) -> None:
        turns = {name: one for name, one in points.items() if one["collection"].startswith(COLLECTION_PREFIX)}
        found = {point_id: point["payload"] for point_id, point in turns.items()}
        self.totals["vectors of turns"] = len(found)
        for point_id, (talk, seq) in expected.items():
            payload = found.pop(point_id, None)
            if payload is None:
                self._faults.tell("a turn has no vector", talk, "", seq)
            elif (payload["tenant"], payload["session"], payload["seq"]) != (talk.tenant_name, talk.name, seq):
                self._faults.tell("a vector speaks of another turn:", talk, str(payload), seq)
        for payload in found.values():
            self._faults.tell("a vector of no turn that is to be found:", None, str({**payload, "bag": "…"}))
