"""Qdrant's envelope around every answer."""

from http import HTTPStatus

import orjson
import structlog
from starlette.responses import Response
from starlette.types import Send

from prefold.vectorstore.rejections import RejectedError

log = structlog.get_logger()


def json_response(content: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Any JSON."""
    return Response(orjson.dumps(content), status, media_type="application/json")


def result_response(result: object, seconds: float) -> Response:
    """A call that was done."""
    return Response(result_body(result, seconds), media_type="application/json")


def error_response(rejection: RejectedError, seconds: float = 0.0) -> Response:
    """A call that was refused."""
    return Response(error_body(rejection, seconds), rejection.status, media_type="application/json")


def result_body(result: object, seconds: float) -> bytes:
    """What ``result_response`` says."""
    return orjson.dumps({"result": result, "status": "ok", "time": seconds})


def error_body(rejection: RejectedError, seconds: float) -> bytes:
    """What ``error_response`` says."""
    return orjson.dumps({"status": {"error": rejection.message}, "time": seconds})


def refusal_of(error: Exception, path: str) -> RejectedError:
    """What a failed call is answered with. qdrant-edge raises bare Exceptions: one call's must not end the others."""
    if isinstance(error, RejectedError):
        return error
    log.error("call_failed", path=path, exc_info=error)
    return RejectedError(HTTPStatus.INTERNAL_SERVER_ERROR, f"Service internal error: {error}")


async def send_json(send: Send, status: HTTPStatus, body: bytes) -> None:
    """The whole answer, without a framework's help."""
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
