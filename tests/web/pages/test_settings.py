"""The page of the settings, and the banner for a file that is broken."""

import errno
import html
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.llm import connection_check
from rag_assistant.llm.local_servers import LocalServers
from rag_assistant.services import Services
from rag_assistant.settings.schema import Settings, is_live
from rag_assistant.web import create_app
from tests.testkit.people import add_person, client_of
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, post, until


@pytest.fixture
def file(environment: dict[str, str]) -> Path:
    return Path(environment["SETTINGS_FILE"])


@pytest.fixture
def unconnected(environment: dict[str, str]) -> Iterator[FlaskClient]:
    """A client of an application without a model, also called assistant.example."""
    model = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL")
    values = {name: value for name, value in environment.items() if name not in model}
    app = create_app(values | {"ALLOWED_HOSTS": '["assistant.example"]'})
    yield app.test_client()
    app.extensions["assistant"].close()


def page(client: FlaskClient, path: str = "/settings") -> str:
    response = client.get(path, headers=PAGE)
    assert response.status_code == 200, response.text
    return html.unescape(response.text)


def test_every_setting_stands_on_the_page_with_what_is_allowed(empty: FlaskClient) -> None:
    text = page(empty)
    for name in Settings.model_fields:
        assert f'id="setting-{name}"' in text
    assert "a whole number, 0 or more, or empty for no limit" in text
    assert "environment (OPENAI_MODEL)" in text


def test_a_secret_is_told_only_as_set_or_not_set(empty: FlaskClient) -> None:
    text = page(empty)
    assert "sk-canary-secret" not in text
    assert '"openai_api_key": "..."' in text


def test_the_settings_come_for_the_drawer_without_a_page_around_them(empty: FlaskClient) -> None:
    assert "<html" in page(empty)
    text = page(empty, "/settings?drawer=1")
    assert "<html" not in text
    assert 'id="setting-port"' in text


def test_the_settings_page_opens_no_second_one_in_the_drawer(
    client: FlaskClient, services: Services, file: Path
) -> None:
    link = r'<a [^>]*data-drawer[^>]*href="/settings|<a [^>]*href="/settings[^>]*data-drawer'
    file.write_text("{")
    until(lambda: services.settings.problem is not None)
    assert len(re.findall(link, page(client, "/"))) == 2, "in the sidebar and in the banner"
    assert re.findall(link, page(client)) == []


def test_the_filter_works_without_scripts(empty: FlaskClient) -> None:
    text = page(empty, "/settings?filter=LOGGED")
    assert 'id="setting-log_level"' in text
    assert 'id="setting-port"' not in text
    assert "No settings found." in page(empty, "/settings?filter=nothing+of+this+kind")


STAMP = re.compile(r'name="stamp" value="(\w+)"')


def save(client: FlaskClient, stamp: str | None = None, headers: dict[str, str] | None = None, **fields: str) -> Any:
    stamp = STAMP.search(page(client))[1] if stamp is None else stamp
    return client.post("/settings", data={"stamp": stamp} | fields, headers=PAGE | (headers or {}))


def test_the_form_writes_what_it_changes_and_keeps_all_else(
    client: FlaskClient, services: Services, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    file.write_text('{"log_level": "INFO", "max_history_turns": 5, "port": 1, "timeouts": {"token_seconds": 9}}')
    until(lambda: services.settings.restart_required)
    text = save(client, max_history_turns="all", on_overflow="ask", openai_model="ignored").text
    assert "It applies from the next question." in text
    kept = {"log_level": "INFO", "port": 1, "timeouts": {"token_seconds": 9}}
    assert json.loads(file.read_text()) == kept | {"max_history_turns": None, "on_overflow": "ask"}
    assert (services.settings.current.max_history_turns, services.settings.current.on_overflow) == (None, "ask")
    assert "settings.json changed: max_history_turns, on_overflow" in caplog.text
    assert "Set by the environment variable <code>OPENAI_MODEL</code>." in text
    before = file.stat()
    save(client, max_history_turns="all")
    assert file.stat() == before, "nothing differed"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    sample(
        [
            (
                {"max_history_turns": "ten"},
                'How many earlier turns to send is "ten"; it must be a whole number, 0 or more',
            ),
            ({"max_history_turns": "9" * 5000}, "How many earlier turns to send is"),
            ({"on_overflow": "hope"}, 'When there are more turns than that is "hope"; it must be one of trim, ask'),
        ]
    ),
)
def test_what_is_not_allowed_is_said_and_nothing_is_written(
    client: FlaskClient, file: Path, fields: dict[str, str], sentence: str
) -> None:
    response = save(client, **fields)
    assert response.status_code == 422
    assert sentence in html.unescape(response.text)
    assert not file.exists()


@pytest.mark.long
def test_a_form_from_before_another_change_or_from_nowhere_saves_nothing(client: FlaskClient, file: Path) -> None:
    stamp = STAMP.search(page(client))[1]
    file.write_text('{"max_history_turns": 9}')
    for known in (stamp, "", "0" * 64):
        response = save(client, known, max_history_turns="3")
        assert response.status_code == 409
        assert "has changed since this page was opened; nothing was saved." in response.text
    assert json.loads(file.read_text()) == {"max_history_turns": 9}
    file.write_text('{"max_history_turns": ')
    response = save(client, max_history_turns="3")
    assert "this is not JSON" in response.text
    assert file.read_text() == '{"max_history_turns": '


@pytest.mark.parametrize(
    "headers", [{"X-Forwarded-For": "127.0.0.1"}, {"Host": "assistant.example"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_without_accounts_settings_are_changed_on_this_machine_alone(
    unconnected: FlaskClient, file: Path, headers: dict[str, str]
) -> None:
    client = unconnected
    assert save(client, headers=headers, max_history_turns="3").status_code == 403
    elsewhere = {"environ_base": {"REMOTE_ADDR": "192.0.2.7"}}
    seen = client.get("/settings", headers=PAGE, **elsewhere).text
    assert "<fieldset disabled>" in seen
    assert STAMP.search(seen) is None
    refused = client.post("/settings", data={"max_history_turns": "3"}, headers=PAGE, **elsewhere)
    assert refused.status_code == 403
    assert not file.exists()


def test_a_key_is_written_never_shown_and_not_sent_to_another_address(
    unconnected: FlaskClient, file: Path, stub: StubModel
) -> None:
    client = unconnected
    answer = save(client, openai_base_url=stub.url, openai_api_key="sk-typed", test="1")
    assert "stub-model answered." in answer.text
    assert f'value="{stub.url}"' in answer.text
    assert not file.exists(), "a test saves nothing"
    assert stub.requests[-1].headers["authorization"] == "Bearer sk-typed"
    wrong = save(client, openai_base_url="ftp://localhost", test="1")
    assert 'Address is "ftp://localhost"; it must be' in html.unescape(wrong.text)
    save(client, openai_base_url=stub.url, openai_api_key="sk-typed")
    assert json.loads(file.read_text()) == {"openai_base_url": stub.url, "openai_api_key": "sk-typed"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert "sk-typed" not in answer.text + page(client)
    save(client, openai_base_url=stub.url, openai_api_key="", openai_model="two")
    assert json.loads(file.read_text())["openai_api_key"] == "sk-typed"
    save(client, openai_base_url="http://elsewhere.example/v1", openai_api_key="")
    assert "openai_api_key" not in json.loads(file.read_text())
    save(client, openai_base_url=stub.url, openai_api_key="sk-typed")
    save(client, openai_base_url=stub.url, openai_api_key="", forget_key="on")
    assert "openai_api_key" not in json.loads(file.read_text())


@pytest.mark.long
@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("localhost:8112", "http://localhost:8112"),
        ("10.0.0.7:8000/v1", "http://10.0.0.7:8000/v1"),
        ("api.example.org/v1", "https://api.example.org/v1"),
        ("http://api.example.org/v1", "http://api.example.org/v1"),
    ],
)
def test_an_address_without_its_scheme_gets_one(unconnected: FlaskClient, file: Path, typed: str, address: str) -> None:
    save(unconnected, openai_base_url=typed)
    assert json.loads(file.read_text()) == {"openai_base_url": address}
    save(unconnected, setting="rerank_base_url", value=typed)
    assert json.loads(file.read_text())["rerank_base_url"] == address


@pytest.mark.long
def test_the_models_of_an_address_are_listed_to_choose_from(
    unconnected: FlaskClient, file: Path, stub: StubModel
) -> None:
    stub.models = [{"id": "one"}, {"id": "two"}]
    text = save(unconnected, openai_base_url=stub.url, openai_model="mine", list="1").text
    offered = re.findall(r"<option( selected)?>(\w+)</option>", text.split('id="model-name"')[1].split("</select>")[0])
    assert offered == [(" selected", "mine"), ("", "one"), ("", "two")]
    assert not file.exists(), "a list saves nothing"
    assert 'role="alert"' in save(unconnected, openai_base_url="", list="1").text, "nobody is asked"
    away = save(unconnected, openai_base_url="http://127.0.0.1:1/v1", list="1")
    assert away.status_code == 502
    assert "could not be reached" in away.text
    assert "Your question was saved" not in away.text


@pytest.mark.long
def test_where_a_setting_comes_from_is_said_in_the_language_of_the_page(client: FlaskClient) -> None:
    german = client.get("/settings", headers=PAGE | {"Accept-Language": "de"}).text
    assert "Umgebung (OPENAI_MODEL)" in german


def test_every_setting_is_changed_with_a_form_of_its_own_or_says_why_not(client: FlaskClient, file: Path) -> None:
    text = page(client)
    parts = dict(re.findall(r'(?s)id="setting-(\w+)"(.*?)</details>', text))
    fixed = {name for name, part in parts.items() if 'name="setting"' not in part}
    assert "oidc_client_secret" in fixed
    assert all("Set by the environment variable" in parts[name] for name in fixed)
    save(client, setting="retention_days", value="90")
    save(client, setting="allowed_hosts", value="one.example\r\n two.example \r\n")
    save(client, setting="instructions", value="Be brief.\r\nBe true.")
    save(client, setting="web_pages", value="true")
    assert json.loads(file.read_text()) == {
        "retention_days": 90,
        "allowed_hosts": ["one.example", "two.example"],
        "instructions": "Be brief.\nBe true.",
        "web_pages": True,
    }
    assert "It applies after a restart." in save(client, setting="allowed_hosts", value="").text
    assert "It applies from the next question." in save(client, setting="retention_days", value="").text
    save(client, setting="instructions", default="1", value="typed")
    assert json.loads(file.read_text()) == {"web_pages": True}
    refused = save(client, setting="retention_days", value="ten")
    assert refused.status_code == 422
    assert 'retention_days is "ten"; it must be a whole number from 1 to 36500, or empty' in html.unescape(refused.text)
    assert 'name="value" dir="auto" autocomplete="off" spellcheck="false" value="ten"' in refused.text
    save(client, setting="openai_model", value="another")
    assert json.loads(file.read_text()) == {"web_pages": True}, "the environment fixes it"


def test_a_setting_in_an_object_of_the_file_is_changed_there(
    client: FlaskClient, services: Services, file: Path
) -> None:
    file.write_text('{"limits": {"stored_mb_per_person": 9, "questions_per_minute": 8}}')
    save(client, setting="max_stored_mb_per_person", value="7")
    assert json.loads(file.read_text()) == {"limits": {"questions_per_minute": 8}, "max_stored_mb_per_person": 7}
    assert services.settings.current.max_stored_mb_per_person == 7


def test_a_secret_is_typed_anew_or_stays(client: FlaskClient, file: Path) -> None:
    save(client, setting="rerank_api_key", value="sk-canary-two")
    save(client, setting="rerank_api_key", value="")
    assert json.loads(file.read_text()) == {"rerank_api_key": "sk-canary-two"}
    assert "sk-canary-two" not in page(client)
    save(client, setting="rerank_api_key", default="1")
    assert json.loads(file.read_text()) == {}


@pytest.mark.long
def test_a_key_stays_where_the_environment_fixes_the_address(
    environment: dict[str, str], file: Path, stub: StubModel
) -> None:
    app = create_app({name: value for name, value in environment.items() if name != "OPENAI_API_KEY"})
    save(app.test_client(), openai_api_key="sk-canary-four")
    save(app.test_client(), openai_api_key="", max_history_turns="4")
    app.extensions["assistant"].close()
    assert json.loads(file.read_text()) == {"openai_api_key": "sk-canary-four", "max_history_turns": 4}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["openai", "embedding", "rerank"])
def test_a_key_is_not_sent_to_an_address_that_is_typed_later(unconnected: FlaskClient, file: Path, kind: str) -> None:
    save(unconnected, setting=f"{kind}_base_url", value="http://one.example")
    save(unconnected, setting=f"{kind}_api_key", value="sk-canary-three")
    save(unconnected, setting=f"{kind}_base_url", value="http://two.example")
    assert json.loads(file.read_text()) == {f"{kind}_base_url": "http://two.example"}


@pytest.mark.long
def test_an_administrator_elsewhere_changes_nothing_that_reaches_the_machine(
    client: FlaskClient, services: Services, file: Path
) -> None:
    add_person(services, "Ann", "admin")
    ann = client_of(client.application, "Ann")
    elsewhere = {"X-Forwarded-For": "192.0.2.7"}
    text = html.unescape(ann.get("/settings", headers=PAGE | elsewhere).text)
    parts = dict(re.findall(r'(?s)id="setting-(\w+)"(.*?)</details>', text))
    by_hand = {name for name, part in parts.items() if "Changed only in a browser on the server" in part}
    assert by_hand >= {"mcp_servers", "local_model", "document_sources", "backup_folder", "oidc_issuer", "smtp_url"}
    stamp = STAMP.search(text)[1]
    for name in ("mcp_servers", "backup_folder"):
        refused = ann.post(
            "/settings", data={"stamp": stamp, "setting": name, "value": "/etc"}, headers=PAGE | elsewhere
        )
        assert (refused.status_code, name) == (403, name)
    assert not file.exists()
    sent = {"stamp": stamp, "setting": "max_upload_mb", "value": "7"}
    assert ann.post("/settings", data=sent, headers=PAGE | elsewhere).status_code == 200
    assert json.loads(file.read_text()) == {"max_upload_mb": 7}


def test_a_file_that_cannot_be_written_is_named(
    client: FlaskClient, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    stamp = STAMP.search(page(client))[1]
    monkeypatch.setattr(os, "fsync", full)
    assert "settings.json cannot be written: No space left on device." in save(client, stamp, on_overflow="ask").text
    assert list(file.parent.glob("*settings.json*")) == []


@pytest.mark.long
def test_a_model_server_on_this_machine_is_connected_with_one_click(
    unconnected: FlaskClient, file: Path, stub: StubModel
) -> None:
    client = unconnected
    stub.models = [{"id": "one"}, {"id": "two"}]
    client.application.extensions["assistant"].local_servers = LocalServers(1, {"Ollama": stub.port})
    text = page(client)
    assert f"Found on this machine: Ollama (port {stub.port})" in text
    assert "Other models there: two" in text
    save(client, use=str(stub.port), openai_base_url="", openai_api_key="", openai_model="")
    assert json.loads(file.read_text()) == {
        "openai_base_url": f"http://127.0.0.1:{stub.port}/v1",
        "openai_model": "one",
    }
    assert "Found on this machine" not in page(client)


def test_a_server_without_a_chat_model_is_named_and_not_offered(unconnected: FlaskClient, stub: StubModel) -> None:
    stub.models = [{"id": "nomic-embed-text"}]
    unconnected.application.extensions["assistant"].local_servers = LocalServers(1, {"Ollama": stub.port})
    text = page(unconnected)
    assert "It is running, but has no chat model yet." in text
    assert 'name="use"' not in text


def test_a_model_that_is_away_is_a_banner_until_it_answers_again(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    banner = f"The model at <code>{stub.url}</code> could not be reached."
    assert banner not in page(client, "/")
    stub.replies.append(Reply(hang_before_headers=True))
    with monkeypatch.context() as impatient:
        impatient.setattr(connection_check, "TIMEOUT_SECONDS", 0.1)
        assert client.post("/api/model/test").json["ok"] is False
    assert banner in page(client, "/")
    assert client.post("/api/model/test").json["ok"] is True
    assert banner not in page(client, "/")


def test_the_page_says_where_the_file_is_and_that_there_is_none_yet(client: FlaskClient, file: Path) -> None:
    assert str(file) in page(client)
    assert "To change others, create" in page(client)
    file.write_text("{}")
    assert "To change others, create" not in page(client)


def test_what_a_conversation_decides_for_itself_is_set_and_no_more_than_that(client: FlaskClient) -> None:
    conversation = ask(client)["conversation_id"]
    client.patch(f"/api/conversations/{conversation}", json={"on_overflow": "ask"})
    status, where = post(client, f"/conversations/{conversation}/change", max_history_turns="3", history_strategy="")
    assert (status, where) == (303, f"/conversations/{conversation}")
    kept = client.get(f"/api/conversations/{conversation}").json
    assert (kept["max_history_turns"], kept["on_overflow"]) == (3, "ask")
    status, text = post(client, f"/conversations/{conversation}/change", max_history_turns="-1")
    assert status == 422
    assert 'max_history_turns is "-1"' in text


def test_a_broken_file_is_a_banner_on_every_page_and_vanishes_when_it_is_mended(
    client: FlaskClient, services: Services, file: Path
) -> None:
    conversation = ask(client)["conversation_id"]
    file.write_text('{\n  "max_history_turns": "ten"\n}')
    before = client.get("/api/settings/version").json["version"]
    until(lambda: services.settings.problem is not None)
    assert client.get("/api/settings/version").json["version"] != before
    for path in ("/", f"/conversations/{conversation}", "/documents", "/settings", "/settings?drawer=1"):
        text = page(client, path)
        assert 'settings.json line 2: max_history_turns is "ten"; it must be a whole number' in text
        assert "The last good values stay in force." in text
    assert f"Fix it in <code>{file}</code>" in page(client, "/")
    assert services.settings.current.max_history_turns == 5
    file.write_text(json.dumps({"max_history_turns": 7}))
    until(lambda: services.settings.problem is None)
    assert "settings.json line 2" not in page(client, "/")
    assert services.settings.current.max_history_turns == 7


def test_a_change_that_waits_for_a_restart_is_said_and_is_no_broken_file(
    client: FlaskClient, services: Services, file: Path
) -> None:
    assert "apply after a restart" in page(client)
    file.write_text('{"log_level": "DEBUG"}')
    until(lambda: services.settings.restart_required)
    assert client.get("/readyz").json["restart_required"] == ["log_level"]
    assert client.get("/readyz").json["settings_problem"] is None
    assert client.get("/api/settings").json["restart_required"] == ["log_level"]
    text = page(client, "/")
    assert "Restart the server to apply <code>log_level</code>." in text
    assert "Fix it" not in text
    row = re.findall(r'(?s)id="setting-(\w+)"(?:(?!</summary>).)*?needs restart', page(client))
    assert set(row) == {name for name in Settings.model_fields if not is_live(name)}
