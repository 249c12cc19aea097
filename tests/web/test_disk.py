"""How little room on the disk is told, to whom it matters."""

import logging
import shutil
from types import SimpleNamespace

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.web.conftest import PAGE, upload
from tests.web.test_metrics import figures

WARNING = "Only 5.0 of 100.0 GB are free on the server\u2019s disk."


@pytest.fixture
def nearly_full(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimpleNamespace(free=5_000_000_000, used=95_000_000_000, total=100_000_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: disk)


def test_metrics_have_the_room_and_what_takes_it(client: FlaskClient, services: Services) -> None:
    document = upload(client, "The geese sleep by the lake.")
    services.library.trash(document["document_id"])
    values = figures(client)
    assert 0 < values["disk_free_bytes"] < values["disk_bytes"]
    assert values["stored_bytes trash"] == document["size_bytes"]
    assert values["stored_bytes database"] > values["stored_bytes vectors"] > 0
    assert values["stored_bytes index"] >= 0


@pytest.mark.usefixtures("nearly_full")
def test_administrators_read_that_less_than_a_tenth_is_free(client: FlaskClient) -> None:
    assert WARNING in client.get("/", headers=PAGE).text


def test_nobody_reads_it_while_there_is_room(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=11e9, used=89e9, total=100e9))
    assert "GB are free" not in client.get("/", headers=PAGE).text


@pytest.mark.usefixtures("nearly_full")
def test_the_log_says_it_once(services: Services, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rag_assistant"):
        services.disk.watch()
        services.disk.watch()
    lines = [record.getMessage() for record in caplog.records if "GB" in record.getMessage()]
    assert lines == ["Only 5.0 of 100.0 GB are free on the disk of the data folder."]
