"""``/openapi.json``, written from the table of calls and the types that the handlers encode."""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import orjson

from prefold.access import SCOPES
from prefold.gateway.answers import NAME_PATTERN, Problem
from prefold.gateway.openapi_links import links_of, operation_id
from prefold.gateway.operations import Operation

_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)\}")
_NAME_SCHEMA = {"type": "string", "pattern": NAME_PATTERN}
_PATH_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "turn": {"type": "string", "minLength": 1, "maxLength": 256, "description": "The producer's id, percent-encoded."},
    "proposal": {"type": "string", "pattern": "^[0-9a-f]{18}$"},
    "fact": {"type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$"},
}
"""Of path parameters that are no names."""
_HEADERS: Mapping[str, str] = {"If-Match": "The `ETag` that the write builds on; another one now: 412."}
_KEY = f"An API key. Its scopes are some of {', '.join(SCOPES)}; `admin` implies the others."
_COMMON_REFUSALS = (400, 401, 403, 408, 413, 429, 431, 500, 503)
"""Of every call, whatever it does: some are said before it is known which call it is."""


def openapi_document(operations: Iterable[Operation], version: str) -> bytes:
    """The OpenAPI 3.1 document, as JSON."""
    known = list(operations)
    schemas, components = _schemas(known)
    paths: dict[str, dict[str, Any]] = {}
    for operation in known:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Prefold",
            "version": version,
            "description": "Contexts that are always current, within their limit and valid. Tokens are served tokens.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": _KEY}},
        },
    }
    return orjson.dumps(document)


def _schemas(operations: Iterable[Operation]) -> tuple[dict[Any, dict[str, Any]], dict[str, Any]]:
    types: list[Any] = [Problem]
    for operation in operations:
        types += [kind for kind in (operation.body, *operation.answers.values()) if kind is not None]
    distinct = list(dict.fromkeys(types))
    # A union of bodies is described by hand: msgspec wants tags in one.
    plain = [kind for one in distinct for kind in _members(one)]
    described, components = msgspec.json.schema_components(plain, ref_template=_REFERENCE)
    schemas: dict[Any, dict[str, Any]] = dict(zip(plain, described, strict=True))
    for one in distinct:
        if one not in schemas:
            schemas[one] = {"oneOf": [schemas[kind] for kind in _members(one)]}
    return schemas, components


def _members(kind: Any) -> tuple[Any, ...]:
    return getattr(kind, "__args__", None) or (kind,)


def _operation(operation: Operation, schemas: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation_id(operation.method, operation.path),
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_header_parameters(operation)],
        "responses": {**_answers(operation, schemas), **_refusals(operation, schemas)},
        "security": [] if operation.public else [{"key": [operation.scope]}, {}],
    }
    if not operation.public:
        described["description"] = f"Needs the scope `{operation.scope}`, where keys are configured."
    if operation.body is not None:
        content = {media: {"schema": schemas[operation.body]} for media in operation.media}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _PATH_SCHEMAS.get(name, _NAME_SCHEMA)}
        for name in _PARAMETER.findall(operation.path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": one.name, "in": "query", "required": False, "schema": one.schema, "description": one.description}
        for one in operation.query
    ]


def _header_parameters(operation: Operation) -> list[dict[str, Any]]:
    schema = {"type": "string", "pattern": r"^[\x21-\x7e]([\x20-\x7e]{0,126}[\x21-\x7e])?$"}
    return [
        {"name": name, "in": "header", "required": False, "schema": schema, "description": _HEADERS[name]}
        for name in operation.headers
    ]


def _answers(operation: Operation, schemas: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for status, kind in operation.answers.items():
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if kind is not None:
            media = operation.text if kind is str else "application/json"
            answer["content"] = {media: {"schema": schemas[kind]}}
        if links := links_of(operation, status):
            answer["links"] = links
        described[str(status)] = answer
    return described


def _refusals(operation: Operation, schemas: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    statuses = sorted({*operation.refusals, *_COMMON_REFUSALS} - set(operation.answers))
    content = {"application/problem+json": {"schema": schemas[Problem]}}
    return {str(status): {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}
