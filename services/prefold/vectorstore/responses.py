"""Qdrant's envelope around every answer."""

from http import HTTPStatus

import orjson
from starlette.responses import Response

from prefold.vectorstore.rejections import RejectedError


def json_response(content: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Any JSON."""
    return Response(orjson.dumps(content), status, media_type="application/json")


def result_response(result: object, seconds: float) -> Response:
    """A call that was done."""
    return json_response({"result": result, "status": "ok", "time": seconds})


def error_response(rejection: RejectedError, seconds: float = 0.0) -> Response:
    """A call that was refused."""
    return json_response({"status": {"error": rejection.message}, "time": seconds}, rejection.status)
