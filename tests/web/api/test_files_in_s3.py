"""Documents whose files lie in S3: everything works as with a folder, and an outage only takes time."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.documents import embedding
from rag_assistant.files import s3 as module
from rag_assistant.records.errors import FilesUnavailable
from rag_assistant.services import Services
from tests.testkit.s3_server import BUCKET, FaultyProxy, Passing, S3Server, breaking_off, hanging, refusal
from tests.testkit.samples import sample
from tests.web.conftest import until

TEXT = b"Geese hiss at strangers."


@pytest.fixture
def environment(
    environment: dict[str, str],
    s3_proxy: FaultyProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> dict[str, str]:
    monkeypatch.setattr(embedding, "RETRY_BACKOFF_SECONDS", (0.1,) * 6)
    if "hanging" in request.node.name:
        monkeypatch.setattr(module, "REQUEST_TIMEOUT_SECONDS", 2.0)
    monkeypatch.setattr(module, "RETRIES", 0)
    monkeypatch.setattr("rag_assistant.services.FILES_SECONDS", 0.0)
    return environment | {
        "FILES_URL": f"s3://{BUCKET}/{tmp_path.name}",
        "S3_ENDPOINT_URL": s3_proxy.url,
        "S3_REGION": "us-east-1",
    }


@pytest.fixture
def stored(s3: S3Server, tmp_path: Path) -> Callable[[], set[str]]:
    return lambda: s3.names(tmp_path.name)


def send(client: FlaskClient, content: bytes = TEXT, name: str = "geese.txt") -> Any:
    return client.post("/api/documents", data={"file": (io.BytesIO(content), name)})


def ready(client: FlaskClient, content: bytes = TEXT) -> int:
    response = send(client, content)
    assert response.status_code == 202, response.json
    number: int = response.json["document_id"]
    until(lambda: client.get(f"/api/documents/{number}").json["state"] == "ready")
    return number


def test_a_document_lies_in_the_bucket_alone_and_is_read_shown_and_deleted_there(
    client: FlaskClient, services: Services, stored: Callable[[], set[str]]
) -> None:
    number = ready(client)
    assert len(stored()) == 1
    assert list((services.data_dir / "transfers").iterdir()) == []
    assert not (services.data_dir / "uploads").exists()
    with client.get(f"/api/documents/{number}/file", buffered=True) as whole:
        assert (whole.status_code, whole.data) == (200, TEXT)
        assert whole.headers["Content-Length"] == str(len(TEXT))
    with client.get(f"/api/documents/{number}/file", headers={"Range": "bytes=6-9"}, buffered=True) as part:
        assert (part.status_code, part.data) == (206, b"hiss")
        assert part.headers["Content-Range"] == f"bytes 6-9/{len(TEXT)}"
    again = client.get(f"/api/documents/{number}/file", headers={"If-None-Match": whole.headers["ETag"]})
    assert again.status_code == 304
    assert client.head(f"/api/documents/{number}/file").headers["Content-Length"] == str(len(TEXT))
    assert client.post(f"/api/documents/{number}/retry", json={}).status_code == 202
    until(lambda: client.get(f"/api/documents/{number}").json["state"] == "ready")
    assert client.delete(f"/api/documents/{number}").status_code == 204
    assert stored() == set()


def test_the_same_content_is_kept_once(client: FlaskClient, stored: Callable[[], set[str]]) -> None:
    ready(client)
    assert send(client, name="copy.txt").json["new"] is False
    assert len(stored()) == 1


@pytest.mark.parametrize(
    ("fault", "status", "told"),
    sample(
        [
            (refusal(404, "NoSuchBucket"), 503, "There is no bucket"),
            (refusal(503, "SlowDown"), 503, "SlowDown"),
            (refusal(507, "XMinioStorageFull"), 507, "is full"),
            (breaking_off, 503, "cannot be reached"),
            (hanging, 503, "did not respond in time"),
        ]
    ),
    ids=["no-bucket", "busy", "full", "broken-off", "hanging"],
)
def test_an_upload_that_the_bucket_does_not_take_is_refused_with_the_reason_and_leaves_nothing(
    client: FlaskClient,
    services: Services,
    s3_proxy: FaultyProxy,
    stored: Callable[[], set[str]],
    fault: Any,
    status: int,
    told: str,
) -> None:
    s3_proxy.fault = fault
    response = send(client)
    assert response.status_code == status
    assert told in response.json["error"]["message"]
    assert response.headers["Retry-After"]
    assert client.get("/api/documents").json["documents"] == []
    assert list((services.data_dir / "transfers").iterdir()) == []
    assert stored() == set()
    s3_proxy.fault = lambda _request: False
    ready(client)


@pytest.mark.long
@pytest.mark.parametrize(
    "fault", [pytest.param(refusal(503, "SlowDown"), marks=pytest.mark.long), breaking_off], ids=["busy", "broken-off"]
)
def test_an_outage_while_a_document_is_read_is_shown_and_waited_for(
    client: FlaskClient, s3_proxy: FaultyProxy, fault: Any
) -> None:
    s3_proxy.fault = lambda request: request.command != "PUT" and fault(request)
    number = send(client).json["document_id"]
    until(lambda: client.get(f"/api/documents/{number}").json["reason"])
    waiting = client.get(f"/api/documents/{number}").json
    assert waiting["state"] in ("queued", "reading")
    assert "Trying again in 0.1 seconds." in waiting["reason"]
    s3_proxy.fault = lambda _request: False
    until(lambda: client.get(f"/api/documents/{number}").json["state"] == "ready")
    assert client.get(f"/api/documents/{number}").json["reason"] is None


def test_while_the_bucket_is_away_files_are_503_and_questions_are_answered(
    client: FlaskClient, s3_proxy: FaultyProxy, stub: Any
) -> None:
    number = ready(client)
    until(lambda: client.get("/readyz").json["parts"]["files"] == "ready")
    s3_proxy.fault = refusal(403, "AccessDenied")
    response = client.get(f"/api/documents/{number}/file")
    assert (response.status_code, response.json["error"]["type"]) == (503, "FilesUnavailable")
    assert "rejected the keys" in response.json["error"]["message"]
    assert client.post(f"/api/documents/{number}/retry", json={}).status_code == 503
    assert client.get("/api/search?q=geese").json["passages"]
    ready_now = client.get("/readyz")
    assert (ready_now.status_code, ready_now.json["parts"]["files"]) == (200, "unreachable")


def test_a_document_deleted_while_the_bucket_is_away_is_gone_at_once_and_its_file_later(
    client: FlaskClient, services: Services, s3_proxy: FaultyProxy, stored: Callable[[], set[str]]
) -> None:
    number = ready(client)
    s3_proxy.fault = refusal(503, "SlowDown")
    assert client.delete(f"/api/documents/{number}").status_code == 204
    assert client.get(f"/api/documents/{number}").status_code == 404
    assert len(stored()) == 1
    s3_proxy.fault = lambda _request: False
    until(lambda: stored() == set())
    until(lambda: services.documents.files_to_delete() == [])


@pytest.mark.long
def test_a_file_that_is_gone_or_another_one_fails_its_document_with_the_reason(
    client: FlaskClient, services: Services, s3: S3Server, stored: Callable[[], set[str]], tmp_path: Path
) -> None:
    number = ready(client)
    (name,) = stored()
    (s3.folder / tmp_path.name / name).write_bytes(b"Swans sing.")
    client.post(f"/api/documents/{number}/retry", json={})
    until(lambda: client.get(f"/api/documents/{number}").json["state"] == "failed")
    assert "is not the one that was uploaded" in client.get(f"/api/documents/{number}").json["reason"]
    services.open_files(f"s3://{BUCKET}/{tmp_path.name}").drop(name)
    gone = client.get(f"/api/documents/{number}/file")
    assert gone.status_code == 410
    assert gone.json["error"]["type"] == "FileMissing"
    assert "is missing. Its text" in gone.json["error"]["message"]


def test_a_file_that_changed_in_its_store_is_not_handed_out_and_that_is_told(
    client: FlaskClient, s3: S3Server, tmp_path: Path, stored: Callable[[], set[str]], caplog: pytest.LogCaptureFixture
) -> None:
    number = ready(client)
    (name,) = stored()
    (s3.folder / tmp_path.name / name).write_bytes(TEXT[::-1])
    for headers in ({}, {"Range": "bytes=6-9"}):
        response = client.get(f"/api/documents/{number}/file", headers=headers)
        assert (response.status_code, response.json["error"]["type"]) == (410, "FileDamaged")
        assert "is not the one that was uploaded. Add the document again." in response.json["error"]["message"]
    assert f"Document {number}, geese.txt, in s3://" in caplog.text


@pytest.mark.long
@pytest.mark.parametrize("size", ["0", "5", "25", "999999999999"])
@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_store_that_lies_about_a_size_is_503_or_not_believed(
    client: FlaskClient, s3_proxy: FaultyProxy, size: str, method: str
) -> None:
    def lying(request: Passing) -> bool:
        if request.command == method:
            request.send_response_only(200)
            request.send_header("Content-Length", size)
            request.end_headers()
            request.wfile.write(TEXT if method == "GET" else b"")
        return request.command == method

    number = ready(client)
    s3_proxy.fault = lying
    response = client.get(f"/api/documents/{number}/file")
    if response.status_code == 200:
        assert response.data == TEXT
    else:
        kinds = {503: "FilesUnavailable", 410: "FileDamaged"}
        assert response.json["error"]["type"] == kinds[response.status_code]
    response.close()


@pytest.mark.parametrize("status", sample([301, 302, 303, 307, 308]))
def test_a_store_leads_to_no_other_server(
    client: FlaskClient, services: Services, s3: S3Server, s3_proxy: FaultyProxy, status: int, tmp_path: Path
) -> None:
    number, other = ready(client), FaultyProxy(s3.port)

    def leading_on(request: Passing) -> bool:
        request.send_response_only(status)
        request.send_header("Location", f"{other.url}{request.path}")
        request.send_header("Content-Length", "0")
        request.end_headers()
        return True

    s3_proxy.fault = leading_on
    response = client.get(f"/api/documents/{number}/file")
    (stored,) = services.documents.known_files()
    with pytest.raises(FilesUnavailable, match="leads to another server"):
        services.uploads.store.open(stored)  # This asks for the size.
    with pytest.raises(FilesUnavailable, match="leads to another server"):
        services.uploads.store.drop(stored)
    (tmp_path / "new.part").write_bytes(TEXT)
    with pytest.raises(FilesUnavailable, match="leads to another server"):
        services.uploads.store.keep(tmp_path / "new.part", "c" * 32)
    with pytest.raises(FilesUnavailable, match="leads to another server"):
        list(services.uploads.store.stored())
    other.close()
    assert (response.status_code, other.seen) == (503, [])
    assert "leads to another server, which is not asked." in response.json["error"]["message"]
