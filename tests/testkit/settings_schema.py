"""The JSON schema of settings.json, for editors."""

from collections.abc import Mapping
from typing import Any

from rag_assistant.settings.schema import DOTTED, ENVIRONMENT_ONLY, OBJECTS, Settings


def settings_schema() -> dict[str, Any]:
    """Return the JSON schema of settings.json; a test compares it with settings.schema.json."""
    schema = Settings.model_json_schema()
    schema["title"] = "Settings of the assistant"
    described = {
        name: {key: value for key, value in field.items() if key not in ("title", "allowed", "live")}
        for name, field in schema["properties"].items()
        if name not in ENVIRONMENT_ONLY
    }
    schema["properties"] = {
        "$schema": {"type": "string"},
        **{name: field for name, field in described.items() if name not in DOTTED},
        **{key: _object_schema(members, described) for key, members in OBJECTS.items()},
        # The former names, which no editor should suggest.
        **{
            name: {"$ref": f"#/properties/{DOTTED[name].replace('.', '/properties/')}", "deprecated": True}
            for name in described
            if name in DOTTED
        },
    }
    return schema


def _object_schema(members: Mapping[str, str], described: Mapping[str, Any]) -> dict[str, Any]:
    properties = {inner: described[name] for inner, name in members.items() if name in described}
    return {"type": ["object", "null"], "additionalProperties": False, "properties": properties}
