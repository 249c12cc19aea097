"""Turns settings.json and the environment into one validated, frozen Settings.

The environment overrides the file, the file overrides the defaults. What servers share, changed on the settings page,
stands between environment and file. Pure; live.py follows the file.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_origin

from msgspec import Struct
from pydantic import ValidationError

from rag_assistant.records.errors import SettingsError
from rag_assistant.records.validation import allowed_for, first_problem, no_constant, shown
from rag_assistant.settings.declaration import Url
from rag_assistant.settings.schema import DOTTED, ENVIRONMENT_ONLY, OBJECTS, SECRET, Settings

# Other names for environment variables; the setting's own name takes precedence.
ENVIRONMENT_ALIASES = {"AGENT_CONVERSATION_HISTORY_KEEP": "tool_iterations_keep"}

# The setting of each other name in settings.json.
KEY = re.compile(r'("(?:[^"\\\n]|\\.)*+")\s*:')
NAMES = {dotted: name for name, dotted in DOTTED.items()}

Origin = Literal["default", "file", "page", "environment"]


class LoadedSettings(Struct, frozen=True):
    """Settings with the origin of each value."""

    values: Settings
    origins: dict[str, Origin]


def load_settings(
    text: str | None,
    environment: Mapping[str, str],
    file_name: str = "settings.json",
    from_page: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Return the settings of a file's text (``None``: there is no file), the page's changes, and an environment.

    Raises SettingsError, which names file and line or the variable, the value, and what is allowed.
    """
    from_file: dict[str, Any] = {}
    spellings: dict[str, str] = {}
    content = {} if text is None else _parse(text, file_name)
    content.pop("$schema", None)
    for spelled, value in _members(content, file_name, text or ""):
        name, where = NAMES.get(spelled, spelled), f"{file_name} line {_line_of(spelled, text or '')}: "
        if name in spellings:
            raise SettingsError(
                f"{where}{spelled} is another name of {spellings[name]}, which is set, too. Remove one."
            )
        if name in ENVIRONMENT_ONLY and value is not None:
            raise SettingsError(f"{where}{name} is a secret. Set the environment variable {name.upper()} instead.")
        from_file[name], spellings[name] = value, spelled
        _check({name: value}, where, spelled)
    from_page = dict(from_page or {})
    for name, value in from_page.items():
        _check({name: value}, "The settings page: ", name)
    from_environment: dict[str, Any] = {}
    for variable, name in [*ENVIRONMENT_ALIASES.items(), *((name.upper(), name) for name in Settings.model_fields)]:
        raw = environment.get(variable, "")
        if not raw:
            continue
        from_environment[name] = value_of_text(name, raw)
        _check({name: from_environment[name]}, f"The environment variable {variable}: ", name)
    origins: dict[str, Origin] = dict.fromkeys(Settings.model_fields, "default")
    origins.update(dict.fromkeys(from_file, "file"))
    origins.update(dict.fromkeys(from_page, "page"))
    origins.update(dict.fromkeys(from_environment, "environment"))
    return LoadedSettings(Settings(**(from_file | from_page | from_environment)), origins)


def changed_text(text: str | None, values: Mapping[str, Any], file_name: str = "settings.json") -> str:
    """Return a file's text with some settings changed, without those that are the default. Raises SettingsError."""
    for name, value in values.items():
        _check({name: value}, "", name)
    content = {} if text is None else _parse(text, file_name)
    defaults = Settings().model_dump(mode="json")
    for name, value in values.items():
        outer, _, inner = DOTTED.get(name, "").partition(".")
        if isinstance(content.get(outer), dict):
            content[outer].pop(inner, None)
        content[name] = value
        if value == defaults[name]:
            del content[name]
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _members(content: dict[str, Any], file_name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield each name with its value, such as ``oidc.issuer`` for a member of an object. Raises SettingsError."""
    for key, value in content.items():
        if key not in OBJECTS:
            yield key, value
            continue
        where = f"{file_name} line {_line_of(key, text)}: "
        if value is not None and not isinstance(value, dict):
            raise SettingsError(f"{where}{key} is {shown(value)}; it must be an object.")
        for inner, member in (value or {}).items():
            if inner not in OBJECTS[key]:
                raise SettingsError(f'{where}Unknown setting "{inner}" in {key}. Allowed: {", ".join(OBJECTS[key])}.')
            yield f"{key}.{inner}", member


def _parse(text: str, file_name: str) -> dict[str, Any]:
    try:
        content = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        raise SettingsError(
            f"{file_name} line {error.lineno}, column {error.colno}: this is not JSON ({_what_is_wrong(error)})."
        ) from error
    except _Twice as error:
        (name,) = error.args
        where = f" line {_line_of(name, text, 2)}" if name in Settings.model_fields else ""
        raise SettingsError(f'{file_name}{where}: "{name}" appears twice. Remove one.') from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{file_name}: {error}.") from error
    if not isinstance(content, dict):
        raise SettingsError(f'{file_name} must hold one object, such as {{"max_history_turns": 5}}.')
    return content


def _what_is_wrong(error: json.JSONDecodeError) -> str:
    """Return what is wrong with invalid JSON. Python before 3.13 doesn't report trailing commas."""
    if not error.doc.strip():
        return "it is empty; write {} for the defaults"
    following = error.doc[error.pos : error.pos + 1]
    if following in ("}", "]") and error.doc[: error.pos].rstrip().endswith(","):
        return f'remove the comma before "{following}"'
    return error.msg


class _Twice(Exception):
    """A name, its argument, occurs twice in an object."""


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise _Twice(double)
    return dict(pairs)


def _check(values: dict[str, Any], where: str, spelled: str) -> None:
    try:
        Settings(**values)
    except ValidationError as error:
        name, sentence = first_problem(error, Settings, values, "setting")
        may_hold_key = name.endswith("_url") and bool({"@", "?"} & set(str(values[name])))
        if name in SECRET or may_hold_key:
            sentence = f"{name} has a value that is not allowed; it must be {allowed_for(Settings, name)}."
        if "." in spelled:
            sentence = sentence.replace(name, spelled, 1)
        raise SettingsError(f"{where}{sentence}") from None


def _line_of(name: str, text: str, occurrence: int = 1) -> int:
    """Return the line of a name, for its first or a later occurrence; ``oidc.issuer`` comes after oidc."""
    outer, _, inner = name.rpartition(".")
    begin = max(0, text.find(json.dumps(outer))) if outer else 0
    starts = [match.start() for match in KEY.finditer(text, begin) if match[1] == json.dumps(inner)]
    return text.count("\n", 0, starts[occurrence - 1]) + 1 if len(starts) >= occurrence else 1


def value_of_text(name: str, raw: str) -> Any:
    """Return what a text means as a setting's value: itself for text settings, otherwise parsed as JSON if possible."""
    if name in _TEXT_SETTINGS:
        return None if raw == "null" else raw
    try:
        return json.loads(raw.lower() if raw in ("True", "False", "None") else raw)
    except ValueError:
        return raw


_TEXT_SETTINGS = frozenset(
    name
    for name, field in Settings.model_fields.items()
    if field.annotation in (str, str | None, Url | None) or get_origin(field.annotation) is Literal
)
