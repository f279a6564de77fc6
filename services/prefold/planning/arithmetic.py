"""From the load and the unit costs to machines: one function a part, each line said with its operands."""

import math

from prefold.planning.sheet import Sheet, told
from prefold.planning.unit_costs import Measured
from prefold.planning.workload import Workload
from prefold.pricing import BilledTokens, Price
from prefold.storage.keys import PARTITIONS
from prefold.storage.limits import SOFT_RATIO_BOUNDS

__all__ = ["planned"]

_DAY_SECONDS = 86_400
_GB = 1e9


def planned(load: Workload, measured: Measured, price: Price | None) -> Sheet:
    """All lines. ``price``: of the model that writes the summaries; None: they are written offline."""
    sheet = Sheet()
    _rates(sheet, load, measured)
    _sessions_store(sheet, load, measured)
    _queue(sheet, load, measured)
    _gateways(sheet, load, measured)
    _background(sheet, load, measured)
    _model(sheet, load, measured, price)
    _vectors(sheet, load, measured)
    _network(sheet, load, measured)
    return sheet


def _rates(sheet: Sheet, load: Workload, measured: Measured) -> None:
    costs = measured.costs
    sheet.begin("load")
    turns = sheet.note("turns", load.turns_per_second, "/s", "as given")
    reads = sheet.note("reads", turns * load.reads_per_turn, "/s", f"{told(turns)} × {load.reads_per_turn:g} a turn")
    sheet.note("searches", reads * load.search_share, "/s", f"{told(reads)} reads × {load.search_share:g}")
    sheet.note("embedded", turns * load.embed_share, "/s", f"{told(turns)} turns × {load.embed_share:g}")
    sheet.note(
        "sessions ended", turns / load.turns_per_session, "/s", f"{told(turns)} turns / {told(load.turns_per_session)}"
    )
    ended = sheet.value("load", "sessions ended") / load.peak_to_mean
    sheet.note(
        "days that a session is kept",
        load.sessions / ended / _DAY_SECONDS,
        "days",
        f"{told(load.sessions)} sessions / ({told(ended * load.peak_to_mean)}/s / {load.peak_to_mean:g}, the mean)",
    )
    tokens = sheet.note(
        "tokens a session",
        load.turns_per_session * load.turn_bytes / costs.bytes_per_token,
        "tokens",
        f"{told(load.turns_per_session)} turns × {told(load.turn_bytes)} B / {costs.bytes_per_token:.3g} B a token",
    )
    swaps = _swaps(load, measured, tokens)
    freed = 1 - costs.after_swap_share
    sheet.note(
        "swaps a session",
        swaps,
        "",
        "its tokens stay below the limit"
        if not swaps
        else f"1 + ({told(tokens)} - {told(load.limit_tokens)}) / ({told(load.limit_tokens)} × {freed:.3g} freed)",
    )
    builds = max(swaps * costs.builds_per_swap, float(tokens > SOFT_RATIO_BOUNDS[1] * load.limit_tokens))
    sheet.note(
        "builds a session",
        builds,
        "",
        f"{told(swaps)} swaps × {costs.builds_per_swap:.3g} (refreshed), 1 past the soft threshold, else 0",
    )
    ended = sheet.value("load", "sessions ended")
    sheet.note("builds", ended * builds, "/s", f"{told(ended)} sessions × {told(builds)}")


def _swaps(load: Workload, measured: Measured, tokens: float) -> float:
    if tokens <= load.limit_tokens:
        return 0.0
    return 1 + (tokens - load.limit_tokens) / (load.limit_tokens * (1 - measured.costs.after_swap_share))


def _cores(sheet: Sheet, name: str, rate: str, us: float) -> float:
    """A line of CPU: the rate of the load by its name, times a unit cost."""
    per_second = sheet.value("load", rate)
    return sheet.note(name, per_second * us / 1e6, "cores", f"{told(per_second)} {rate}/s × {us:.4g} us")


def _whole(sheet: Sheet, name: str, cores: float, busy: float, unit: str = "") -> float:
    """How many processes of one core each, one at least."""
    return sheet.note(name, max(1, math.ceil(cores / busy)), unit, f"{told(cores)} cores / {busy:g} busy, rounded up")


def _sessions_store(sheet: Sheet, load: Workload, measured: Measured) -> None:
    costs = measured.costs
    sheet.begin("session store")
    text = sheet.note(
        "text a session",
        load.turns_per_session * load.turn_bytes,
        "B",
        f"{told(load.turns_per_session)} turns × {told(load.turn_bytes)} B",
    )
    minutes_spoken = 30
    speaking = min(load.sessions, load.turns_per_second / load.turns_per_session * 60 * minutes_spoken)
    speaking = sheet.note(
        "sessions with turns lately",
        max(speaking, min(load.sessions, load.turns_per_second)),
        "",
        f"ended/s × {minutes_spoken} min until they close; at least one a turn/s, at most all",
    )
    in_context = sheet.note(
        "text in a context",
        min(text, load.limit_tokens * costs.bytes_per_token),
        "B",
        f"all of it, at most {told(load.limit_tokens)} tokens × {costs.bytes_per_token:.3g} B",
    )
    copies = sheet.note(
        "contexts a session",
        2.0 if sheet.value("load", "builds a session") else 1.0,
        "",
        "one, and a standby as large where summaries are built",
    )
    log = sheet.note("log", text * costs.log_times_text, "B", f"{told(text)} B × {costs.log_times_text:.3g}")
    contexts = speaking * costs.context_times_spoken + (load.sessions - speaking) * costs.context_times_rest
    memory = sheet.note(
        "memory",
        (load.sessions * log + contexts * in_context * copies) / _GB,
        "GB",
        f"{told(load.sessions)} × {told(log)} B + ({told(speaking)} × {costs.context_times_spoken:.3g} + "
        f"{told(load.sessions - speaking)} × {costs.context_times_rest:.3g}) × {told(in_context)} B × {copies:g}",
    )
    by_memory = sheet.note(
        "shards by memory",
        math.ceil(memory / (load.shard_gb * load.busy_share)),
        "",
        f"{told(memory)} GB / ({load.shard_gb:g} GB × {load.busy_share:g}), rounded up",
    )
    cores = _cores(sheet, "CPU of turns", "turns", costs.redis_turn_us)
    cores += _cores(sheet, "CPU of reads", "reads", costs.redis_read_us)
    by_cpu = _whole(sheet, "shards by CPU", cores, load.busy_share)
    shards = sheet.note("shards", max(by_memory, by_cpu, 1), "", f"the larger of {told(by_memory)} and {told(by_cpu)}")
    sheet.note(
        "servers", shards * (1 + load.replicas), "", f"{told(shards)} × (1 primary + {load.replicas:g} replicas)"
    )
    if shards > PARTITIONS:
        sheet.note(
            "shards beyond the partitions",
            shards - PARTITIONS,
            "",
            f"a store has {PARTITIONS} partitions: take larger servers, or {math.ceil(shards / PARTITIONS)} stores",
        )


def _queue(sheet: Sheet, load: Workload, measured: Measured) -> None:
    sheet.begin("queue store")
    cores = _cores(sheet, "CPU of turns", "turns", measured.costs.queue_turn_us)
    needed = sheet.note(
        "servers", max(1, math.ceil(cores / load.busy_share)), "", f"{told(cores)} cores / {load.busy_share:g}"
    )
    if needed > 1:
        sheet.note(
            "stacks", needed, "", "a queue is one server: raise the embed batch, or divide the tenants among stacks"
        )


def _gateways(sheet: Sheet, load: Workload, measured: Measured) -> None:
    costs = measured.costs
    sheet.begin("gateways")
    cores = _cores(sheet, "CPU of appends", "turns", costs.gateway_append_us)
    cores += _cores(sheet, "CPU of reads", "reads", costs.gateway_read_us)
    cores += _cores(sheet, "CPU of searches", "searches", costs.gateway_search_us)
    count = _whole(sheet, "processes", cores, load.busy_share)
    sheet.note("memory", count * costs.gateway_mb / 1000, "GB", f"{told(count)} × {told(costs.gateway_mb)} MB")


def _background(sheet: Sheet, load: Workload, measured: Measured) -> None:
    costs = measured.costs
    sheet.begin("dispatchers")
    cores = _cores(sheet, "CPU", "turns", costs.dispatcher_turn_us)
    count = _whole(sheet, "processes", cores, load.busy_share)
    sheet.note("memory", count * costs.dispatcher_mb / 1000, "GB", f"{told(count)} × {told(costs.dispatcher_mb)} MB")
    sheet.begin("embed workers")
    cores = _cores(sheet, "CPU", "embedded", costs.embed_turn_us)
    count = _whole(sheet, "processes", cores, load.busy_share)
    sheet.note(
        "memory", count * costs.worker_embed_mb / 1000, "GB", f"{told(count)} × {told(costs.worker_embed_mb)} MB"
    )
    sheet.begin("memory workers")
    cores = _cores(sheet, "CPU", "turns", costs.memory_turn_us)
    count = _whole(sheet, "processes", cores, load.busy_share)
    sheet.note(
        "memory", count * costs.worker_memory_mb / 1000, "GB", f"{told(count)} × {told(costs.worker_memory_mb)} MB"
    )


def _model(sheet: Sheet, load: Workload, measured: Measured, price: Price | None) -> None:
    costs = measured.costs
    sheet.begin("compact workers")
    builds = sheet.value("load", "builds")
    cores = sheet.note(
        "CPU",
        builds * costs.compact_build_us / 1e6,
        "cores",
        f"{told(builds)} builds/s × {costs.compact_build_us:.4g} us",
    )
    by_cpu = _whole(sheet, "processes by CPU", cores, load.busy_share)
    calls = sheet.note(
        "model calls in flight",
        builds * load.model_seconds if price else 0.0,
        "",
        f"{told(builds)} builds/s × {load.model_seconds:g} s" if price else "summaries are written offline",
    )
    by_calls = sheet.note(
        "processes by calls",
        math.ceil(calls / load.builds_at_once),
        "",
        f"{told(calls)} / {load.builds_at_once:g} at once, rounded up",
    )
    count = sheet.note("processes", max(by_cpu, by_calls), "", f"the larger of {told(by_cpu)} and {told(by_calls)}")
    sheet.note(
        "memory", count * costs.worker_compact_mb / 1000, "GB", f"{told(count)} × {told(costs.worker_compact_mb)} MB"
    )
    if price is not None:
        _cost(sheet, load, measured, price)


def _cost(sheet: Sheet, load: Workload, measured: Measured, price: Price) -> None:
    sheet.begin("model")
    builds = sheet.value("load", "builds") / load.peak_to_mean * _DAY_SECONDS
    builds = sheet.note(
        "builds a day",
        builds,
        "",
        f"{told(sheet.value('load', 'builds'))}/s / {load.peak_to_mean:g} × {told(_DAY_SECONDS)} s",
    )
    if not builds:
        sheet.note("cost a day", 0.0, "USD", "nothing is built")
        return
    tokens, each = sheet.value("load", "tokens a session"), sheet.value("load", "builds a session")
    read = sheet.note(
        "tokens read a build",
        tokens * measured.costs.read_share / each,
        "tokens",
        f"{told(tokens)} tokens × {measured.costs.read_share:.3g} / {told(each)} builds",
    )
    call = BilledTokens(input_tokens=round(read), output_tokens=round(load.summary_tokens))
    usd = sheet.note(
        "a build",
        price.cost(call) / 1e6,
        "USD",
        f"{told(read)} in × {price.rates_for(round(read)).input:g} + {told(load.summary_tokens)} out × "
        f"{price.rates_for(round(read)).output:g}, USD a million tokens ({price.model})",
    )
    sheet.note("cost a day", builds * usd, "USD", f"{told(builds)} builds × {usd:.4g} USD")


def _vectors(sheet: Sheet, load: Workload, measured: Measured) -> None:
    costs = measured.costs
    sheet.begin("vectors")
    points = sheet.note(
        "points",
        load.sessions * load.turns_per_session * load.embed_share,
        "",
        f"{told(load.sessions)} sessions × {told(load.turns_per_session)} turns × {load.embed_share:g}",
    )
    copies = 1 + load.replicas
    disk = costs.vector_disk_bytes
    sheet.note("disk", points * disk * copies / _GB, "GB", f"{told(points)} × {told(disk)} B × {copies:g} copies")
    memory = sheet.note(
        "memory",
        points * costs.vector_memory_bytes * copies / _GB,
        "GB",
        f"{told(points)} × {told(costs.vector_memory_bytes)} B × {copies:g} copies",
    )
    by_memory = sheet.note(
        "nodes by memory",
        math.ceil(memory / (load.vector_node_gb * load.busy_share)),
        "",
        f"{told(memory)} GB / ({load.vector_node_gb:g} GB × {load.busy_share:g}), rounded up",
    )
    cores = _cores(sheet, "CPU of upserts", "embedded", costs.vectors_turn_us * copies)
    cores += _cores(sheet, "CPU of searches", "searches", costs.vectors_search_us)
    sheet.note("cores", math.ceil(cores / load.busy_share), "", f"{told(cores)} / {load.busy_share:g} busy, rounded up")
    sheet.note("nodes", max(by_memory, 1), "", "by memory; see that they have the cores")


def _network(sheet: Sheet, load: Workload, measured: Measured) -> None:
    costs, turns, reads = measured.costs, sheet.value("load", "turns"), sheet.value("load", "reads")
    sheet.begin("network")
    scale = load.turn_bytes / measured.turn_bytes
    body = max(0.0, costs.http_append_bytes - measured.turn_bytes) + load.turn_bytes
    sheet.note("into gateways", turns * body / 1e6, "MB/s", f"{told(turns)} turns/s × {told(body)} B")
    window = min(load.turns_per_session * load.turn_bytes, load.limit_tokens * costs.bytes_per_token)
    context = costs.http_read_bytes / costs.read_text_bytes * window
    sheet.note(
        "out of gateways",
        reads * context / 1e6,
        "MB/s",
        f"{told(reads)} reads/s × {told(context)} B, a whole context at the end of its session",
    )
    received = costs.redis_turn_received_bytes * scale
    sheet.note("into the session store", turns * received / 1e6, "MB/s", f"{told(turns)} turns/s × {told(received)} B")
    sheet.note(
        "out of the session store",
        (turns * costs.redis_turn_sent_bytes * scale + reads * costs.redis_read_sent_bytes) / 1e6,
        "MB/s",
        f"{told(turns)} turns/s × {told(costs.redis_turn_sent_bytes * scale)} B + "
        f"{told(reads)} reads/s × {told(costs.redis_read_sent_bytes)} B",
    )
    sheet.note(
        "replication",
        turns * received * load.replicas / 1e6,
        "MB/s",
        f"{told(turns)} × {told(received)} B × {load.replicas:g}",
    )
