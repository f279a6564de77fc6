"""The fake by hand: ``python -m tests.support.messages_api --port 8090 --brain faithful --latency-median 3``."""

import argparse
import logging

from tests.support.messages_api.api import MessagesApi
from tests.support.messages_api.brains import BRAINS
from tests.support.messages_api.brains.llama import llama
from tests.support.messages_api.latency import Latency
from tests.support.messages_api.limits import Limits
from tests.support.messages_api.serving import listening, server_of


def main(argv: list[str] | None = None) -> None:
    """Serves on this machine until it is stopped; says where on its first line."""
    given = _parser().parse_args(argv)
    api = _api(given)
    logging.basicConfig(level=logging.WARNING)
    listener = listening(given.port)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)  # noqa: T201 (whoever starts it reads this)
    server_of(api).run([listener])


def _api(given: argparse.Namespace) -> MessagesApi:
    latency = Latency(
        given.latency_median or given.latency,
        given.latency_p95,
        given.base,
        given.input_ms,
        given.output_ms,
        given.seed,
    )
    api = MessagesApi(
        brain=llama(given.brain_url, given.brain_key) if given.brain == "llama" else given.brain,
        keys=given.key or None,
        latency=latency,
        limits=Limits(given.rpm, given.itpm, given.otpm),
        seed=given.seed,
        keep=given.keep,
    )
    if given.fail_share:
        api.faults.fail_share(given.fail_share, seed=given.seed)
    return api


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.support.messages_api", description=__doc__)
    parser.add_argument("--port", type=int, default=8090, help="0: any that is free")
    parser.add_argument("--brain", choices=sorted([*BRAINS, "llama"]), default="faithful")
    parser.add_argument("--brain-url", help="of the brain llama: an OpenAI-compatible server, without /v1")
    parser.add_argument("--brain-key", default="sk-local")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds, each time the same")
    parser.add_argument("--latency-median", type=float, default=0.0, help="seconds, log-normal")
    parser.add_argument("--latency-p95", type=float, default=0.0)
    parser.add_argument("--base", type=float, default=0.0, help="seconds for each call")
    parser.add_argument("--input-ms", type=float, default=0.0, help="for each token that is not read from the cache")
    parser.add_argument("--output-ms", type=float, default=0.0, help="for each token generated")
    parser.add_argument("--fail-share", type=float, default=0.0, help="of the calls, drawn with the seed")
    parser.add_argument("--rpm", type=int, help="requests a minute")
    parser.add_argument("--itpm", type=int, help="input tokens a minute")
    parser.add_argument("--otpm", type=int, help="output tokens a minute")
    parser.add_argument("--key", action="append", help="the keys that are accepted; any, if none is named")
    parser.add_argument("--keep", type=int, default=200, help="requests that the journal keeps whole")
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    main()
