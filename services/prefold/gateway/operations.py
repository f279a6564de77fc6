"""The table of calls: it routes, it knows the allowed methods, and ``/openapi.json`` is written from it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from starlette.responses import Response

from prefold.access import Scope
from prefold.errors import InvalidInputError
from prefold.gateway.exchange import Exchange
from prefold.gateway.problems import HttpRefusalError

Handler = Callable[[Exchange], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A query parameter as it is documented; the handler checks it."""

    name: str
    schema: Mapping[str, object]
    description: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One call: a method on a path."""

    method: str
    path: str
    """With parameters in braces, ``/v1/sessions/{session}``."""
    summary: str
    handler: Handler
    answers: Mapping[int, object]
    """Status → a type that msgspec can describe, or ``None`` for an answer without a JSON body."""
    text: str = "text/plain"
    """Media type of an answer that is text."""
    body: object | None = None
    """Type of the JSON body."""
    media: tuple[str, ...] = ("application/json",)
    """Media types that the body may have."""
    query: tuple[QueryParameter, ...] = ()
    headers: tuple[str, ...] = ()
    """Names of request headers that it heeds, each an optional text."""
    refusals: tuple[int, ...] = ()
    """Statuses of problem documents beside those that every call can give."""
    public: bool = False
    """Needs no credential."""
    scope: Scope = "read"
    """What a credential must allow."""
    grows: bool = False
    """Stores more than there was: refused while the session store is nearly full or does not keep its promises."""


@dataclass(slots=True)
class _Node:
    children: dict[str, "_Node"] = field(default_factory=dict)
    parameter: tuple[str, "_Node"] | None = None
    operations: dict[str, Operation] = field(default_factory=dict)


class OperationTable:
    """Finds the operation of a request by its raw path, so that an encoded slash stays inside its segment."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.operations = tuple(operations)
        self._root = _Node()
        for operation in self.operations:
            self._add(operation)

    def find(self, method: str, raw_path: bytes) -> tuple[Operation, dict[str, str]]:
        """The operation and its path parameters, decoded. HEAD finds GET. Refuses 404 and 405."""
        node = self._root
        parameters: dict[str, str] = {}
        for segment in raw_path.decode("latin-1").split("/")[1:]:
            child = node.children.get(segment)
            if child is None:
                if node.parameter is None or not segment:
                    raise HttpRefusalError(404, "no_such_path", "there is no such path")
                name, child = node.parameter
                parameters[name] = _decoded(segment, name)
            node = child
        return self._of_method(node, method), parameters

    @staticmethod
    def _of_method(node: _Node, method: str) -> Operation:
        if not node.operations:
            raise HttpRefusalError(404, "no_such_path", "there is no such path")
        operation = node.operations.get("GET" if method == "HEAD" else method)
        if operation is None:
            allowed = sorted(node.operations) + (["HEAD"] if "GET" in node.operations else [])
            raise HttpRefusalError(
                405, "method_not_allowed", "the path has no such method", headers={"Allow": ", ".join(allowed)}
            )
        return operation

    def _add(self, operation: Operation) -> None:
        node = self._root
        for segment in operation.path.split("/")[1:]:
            if segment.startswith("{"):
                name, child = node.parameter or (segment[1:-1], _Node())
                if name != segment[1:-1]:
                    raise ValueError(f"{operation.path}: the parameter is called {name} elsewhere")
                node.parameter = (name, child)
                node = child
            else:
                node = node.children.setdefault(segment, _Node())
        if operation.method in node.operations:
            raise ValueError(f"{operation.method} {operation.path} stands twice in the table")
        node.operations[operation.method] = operation


def _decoded(segment: str, name: str) -> str:
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError("is not UTF-8", code="invalid_id", field=name) from error
