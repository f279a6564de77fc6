"""Images and documents: where their bytes are, in Anthropic's form."""

import re
from collections.abc import Mapping
from typing import Any

from prefold.errors import InvalidInputError

_IMAGE_SOURCES = {"base64": ("media_type", "data"), "url": ("url",), "file": ("file_id",)}
_DOCUMENT_SOURCES = {**_IMAGE_SOURCES, "text": ("media_type", "data")}
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_DOCUMENT_TYPES = {"base64": "application/pdf", "text": "text/plain"}
_DATA_URL = "data:"
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
_URL = re.compile(r"https?://[^\s/?#]+\S*")


def image_source(value: object, field: str) -> Mapping[str, Any]:
    """The source of an ``image`` block: the published object where it has only known members, else without the others."""
    source = _source(value, field, _IMAGE_SOURCES)
    if source["type"] == "base64":
        _check_image_type(source["media_type"], f"{field}.media_type")
        _check_base64(source["data"], f"{field}.data")
    if source["type"] == "url":
        _check_url(source["url"], f"{field}.url")
    return source


def document_source(value: object, field: str) -> Mapping[str, Any]:
    """The same for a ``document`` block whose source is no list of blocks."""
    source = _source(value, field, _DOCUMENT_SOURCES)
    wanted = _DOCUMENT_TYPES.get(source["type"])
    if wanted and source["media_type"] != wanted:
        raise InvalidInputError(f"a document of this type is {wanted}", field=f"{field}.media_type")
    if source["type"] == "base64":
        _check_base64(source["data"], f"{field}.data")
    if source["type"] == "url":
        _check_url(source["url"], f"{field}.url")
    return source


def image_source_of_url(value: object, field: str) -> Mapping[str, Any]:
    """The source for OpenAI's ``image_url``, which may carry the image in a ``data:`` URL."""
    url = _text(value, field)
    if not url.startswith(_DATA_URL):
        _check_url(url, field)
        return {"type": "url", "url": url}
    kind, separator, data = url[len(_DATA_URL) :].partition(";base64,")
    if not separator or not data:
        raise InvalidInputError("a data URL of an image is data:image/TYPE;base64,DATA", field=field)
    _check_image_type(kind, field)
    _check_base64(data, field)
    return {"type": "base64", "media_type": kind, "data": data}


def _source(value: object, field: str, kinds: Mapping[str, tuple[str, ...]]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInputError("a source is an object", field=field)
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidInputError(f"the type of this source is one of {', '.join(kinds)}", field=f"{field}.type")
    members = {"type": kind, **{name: _text(value.get(name), f"{field}.{name}") for name in kinds[kind]}}
    return value if len(value) == len(members) else members


def _text(value: object, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError("a non-empty string is needed here", field=field)
    return value


def _check_image_type(value: str, field: str) -> None:
    if value not in _IMAGE_TYPES:
        raise InvalidInputError(f"an image is one of {', '.join(_IMAGE_TYPES)}", field=field)


def _check_url(value: str, field: str) -> None:
    if not _URL.fullmatch(value):
        raise InvalidInputError("a URL here begins with https:// or http:// and names a host", field=field)


def _check_base64(value: str, field: str) -> None:
    if not _BASE64.fullmatch(value):
        raise InvalidInputError("this is not base64", field=field)
