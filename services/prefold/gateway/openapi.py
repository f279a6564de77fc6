"""``/openapi.json``, written from the table of calls and the types that the handlers encode."""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import orjson

from prefold.gateway.answers import Problem
from prefold.gateway.operations import Operation

_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)\}")
_NAME_SCHEMA = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._@+=|~-]{0,127}$"}
_PATH_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "turn": {"type": "string", "minLength": 1, "maxLength": 256, "description": "The producer's id, percent-encoded."},
}
"""Of path parameters that are no names."""
_COMMON_REFUSALS = (401, 403, 429, 500, 503)
_TEXT_ANSWERS: Mapping[object, str] = {str: "text/plain"}


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
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
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
        "operationId": _operation_id(operation),
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": {**_answers(operation, schemas), **_refusals(operation, schemas)},
        "security": [] if operation.public else [{"key": []}, {}],
    }
    if operation.body is not None:
        content = {"application/json": {"schema": schemas[operation.body]}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _operation_id(operation: Operation) -> str:
    words = [word for word in re.split(r"[^a-z]+", operation.path.replace("/v1", "")) if word]
    return "_".join([operation.method.lower(), *words])


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


def _answers(operation: Operation, schemas: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for status, kind in operation.answers.items():
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if kind is not None:
            media = _TEXT_ANSWERS.get(kind, "application/json")
            answer["content"] = {media: {"schema": schemas[kind]}}
        described[str(status)] = answer
    return described


def _refusals(operation: Operation, schemas: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    statuses = sorted({*operation.refusals, *_COMMON_REFUSALS} - set(operation.answers))
    content = {"application/problem+json": {"schema": schemas[Problem]}}
    return {str(status): {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}
