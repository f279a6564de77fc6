"""What can be called next with what an answer names: the links of ``/openapi.json``."""

from collections.abc import Mapping
from typing import Any, Final

from prefold.gateway.operations import Operation

__all__ = ["links_of", "operation_id"]

_SESSION: Final = "/v1/sessions/{session}"
_TURN: Final = f"{_SESSION}/turns/{{turn}}"
_USER: Final = "/v1/users/{user}"
_FACT: Final = f"{_USER}/facts/{{fact}}"
_OF_SESSION: Final = {"session": "$request.path.session"}
_OF_TURN: Final = {**_OF_SESSION, "turn": "$response.body#/turns/0/id"}
_OF_USER: Final = {"user": "$request.path.user"}
_OF_FACT: Final = {**_OF_USER, "fact": "$response.body#/id"}

_ABOUT_A_SESSION: Final = (
    ("GET", _SESSION),
    ("DELETE", _SESSION),
    ("GET", f"{_SESSION}/turns"),
    ("POST", f"{_SESSION}/turns"),
    ("GET", f"{_SESSION}/context"),
    ("GET", f"{_SESSION}/contexts"),
    ("POST", f"{_SESSION}/rewind"),
    ("POST", f"{_SESSION}/fork"),
    ("POST", f"{_SESSION}/close"),
    ("GET", f"{_SESSION}/state"),
    ("PUT", f"{_SESSION}/state"),
    ("PATCH", f"{_SESSION}/state"),
)
_ABOUT_A_USER: Final = (
    ("GET", f"{_USER}/facts"),
    ("POST", f"{_USER}/facts"),
    ("GET", f"{_USER}/graph"),
    ("DELETE", _USER),
)

_Next = tuple[tuple[tuple[str, str], Mapping[str, str]], ...]
_TO_SESSION: Final[_Next] = tuple((call, _OF_SESSION) for call in _ABOUT_A_SESSION)
_TO_TURN: Final[_Next] = ((("PUT", _TURN), _OF_TURN), (("DELETE", _TURN), _OF_TURN))
_TO_USER: Final[_Next] = tuple((call, _OF_USER) for call in _ABOUT_A_USER)
_TO_FACT: Final[_Next] = ((("PUT", _FACT), _OF_FACT), (("DELETE", _FACT), _OF_FACT))

_LINKS: Final[Mapping[tuple[str, str, int], _Next]] = {
    ("PUT", _SESSION, 200): _TO_SESSION,
    ("POST", f"{_SESSION}/turns", 201): (*_TO_SESSION, *_TO_TURN),
    ("PUT", f"{_SESSION}/state", 200): _TO_SESSION,
    ("POST", f"{_USER}/facts", 201): (*_TO_USER, *_TO_FACT),
    ("PUT", _FACT, 200): _TO_FACT,
}


def operation_id(method: str, path: str) -> str:
    """The name of a call in the document: its method and the words of its path."""
    words = path.removeprefix("/v1").replace("{", "").replace("}", "").replace(".", "/").split("/")
    return "_".join([method.lower(), *(word for word in words if word)])


def links_of(operation: Operation, status: int) -> dict[str, Any]:
    """The links of one answer, by the name of the call that they lead to."""
    found = _LINKS.get((operation.method, operation.path, status), ())
    return {
        (name := operation_id(method, path)): {"operationId": name, "parameters": dict(parameters)}
        for (method, path), parameters in found
    }
