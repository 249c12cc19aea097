"""settings.json: what is taken, what is refused and how, and how a change is followed."""

import json
import os
import re
from pathlib import Path

import pytest

from rag_assistant.records.errors import SettingsError
from rag_assistant.settings.live import LiveSettings
from rag_assistant.settings.loading import load_settings
from rag_assistant.settings.schema import ENVIRONMENT_ONLY, OBJECTS, Settings
from tests.testkit.settings_schema import settings_schema

PROJECT = Path(__file__).resolve().parents[2]


def test_environment_beats_file_beats_default() -> None:
    loaded = load_settings('{"max_history_turns": 3, "port": 9}', {"PORT": "10"})
    assert (loaded.values.max_history_turns, loaded.values.port, loaded.values.host) == (3, 10, "127.0.0.1")
    assert loaded.origins["max_history_turns"] == "file"
    assert loaded.origins["port"] == "environment"
    assert loaded.origins["host"] == "default"


def test_null_means_no_limit_in_file_and_environment() -> None:
    assert load_settings('{"max_history_turns": null}', {}).values.max_history_turns is None
    assert load_settings(None, {"MAX_HISTORY_TURNS": "null"}).values.max_history_turns is None


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load_settings(None, {"PORT": ""}).values.port == 8000


@pytest.mark.parametrize("value", ["-1", "2.5", '"ten"', "true", '"5"', "[]", "{}"])
def test_a_wrong_history_limit_names_line_key_value_and_what_is_allowed(value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings('{\n  "port": 1,\n  "max_history_turns": ' + value + "\n}", {})
    message = str(refused.value)
    assert message.startswith("settings.json line 3: max_history_turns is ")
    assert message.endswith("it must be a whole number, 0 or more, or null for no limit.")


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(SettingsError, match='variable PORT: port is "x"; it must be a whole number from 0 to 65535'):
        load_settings(None, {"PORT": "x"})


HOLDING_A_KEY = ["http://u:secret@host/v1", "https://host/v1?key=secret", "https://host?secret", "h#secret?"]


@pytest.mark.parametrize("url", HOLDING_A_KEY)
def test_a_url_that_may_hold_a_key_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsError, match=r"openai_base_url has .*starting with http.*without cred") as refused:
        load_settings(json.dumps({"openai_base_url": url}), {})
    assert "secret" not in str(refused.value)


def test_a_misspelt_key_gets_a_suggestion() -> None:
    with pytest.raises(SettingsError, match='Did you mean "max_history_turns"'):
        load_settings('{"max_history_turn": 5}', {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" \n", r"this is not JSON \(it is empty; write \{\} for the defaults\)"),
        ('{\n"port": 3,\n}', "(line 3, column 1: .*remove the|line 2, column 10: .*trailing) comma before"),
        ("[]", "must hold one object"),
        ('{"port": 1,\n"host": "localhost",\n"port": 2}', 'settings.json line 3: "port" appears twice. Remove one.'),
        ('{"temperature": NaN}', "NaN is not a number"),
        ("[" * 100_000, "settings.json"),
    ],
)
def test_what_is_not_an_object_in_json_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(text, {})


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("openai_api_key", ["sk-secret"], "text, or null"),
        ("mcp_servers", {"tracker": {"command": "sk-secret"}}, 'an object such as {"tracker": "http'),
        ("files_url", "s3://key:sk-secret@bucket", "s3://"),
    ],
)
def test_a_wrong_secret_is_not_shown_but_what_is_allowed_is(name: str, value: object, allowed: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(json.dumps({name: value}), {})
    assert "sk-secret" not in str(refused.value)
    assert f"line 1: {name} has a value that is not allowed; it must be " in str(refused.value)
    assert allowed in str(refused.value).partition("it must be")[2]


def test_every_setting_says_what_is_allowed() -> None:
    for name, field in Settings.model_fields.items():
        assert isinstance(field.json_schema_extra, dict), name
        assert field.json_schema_extra["allowed"], name
        assert field.description, name


def test_the_schema_beside_settings_json_is_the_models() -> None:
    assert json.loads((PROJECT / "settings.schema.json").read_text()) == settings_schema()
    load_settings((PROJECT / "settings.example.json").read_text(), {})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    path.write_text('{"max_history_turns": 3}')
    return path


def save_in_place(path: Path, text: str) -> None:
    path.write_text(text)


def save_by_rename(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


def save_with_the_old_time(path: Path, text: str) -> None:
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("save", [save_in_place, save_by_rename, save_with_the_old_time])
def test_a_change_is_applied_however_it_was_saved(file: Path, save) -> None:  # type: ignore[no-untyped-def]
    live = LiveSettings(file, {})
    save(file, '{"max_history_turns": 4}')
    live.look()
    assert live.current.max_history_turns == 4
    assert live.problem is None


def test_no_truncation_of_the_file_changes_anything(file: Path) -> None:
    live = LiveSettings(file, {})
    whole = '{"max_history_turns": 44, "port": 8000}'
    for length in range(len(whole)):
        file.write_text(whole[:length])
        live.look()
        assert live.current.max_history_turns == 3
    file.write_text(whole)
    live.look()
    assert live.current.max_history_turns == 44


def test_a_broken_file_is_named_and_the_last_good_values_stay(file: Path) -> None:
    live = LiveSettings(file, {})
    file.write_text('{"max_history_turns": "ten"}')
    live.look()
    assert live.problem is None, "it may be half-written"
    live.look()
    assert live.problem is not None
    assert 'line 1: max_history_turns is "ten"' in live.problem
    assert live.problem.endswith("The last good values stay in force.")
    assert live.current.max_history_turns == 3
    file.write_text('{"max_history_turns": 6}')
    live.look()
    assert (live.current.max_history_turns, live.problem) == (6, None)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"x" * 1_100_000])
def test_an_empty_binary_or_huge_file_changes_nothing(file: Path, content: bytes) -> None:
    live = LiveSettings(file, {})
    file.write_bytes(content)
    live.look()
    live.look()
    assert live.current.max_history_turns == 3
    assert live.problem is not None
    assert "settings.json" in live.problem


def test_a_file_that_goes_away_changes_nothing(file: Path) -> None:
    live = LiveSettings(file, {})
    file.unlink()
    live.look()
    live.look()
    assert live.current.max_history_turns == 3
    assert live.problem is not None
    assert "is gone" in live.problem


def test_a_file_that_can_be_read_again_is_a_problem_no_more(file: Path) -> None:
    text = '{"max_history_turns": 3}'
    file.write_text(text)
    live = LiveSettings(file, {})
    file.unlink()
    file.mkdir()
    live.look()
    live.look()
    assert live.problem is not None
    file.rmdir()
    file.write_text(text)
    live.look()
    live.look()
    assert live.problem is None
    assert live.current.max_history_turns == 3


def test_a_pipe_or_a_folder_in_its_place_changes_nothing_and_stops_no_watching(file: Path) -> None:
    file.write_text('{"max_history_turns": 4}')
    live = LiveSettings(file, {})
    for make, take_away in ((os.mkfifo, Path.unlink), (Path.mkdir, Path.rmdir)):
        file.unlink(missing_ok=True)
        make(file)
        live.look()
        live.look()
        assert live.problem is not None
        assert file.name in live.problem
        assert live.current.max_history_turns == 4
        take_away(file)
    file.write_text('{"max_history_turns": 6}')
    live.look()
    assert live.current.max_history_turns == 6


def test_a_setting_that_needs_a_restart_waits_for_it_and_says_so(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    live = LiveSettings(file, {})
    file.write_text('{"max_history_turns": 9, "port": 1234}')
    live.look()
    assert (live.current.max_history_turns, live.current.port) == (9, 8000)
    assert (live.restart_required, live.problem) == (("port",), None)
    assert "settings.json: restart the server to apply port." in caplog.text
    waiting = live.version
    file.write_text('{"max_history_turns": 9}')
    live.look()
    assert live.restart_required == ()
    assert live.version != waiting


def test_a_broken_file_stops_the_start(file: Path) -> None:
    file.write_text("{")
    with pytest.raises(SettingsError, match="settings.json line 1"):
        LiveSettings(file, {})


def test_the_kept_tool_iterations_have_a_second_name() -> None:
    assert load_settings(None, {"AGENT_CONVERSATION_HISTORY_KEEP": "4"}).values.tool_iterations_keep == 4
    both = {"AGENT_CONVERSATION_HISTORY_KEEP": "4", "TOOL_ITERATIONS_KEEP": "1"}
    assert load_settings(None, both).values.tool_iterations_keep == 1
    with pytest.raises(SettingsError, match='AGENT_CONVERSATION_HISTORY_KEEP: tool_iterations_keep is "x"'):
        load_settings(None, {"AGENT_CONVERSATION_HISTORY_KEEP": "x"})


OIDC = '"issuer": "https://login.example", "client_id": "assistant"'


def test_an_object_sets_what_its_flat_names_do() -> None:
    objects = (
        f'{{"oidc": {{{OIDC}}}, "limits": {{"tokens_per_day": 9}}, "timeouts": {{"token_seconds": 2.5}}, "s3": null}}'
    )
    nested = load_settings(objects, {"OIDC_CLIENT_ID": "other"})
    flat = '{"oidc_issuer": "https://login.example", "max_tokens_per_day": 9, "token_timeout_seconds": 2.5}'
    assert nested.values == load_settings(flat, {"OIDC_CLIENT_ID": "other"}).values
    assert load_settings('{"smtp": {"url": "smtps://mail"}}', {}).values.smtp_url == "smtps://mail"
    assert (nested.origins["oidc_issuer"], nested.origins["oidc_client_id"]) == ("file", "environment")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"oidc":\n{"issuer": 3}}', "settings.json line 3: oidc.issuer is 3; it must be a URL"),
        (
            '{"port": 1,\n"oidc": {"lable": "x"}}',
            'line 2: Unknown setting "lable" in oidc. Allowed: issuer, client_id, ',
        ),
        ('{"timeouts":\n3}', "line 1: timeouts is 3; it must be an object."),
        (
            '{"oidc": {"issuer": "https://a.example"},\n"oidc_issuer": null}',
            "line 2: oidc_issuer is another name of oidc",
        ),
        (
            '{"oidc": {"client_secret": "x"}}',
            "oidc_client_secret is a secret. Set the environment variable OIDC_CLIENT",
        ),
    ],
)
def test_what_is_wrong_in_an_object_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)) as refused:
        load_settings(text, {})
    assert "https://a" not in str(refused.value)


def test_every_object_is_in_the_schema_and_its_flat_names_are_taken_as_old() -> None:
    properties = settings_schema()["properties"]
    assert {"oidc", "proxy", "s3", "smtp", "limits", "timeouts"} == OBJECTS.keys()
    for key, members in OBJECTS.items():
        for inner, name in members.items():
            assert (inner in properties[key]["properties"]) == (name in properties) == (name not in ENVIRONMENT_ONLY)
    assert properties["oidc_issuer"] == {"$ref": "#/properties/oidc/properties/issuer", "deprecated": True}
