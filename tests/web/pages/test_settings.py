"""The page of the settings, and the banner for a file that is broken."""

import html
import json
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.llm import connection_check
from rag_assistant.llm.local_servers import LocalServers
from rag_assistant.services import Services
from rag_assistant.settings.schema import Settings, is_live
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, post, until


@pytest.fixture
def file(environment: dict[str, str]) -> Path:
    return Path(environment["SETTINGS_FILE"])


def page(client: FlaskClient, path: str = "/settings") -> str:
    response = client.get(path, headers=PAGE)
    assert response.status_code == 200, response.text
    return html.unescape(response.text)


def test_every_setting_stands_on_the_page_with_what_is_allowed(empty: FlaskClient) -> None:
    text = page(empty)
    for name in Settings.model_fields:
        assert f'id="setting-{name}"' in text
    assert "a whole number, 0 or more, or null for no limit" in text
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


@pytest.mark.parametrize("known", [None, '{\n  "max_history_turns": 5\n}\n'])
def test_what_connects_a_model_is_ready_to_be_pasted(
    client: FlaskClient,
    services: Services,
    file: Path,
    stub: StubModel,
    monkeypatch: pytest.MonkeyPatch,
    known: str | None,
) -> None:
    assert "Connect a model" not in page(client)
    monkeypatch.setattr(type(services.models), "connected", False)
    stub.models = [{"id": "one"}, {"id": "two"}]
    monkeypatch.setattr(services, "local_servers", LocalServers(1, {"Ollama": stub.port}))
    if known:
        file.write_text(known)
    text = page(client)
    assert "Connect a model" in text
    blocks = re.findall(r'<pre class="line"[^>]*>(.*?)</pre>', text, re.DOTALL)
    pasted = [json.loads(known.replace("{", "{\n" + block, 1) if known else block) for block in blocks]
    values = [Settings.model_validate(one) for one in pasted]
    assert [(one.openai_base_url, one.openai_api_key, one.openai_model) for one in values] == [
        (stub.url, None, "one"),
        ("https://api.openai.com/v1", "your key", "gpt-4o-mini"),
    ]
    assert f"Found on this machine: Ollama (port {stub.port})" in text
    assert "Other models there: two" in text
    assert "A local server, such as Ollama" not in text
    assert "OPENAI_API_KEY=your-key" in text
    assert 'class="connect"' not in page(client, "/settings?filter=log_level")


def test_a_server_without_a_chat_model_is_named_and_not_offered(
    client: FlaskClient, services: Services, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(services.models), "connected", False)
    stub.models = [{"id": "nomic-embed-text"}]
    monkeypatch.setattr(services, "local_servers", LocalServers(1, {"Ollama": stub.port}))
    text = page(client)
    assert "It is running, but has no chat model yet." in text
    assert stub.url not in re.sub(r"(?s)<details.*", "", text)


def test_a_connected_model_is_named_and_tested_here(client: FlaskClient, stub: StubModel) -> None:
    text = page(client)
    assert f"Questions go to <code>{stub.url}</code>, to the model <code>stub-model</code>." in text
    assert "Test connection" in text


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
    assert "To change them, create" in page(client)
    file.write_text("{}")
    assert "To change them, create" not in page(client)


def test_what_a_conversation_decides_for_itself_is_set_here_and_no_more_than_that(client: FlaskClient) -> None:
    conversation = ask(client)["conversation_id"]
    assert "This conversation" in page(client, f"/settings?conversation={conversation}")
    assert client.get("/settings?conversation=77", headers=PAGE).status_code == 404
    client.patch(f"/api/conversations/{conversation}", json={"on_overflow": "ask"})
    status, where = post(client, f"/conversations/{conversation}/choices", max_history_turns="3", history_strategy="")
    assert (status, where) == (303, f"/conversations/{conversation}")
    kept = client.get(f"/api/conversations/{conversation}").json
    assert (kept["max_history_turns"], kept["on_overflow"]) == (3, "ask")
    status, text = post(client, f"/conversations/{conversation}/choices", max_history_turns="-1")
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
