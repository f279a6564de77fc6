"""What we use of msgspec, in Python: records with checked fields, for an installation that has the base only.

The same values are taken and refused, with the same messages. Slower by far, and nothing on a hot path needs it.
"""

import re
import types
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from prefold.conversation import plain_json

__all__ = [
    "UNSET",
    "DecodeError",
    "Meta",
    "MsgspecError",
    "Struct",
    "UnsetType",
    "ValidationError",
    "convert",
    "json",
    "structs",
    "to_builtins",
]


class MsgspecError(Exception):
    """Base of the others."""


class DecodeError(MsgspecError):
    """What cannot be read."""


class ValidationError(DecodeError):
    """What can be read and is not of the type that was asked for."""


class UnsetType:
    """Of ``UNSET``: a member that was not given."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET = UnsetType()


class Meta:
    """Bounds of a value. What is only documentation is taken and left."""

    def __init__(
        self,
        *,
        ge: float | None = None,
        le: float | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        pattern: str | None = None,
        **_documentation: Any,
    ) -> None:
        self.ge, self.le = ge, le
        self.min_length, self.max_length = min_length, max_length
        self.pattern = pattern


class _Options(NamedTuple):
    omits_defaults: bool = False
    forbids_unknown: bool = False


class Struct:
    """A record. ``frozen``, ``kw_only`` and others are taken; fields are set once, by its ``__init__``."""

    __options = _Options()

    def __init_subclass__(cls, *, omit_defaults: bool = False, forbid_unknown_fields: bool = False, **_: Any) -> None:
        super().__init_subclass__()
        inherited = cls.__options
        cls.__options = _Options(
            omit_defaults or inherited.omits_defaults, forbid_unknown_fields or inherited.forbids_unknown
        )

    def __init__(self, *positional: Any, **given: Any) -> None:
        kind: Any = type(self)
        fields = _fields(kind)
        values = dict(zip(fields, positional, strict=False)) | given
        for name in fields:
            if name in values:
                object.__setattr__(self, name, values.pop(name))
            else:
                object.__setattr__(self, name, _default(type(self), name))
        if values:
            raise TypeError(f"unexpected argument {next(iter(values))!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @classmethod
    def _options(cls) -> _Options:
        return cls.__options


@lru_cache(maxsize=256)
def _fields(kind: Any) -> dict[str, Any]:
    """Names and types, those of the base first."""
    return {name: hint for name, hint in get_type_hints(kind, include_extras=True).items() if not name.startswith("_")}


def _default(kind: type[Struct], name: str) -> Any:
    try:
        value = getattr(kind, name)
    except AttributeError:
        raise TypeError(f"missing required argument {name!r}") from None
    return value.copy() if isinstance(value, dict | list) else value


def convert(value: Any, type: Any) -> Any:  # noqa: A002  # msgspec's own name
    """The value as that type. Raises ``ValidationError`` with the place at its end."""
    return _convert(value, type, "$")


def _convert(value: Any, kind: Any, path: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        inner, *metas = get_args(kind)
        converted = _convert(value, inner, path)
        for meta in metas:
            if isinstance(meta, Meta):
                _check(converted, meta, path)
        return converted
    if origin in (Union, types.UnionType):
        return _convert_union(value, kind, path)
    if origin is Literal:
        if value not in get_args(kind):
            if not isinstance(value, str):
                raise _wrong("str", value, path)
            raise _refused(f"Invalid enum value {value!r}", path)
        return value
    convert_one = _CONVERTERS.get(origin or kind)
    if convert_one is not None:
        return convert_one(value, get_args(kind), path)
    return _convert_struct(value, kind, path)


def _convert_union(value: Any, kind: Any, path: str) -> Any:
    """Of one type, ``None`` and ``UNSET``: we have no other unions."""
    if value is None and types.NoneType in get_args(kind):
        return None
    (arm,) = [one for one in get_args(kind) if one not in (types.NoneType, UnsetType)]
    try:
        return _convert(value, arm, path)
    except ValidationError as error:
        if types.NoneType in get_args(kind) and str(error).endswith(f"- at `{path}`"):
            raise ValidationError(re.sub(r"^(Expected `[a-z]+)`, got", r"\1 | null`, got", str(error))) from error
        raise


def _convert_struct(value: Any, kind: type[Struct], path: str) -> Struct:
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise _wrong("object", value, path)
    fields = _fields(cast("Any", kind))
    given = {}
    for name, member in value.items():
        if name in fields:
            given[name] = _convert(member, fields[name], f"{path}.{name}")
        elif kind._options().forbids_unknown:
            raise _refused(f"Object contains unknown field `{name}`", path)
    for name in fields:
        if name not in given and not hasattr(kind, name):
            raise _refused(f"Object missing required field `{name}`", path)
    return kind(**given)


def _string(value: Any, _: Any, path: str) -> str:
    if not isinstance(value, str):
        raise _wrong("str", value, path)
    return value


def _boolean(value: Any, _: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong("bool", value, path)
    return value


def _integer(value: Any, _: Any, path: str) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong("int", value, path)
    return value


def _number(value: Any, _: Any, path: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong("float", value, path)
    return float(value)


def _sequence(made: Callable[[list[Any]], Any]) -> Callable[[Any, Any, str], Any]:
    def convert_sequence(value: Any, arguments: Any, path: str) -> Any:
        if not isinstance(value, list | tuple):
            raise _wrong("array", value, path)
        kind = arguments[0] if arguments else Any
        return made([_convert(one, kind, f"{path}[{number}]") for number, one in enumerate(value)])

    return convert_sequence


def _mapping(value: Any, arguments: Any, path: str) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise _wrong("object", value, path)
    names, members = arguments or (Any, Any)
    found = {}
    for name, member in value.items():
        try:
            read = _convert(name, names, "")
        except ValidationError as error:
            raise ValidationError(f"{str(error).partition(' - at ')[0]} - at `key` in `{path}`") from error
        found[read] = _convert(member, members, f"{path}[...]")
    return found


_CONVERTERS: dict[Any, Callable[[Any, Any, str], Any]] = {
    str: _string,
    bool: _boolean,
    int: _integer,
    float: _number,
    list: _sequence(list),
    tuple: _sequence(tuple),
    dict: _mapping,
}


def _check(value: Any, meta: Meta, path: str) -> None:
    kind = _name_of(value)
    if meta.ge is not None and value < meta.ge:
        raise _refused(f"Expected `{kind}` >= {_bound(meta.ge, value)}", path)
    if meta.le is not None and value > meta.le:
        raise _refused(f"Expected `{kind}` <= {_bound(meta.le, value)}", path)
    if meta.min_length is not None and len(value) < meta.min_length:
        raise _refused(f"Expected `{kind}` of length >= {meta.min_length}", path)
    if meta.max_length is not None and len(value) > meta.max_length:
        raise _refused(f"Expected `{kind}` of length <= {meta.max_length}", path)
    if meta.pattern is not None and not re.search(meta.pattern, value):
        raise _refused(f"Expected `{kind}` matching regex {meta.pattern!r}", path)


def _bound(bound: float, value: Any) -> float:
    return float(bound) if isinstance(value, float) else bound


def _name_of(value: Any) -> str:
    names: tuple[tuple[Any, str], ...] = (
        (bool, "bool"),
        (str, "str"),
        (int, "int"),
        (float, "float"),
        (Mapping, "object"),
        ((list, tuple), "array"),
    )
    return "null" if value is None else next((name for kind, name in names if isinstance(value, kind)), "object")


def _wrong(expected: str, value: Any, path: str) -> ValidationError:
    return _refused(f"Expected `{expected}`, got `{_name_of(value)}`", path)


def _refused(detail: str, path: str) -> ValidationError:
    return ValidationError(detail if path == "$" else f"{detail} - at `{path}`")


def to_builtins(value: Any) -> Any:
    """The value in JSON's own types."""
    if isinstance(value, Struct):
        omits = value._options().omits_defaults
        kept = {name: one for name, one in vars(value).items() if one is not UNSET}
        return {
            name: to_builtins(one)
            for name, one in kept.items()
            if not (omits and hasattr(type(value), name) and one == getattr(type(value), name))
        }
    if isinstance(value, dict):
        return {name: to_builtins(one) for name, one in value.items()}
    return [to_builtins(one) for one in value] if isinstance(value, list | tuple) else value


class Encoder:
    """To JSON bytes."""

    def encode(self, value: Any) -> bytes:
        return plain_json.dumps(to_builtins(value))


class Decoder:
    """From JSON bytes to a type."""

    def __init__(self, type: Any = Any) -> None:  # noqa: A002  # msgspec's own name
        self._kind = type

    def decode(self, body: bytes | str) -> Any:
        try:
            value = plain_json.loads(body)
        except ValueError as error:
            raise DecodeError(f"JSON is malformed: {error}") from error
        return convert(value, self._kind)


def _encode(value: Any) -> bytes:
    return Encoder().encode(value)


def _decode(body: bytes | str, *, type: Any = Any) -> Any:  # noqa: A002  # msgspec's own name
    return Decoder(type).decode(body)


def _replaced(value: Struct, **changes: Any) -> Struct:
    return type(value)(**{**vars(value), **changes})


json = types.SimpleNamespace(Encoder=Encoder, Decoder=Decoder, encode=_encode, decode=_decode)
structs = types.SimpleNamespace(replace=_replaced)
