"""``prefold up``: everything on this machine, until Ctrl-C."""

from collections.abc import Sequence
from datetime import timedelta

from prefold.config.flags import load_settings, redacted_url
from prefold.config.lifecycle import stop_flag
from prefold.stack.checking import check_parts
from prefold.stack.embedded import EmbeddedStack
from prefold.stack.settings import StackSettings

_STOPS_WITHIN = timedelta(seconds=8)
"""Longer than the supervisor grants its children; were it to hang, the kernel ends them with us."""


def main(argv: Sequence[str]) -> int:
    """Run the stack until SIGINT or SIGTERM. Errors of settings and start are the caller's to print."""
    settings = load_settings(
        StackSettings,
        argv,
        prog="prefold up",
        description="Starts everything on this machine, and keeps it running.",
        check=check_parts,
    )
    with stop_flag(_STOPS_WITHIN) as stop:
        stack = EmbeddedStack(settings)
        print("Prefold is starting …", flush=True)
        try:
            if stack.start(interrupted=stop):
                print(banner(stack), flush=True)
                stop.wait()
                print("stopping …", flush=True)
        finally:
            stack.stop()
    return 0


def banner(stack: EmbeddedStack) -> str:
    """What a person wants to know once all is ready."""
    settings = stack.settings
    access = "keys: tenants by key" if settings.api_keys_file else 'no keys: this machine only, tenant "default"'
    rows = [
        ("API", f"{stack.gateway_url}   ({access})"),
        ("data", f"{stack.folder.path}   ({settings.durability})"),
        ("logs", str(stack.folder.logs)),
        *(
            (name, f"{redacted_url(url)}   (external)")
            for name, url in (
                ("redis", settings.redis_url),
                ("queue", settings.queue_url),
                ("qdrant", settings.qdrant_url),
            )
            if url
        ),
    ]
    return "\n".join(["Prefold is ready. Ctrl-C stops it.", *(f"  {name:<7}{value}" for name, value in rows)])
