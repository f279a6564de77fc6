"""``python -m bench.floor``: the least that a server in Python does, as the gateway's floor.

The same server with the same protocol and settings and a bare ASGI application: a POST reads its body and answers some bytes, a
GET answers ``?bytes=N`` bytes. It tells its address as JSON on standard error, as the gateway does.
"""

import asyncio
import json
import sys
from typing import Any

from prefold.config.lifecycle import run_async
from prefold.gateway.wire import BoundedHttpProtocol
from prefold.serving import answer, listening, url_of

Scope = dict[str, Any]

_SAID = b'{"turns":[{"id":"%s","seq":1234,"tokens":363,"duplicate":false}],"context":{}}' % (b"x" * 160)
"""As long as the answer to an append."""


async def floor(scope: Scope, receive: Any, send: Any) -> None:
    """The application."""
    if scope["method"] == "POST":
        more = True
        while more:
            more = (await receive()).get("more_body", False)
        status, body = 201, _SAID
    else:
        status, body = 200, b"x" * int(scope["query_string"].partition(b"=")[2] or 1)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _serve(stop: asyncio.Event) -> None:
    with listening("127.0.0.1", 0) as listener:
        sys.stderr.write(json.dumps({"url": url_of(listener)}) + "\n")
        sys.stderr.flush()
        await answer(floor, listener, stop, http=BoundedHttpProtocol)


if __name__ == "__main__":
    sys.exit(run_async(_serve))
