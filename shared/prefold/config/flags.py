"""Settings from the environment and from flags of the same name: ``PREFOLD_REDIS_URL`` is ``--redis-url``."""

import argparse
import re
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import SettingsError

from prefold.config.settings import ENV_PREFIX, ProcessSettings
from prefold.errors import ConfigurationError

S = TypeVar("S", bound=ProcessSettings)

REDACTED = "********"
_CREDENTIALS_IN_URL = re.compile(r"//[^/?#]*@")
_PASSWORD_OPTION = re.compile(r"([?&](?:user(?:name)?|password)=)[^&#]*")


def load_settings(
    kind: type[S], argv: Sequence[str], *, prog: str, description: str = "", check: Callable[[S], None] | None = None
) -> S:
    """Settings of a process that takes no other arguments.

    ``check`` is run by ``--check-config`` before it prints: it raises ``ConfigurationError`` for what settings that are
    right by themselves name and the process could not work with (files, packages), and serves nothing. Flags win over the environment. ``--help`` and ``--check-config`` print and leave by SystemExit(0);
    unknown flags by SystemExit(2). Raises ConfigurationError that names every wrong variable.
    """
    # An abbreviation of --api-keys-secret-file would put the secret itself on the command line.
    parser = argparse.ArgumentParser(prog=prog, description=description, allow_abbrev=False)
    add_flags(parser, kind)
    return settings_from(kind, parser.parse_args(argv), check)


def add_flags(parser: argparse.ArgumentParser, kind: type[ProcessSettings]) -> None:
    """Add a flag for each setting of ``kind``, but for secrets (a command line is public), and --check-config."""
    group = parser.add_argument_group("settings")
    for name, field in kind.model_fields.items():
        if not is_secret(field):
            group.add_argument(
                flag_of(name),
                dest=name,
                metavar="VALUE",
                default=None,
                help=_help(kind, name, field).replace("%", "%%"),
            )
    group.add_argument(
        "--check-config",
        action="store_true",
        help="check the settings and the files that they name, print them, secrets hidden, and stop",
    )


def settings_from(kind: type[S], parsed: argparse.Namespace, check: Callable[[S], None] | None = None) -> S:
    """The settings that the parsed flags and the environment make. Raises ConfigurationError. ``check``: see above."""
    given = {name: value for name in kind.model_fields if (value := getattr(parsed, name, None)) is not None}
    by_alias = {_init_name(name, kind.model_fields[name]): value for name, value in given.items()}
    try:
        settings = kind(**by_alias)
    except ValidationError as error:
        raise _configuration_error(kind, error) from error
    except SettingsError as error:
        raise ConfigurationError(str(error)) from error
    if parsed.check_config:
        if check is not None:
            check(settings)
        sys.stdout.write(describe(settings))
        raise SystemExit(0)
    return settings


def describe(settings: ProcessSettings) -> str:
    """One ``VARIABLE=value`` line a setting; secrets and passwords in URLs are hidden."""
    kind = type(settings)
    lines = [f"{variable_of(kind, name)}={_shown(getattr(settings, name))}\n" for name in kind.model_fields]
    return "".join(sorted(lines))


def environment_of(settings: ProcessSettings) -> dict[str, str]:
    """Variables that give another process the same settings, secrets included."""
    return {
        variable_of(type(settings), name): _plain(value)
        for name in type(settings).model_fields
        if (value := getattr(settings, name)) is not None
    }


def redacted_url(url: str) -> str:
    """``url`` without its user and password."""
    return _PASSWORD_OPTION.sub(rf"\1{REDACTED}", _CREDENTIALS_IN_URL.sub(f"//{REDACTED}@", url))


def variable_of(kind: type[ProcessSettings], name: str) -> str:
    """Name of the environment variable of a setting."""
    alias = kind.model_fields[name].validation_alias
    return alias if isinstance(alias, str) else ENV_PREFIX + name.upper()


def flag_of(name: str) -> str:
    """Name of a setting's flag."""
    return "--" + name.replace("_", "-")


def is_secret(field: FieldInfo) -> bool:
    """True for a setting that is never shown."""
    return SecretStr in (field.annotation, *typing.get_args(field.annotation))


def _init_name(name: str, field: FieldInfo) -> str:
    return field.validation_alias if isinstance(field.validation_alias, str) else name


def _help(kind: type[ProcessSettings], name: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True, validated_data={})
    suffix = "" if default is None else f", default {default}"
    return f"{field.description or ''} ({variable_of(kind, name)}{suffix})"


def _plain(value: Any) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return REDACTED if isinstance(value, SecretStr) else redacted_url(str(value))


def _configuration_error(kind: type[ProcessSettings], error: ValidationError) -> ConfigurationError:
    variables = {_init_name(name, field): variable_of(kind, name) for name, field in kind.model_fields.items()}
    messages = []
    for item in error.errors():
        message = item["msg"].removeprefix("Value error, ")
        name = str(next(iter(item["loc"]), ""))  # empty: a rule over several settings, whose message names them
        messages.append(f"{variables.get(name, name)}: {message}" if name else message)
    return ConfigurationError("; ".join(messages), field=messages[0].partition(":")[0])
