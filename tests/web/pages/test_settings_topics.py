"""Every setting as a person reads it."""

import json

import pytest

from rag_assistant.settings.schema import SECRET, Settings
from rag_assistant.web.pages.settings import SettingView, settings_view, typed_value

DEFAULTS = dict.fromkeys(Settings.model_fields, "default")


def view_of(name: str, values: Settings, origins: dict[str, str] | None = None) -> SettingView:
    views = settings_view(values, DEFAULTS | (origins or {}))
    return next(view for topic in views.values() for view in topic if view.name == name)


def test_every_setting_has_one_topic() -> None:
    named = [view.name for views in settings_view(Settings(), DEFAULTS).values() for view in views]
    assert sorted(named) == sorted(Settings.model_fields)


def test_a_setting_tells_its_value_what_is_allowed_and_where_it_comes_from() -> None:
    view = view_of("max_history_turns", Settings(max_history_turns=None), {"max_history_turns": "file"})
    assert (view.value, view.origin, view.live) == ("null", "settings.json", True)
    assert view.allowed == "a whole number, 0 or more, or empty for no limit"
    assert view.description.startswith("How many earlier turns")
    by_environment = view_of("port", Settings(port=80), {"port": "environment"})
    assert (by_environment.value, by_environment.origin, by_environment.live) == ("80", "environment (PORT)", False)


@pytest.mark.parametrize("name", sorted(SECRET))
def test_a_secret_is_never_shown(name: str) -> None:
    objects = ("chroma_headers", "mcp_servers")
    secret: object = {"api_key": "sk-canary"} if name in objects else "sk-canary"
    view = view_of(name, Settings().model_copy(update={name: secret}))
    assert view.value == "set"
    assert "canary" not in repr(view)
    assert view_of(name, Settings()).value == "not set"


def test_the_line_to_copy_is_a_member_of_a_json_object() -> None:
    for topic in settings_view(Settings(instructions='Say "yes"'), DEFAULTS).values():
        for view in topic:
            assert list(json.loads("{" + view.line + "}")) == [view.name]


def test_what_a_setting_shows_means_the_same_when_it_is_typed() -> None:
    values = Settings(instructions="One\nTwo", allowed_hosts=("a.example", "b.example"), model_prices={"m": [1, 2]})
    content = values.model_dump(mode="json")
    for name in Settings.model_fields.keys() - SECRET:
        assert typed_value(name, view_of(name, values).text) == content[name], name


def test_no_setting_tells_of_null_where_a_field_is_left_empty() -> None:
    for name in Settings.model_fields:
        view = view_of(name, Settings())
        assert "null" not in view.description + view.allowed + view.default, name


def test_the_filter_finds_by_name_description_and_value() -> None:
    def found(words: str) -> list[str]:
        return [view.name for topic in settings_view(Settings(), DEFAULTS, words).values() for view in topic]

    assert "max_history_turns" in found("history turns")
    assert found("how much is LOGGED") == ["log_level"]
    assert found("127.0.0.1") == ["host", "trusted_proxies"]
    assert found("no such thing anywhere") == []
