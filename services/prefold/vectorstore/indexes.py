"""Payload indexes, from and to JSON."""

from collections.abc import Callable
from typing import Any, Final

import qdrant_edge as edge

from prefold.vectorstore.fields import Fields
from prefold.vectorstore.identifiers import payload_path
from prefold.vectorstore.rejections import unsupported

_BUILDERS: Final[dict[str, Callable[..., Any]]] = {
    "keyword": edge.KeywordIndexParams,
    "uuid": edge.UuidIndexParams,
    "integer": edge.IntegerIndexParams,
    "float": edge.FloatIndexParams,
    "bool": edge.BoolIndexParams,
    "datetime": edge.DatetimeIndexParams,
}
_OPTIONS: Final = {
    "keyword": ("is_tenant",),
    "uuid": ("is_tenant",),
    "integer": ("lookup", "range", "is_principal"),
    "float": ("is_principal",),
    "datetime": ("is_principal",),
}
_NAMES: Final = {
    str(getattr(edge.PayloadSchemaType, name)): name.lower()
    for name in ("Keyword", "Uuid", "Integer", "Float", "Bool", "Datetime", "Geo", "Text")
}


def parse_index(body: object) -> tuple[str, Any]:
    """Field and schema that a call to create an index asks for."""
    fields = Fields(body, "")
    field = payload_path(fields.take("field_name"), "field_name")
    schema = fields.take("field_schema")
    fields.done()
    return field, _schema({"type": schema} if isinstance(schema, str) else schema)


def render_index(info: "edge.PayloadIndexInfo") -> dict[str, object]:
    """One entry of ``payload_schema``."""
    kind = _NAMES.get(str(info.data_type), "keyword")
    options = {
        name: value for name in _OPTIONS.get(kind, ()) if (value := getattr(info.params, name, None)) is not None
    }
    params = {"type": kind, **options} if options else None
    return {"data_type": kind, "points": info.points, **({"params": params} if params else {})}


def _schema(value: object) -> Any:
    fields = Fields(value, "field_schema")
    kind = fields.text("type")
    if kind not in _BUILDERS:
        raise unsupported("field_schema", f"an index of type {kind[:40]!r}")
    fields.drop("on_disk", "memory", "enable_hnsw")
    options = {name: fields.flag(name, False) for name in _OPTIONS.get(kind, ()) if name in fields}
    fields.done()
    return _BUILDERS[kind](**options)
