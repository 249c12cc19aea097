"""A folder and a bucket keep files alike: streamed, never over another one, and gone when they are dropped."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import uuid
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx2
import pytest

from rag_assistant.files import FileStore
from rag_assistant.files import s3 as module
from rag_assistant.files.s3 import S3Files
from rag_assistant.files.store import FolderFiles
from rag_assistant.records.errors import FileDamaged, FilesUnavailable, StorageFailed
from tests.testkit.lying_endpoint import Shape, lying_endpoint
from tests.testkit.s3_server import (
    BUCKET,
    KEY,
    SECRET,
    Fault,
    FaultyProxy,
    Passing,
    S3Server,
    breaking_off,
    hanging,
    refusal,
)
from tests.testkit.server_process import free_port

TEXT = b"Geese hiss. " * 20
LONG_AGO = "Thu, 01 Jan 2026 00:00:00 GMT"
PART_BYTES = 100_000


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", PART_BYTES)


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    return tmp_path.name


@pytest.fixture
def s3_files(s3_proxy: FaultyProxy, prefix: str, tmp_path: Path) -> S3Files:
    return S3Files(f"s3://{BUCKET}/{prefix}", s3_proxy.url, "us-east-1", True, tmp_path / "transfers")


@pytest.fixture(params=["folder", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    if request.param == "folder":
        return FolderFiles(tmp_path / "uploads", "us")
    found: S3Files = request.getfixturevalue("s3_files")
    return found


def keep(files: FileStore, content: bytes, name: str = "") -> str:
    name = name or uuid.uuid4().hex
    files.incoming.mkdir(exist_ok=True)
    path = files.incoming / f"{name}.part"
    path.write_bytes(content)
    files.keep(path, name)
    assert not path.exists()
    return name


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("size", [1, 1000, PART_BYTES, PART_BYTES + 1], ids=["1", "1000", "part", "part+1"])
def test_a_file_comes_back_as_it_went(files: FileStore, size: int) -> None:
    content = os.urandom(size)
    name = keep(files, content)
    with files.open(name) as file:
        assert file.read() == content
    with files.verified(name, sha256(content)) as file:
        assert file.seek(size // 2) == size // 2
        assert file.read(10) == content[size // 2 : size // 2 + 10]
        assert file.seek(-1, os.SEEK_END) == size - 1
        assert file.read() == content[-1:]
    with files.local(name, sha256(content)) as path:
        assert path.read_bytes() == content
    (stored,) = files.stored()
    assert (stored.name, stored.size_bytes) == (name, size)


def test_a_file_that_is_not_there_is_so_for_every_way_to_it(files: FileStore) -> None:
    for use in (lambda: files.open("a" * 32), lambda: files.local("a" * 32, "").__enter__()):
        with pytest.raises(FileNotFoundError):
            use()
    files.drop("a" * 32)
    assert list(files.stored()) == []
    files.check()


def test_a_dropped_file_is_gone(files: FileStore) -> None:
    name = keep(files, TEXT)
    files.drop(name)
    assert list(files.stored()) == []
    with pytest.raises(FileNotFoundError):
        files.open(name)


def test_nothing_of_a_fetched_file_stays_on_this_machine(s3_files: S3Files) -> None:
    name = keep(s3_files, TEXT)
    with s3_files.local(name, sha256(TEXT)) as path:
        assert path.parent == s3_files.incoming
    with pytest.raises(FileDamaged, match="is not the one that was uploaded"), s3_files.local(name, sha256(b"swan")):
        pass
    assert list(s3_files.incoming.iterdir()) == []


def test_a_disk_here_that_is_full_is_told_as_that(s3_files: S3Files, monkeypatch: pytest.MonkeyPatch) -> None:
    name = keep(s3_files, TEXT)
    s3_files.incoming = Path("/dev")
    full = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - the store closes it
    monkeypatch.setattr("rag_assistant.files.s3.tempfile.NamedTemporaryFile", lambda **_: full)
    with pytest.raises(StorageFailed, match="^A file could not be copied to disk"), s3_files.local(name, ""):
        pass


def test_what_else_lies_in_the_bucket_is_none_of_our_business(s3_files: S3Files, s3: S3Server, prefix: str) -> None:
    name = keep(s3_files, TEXT)
    (s3.folder / prefix / "report.pdf").write_bytes(b"theirs")
    (s3.folder / prefix / "below").mkdir()
    (s3.folder / prefix / "below" / ("a" * 32)).write_bytes(b"theirs")
    assert [one.name for one in s3_files.stored()] == [name]


def test_a_file_is_sent_on_the_condition_that_there_is_none_of_its_name(
    s3_files: S3Files, s3_proxy: FaultyProxy
) -> None:
    keep(s3_files, TEXT)
    ((_, _, headers),) = [one for one in s3_proxy.seen if one[0] == "PUT"]
    told = {name.lower(): value for name, value in headers.items()}
    assert told["if-none-match"] == "*"
    assert told["content-md5"] == base64.b64encode(hashlib.md5(TEXT, usedforsecurity=False).digest()).decode()


def test_an_attempt_whose_answer_was_lost_counts_but_no_file_takes_the_place_of_another(
    s3_files: S3Files, s3_proxy: FaultyProxy
) -> None:
    name = keep(s3_files, TEXT)
    s3_proxy.fault = refusal(412, "PreconditionFailed", "PUT")
    keep(s3_files, TEXT, name)
    with pytest.raises(FileDamaged):
        keep(s3_files, b"Swans sing.", name)
    assert s3_files.open(name).read() == TEXT


def test_a_file_is_sent_again_after_a_failure(s3_files: S3Files, s3_proxy: FaultyProxy) -> None:
    def once(request: Passing) -> bool:
        s3_proxy.fault = lambda _: False
        return breaking_off(request)

    content = TEXT * 1000  # Larger than a part.
    s3_proxy.fault = once
    name = keep(s3_files, content)
    assert [method for method, _, _ in s3_proxy.seen] == ["PUT", "PUT"]
    assert s3_files.open(name).read() == content


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (404, "NoSuchBucket", "There is no bucket at s3://documents/.* Create it, or correct files_url."),
        (403, "AccessDenied", "rejected the keys. They need permission to list, read, write and delete there."),
        (403, "InvalidAccessKeyId", "does not recognise the key in AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and s3_region"),
        (403, "RequestTimeTooSkewed", "This machine's clock and that of s3://.* differ too much"),
        (400, "AuthorizationHeaderMalformed", "is in another region. Correct s3_region."),
        (501, "NotImplemented", "does not support conditional writes"),
        (503, "SlowDown", r"is rejecting requests at the moment \(SlowDown\)"),
    ],
)
def test_what_s3_refuses_is_a_sentence_that_says_what_to_do(
    s3_files: S3Files, s3_proxy: FaultyProxy, status: int, code: str, told: str
) -> None:
    s3_proxy.fault = refusal(status, code)
    for use in (s3_files.check, lambda: list(s3_files.stored()), lambda: keep(s3_files, TEXT, "b" * 32)):
        with pytest.raises(FilesUnavailable, match=told):
            use()
        (s3_files.incoming / f"{'b' * 32}.part").unlink(missing_ok=True)
    with pytest.raises(FilesUnavailable):  # HEAD has no body that would tell why.
        s3_files.open("a" * 32)


def test_a_refusal_is_told_by_the_status_and_not_by_figures_in_a_name(s3_files: S3Files, s3_proxy: FaultyProxy) -> None:
    s3_proxy.fault = refusal(403, "AccessDenied")
    with pytest.raises(FilesUnavailable, match="rejected the keys"):  # HEAD has no body that would tell why.
        s3_files.open("a" * 32)
    s3_proxy.fault = breaking_off
    with pytest.raises(FilesUnavailable, match="cannot be reached"):
        keep(s3_files, TEXT, "403" * 10 + "40")


def test_a_bucket_that_is_full_is_told_apart(s3_files: S3Files, s3_proxy: FaultyProxy) -> None:
    s3_proxy.fault = refusal(507, "XMinioStorageFull")
    with pytest.raises(StorageFailed, match="is full. Nothing that was stored is lost") as raised:
        keep(s3_files, TEXT)
    assert not isinstance(raised.value, FilesUnavailable)


@pytest.mark.long
def test_what_is_away_hangs_or_breaks_off_is_unavailable_and_leaves_nothing_half(
    s3_files: S3Files,
    s3_proxy: FaultyProxy,
    s3: S3Server,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = keep(s3_files, TEXT)
    monkeypatch.setattr(module, "REQUEST_TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(module, "RETRIES", 0)
    files = S3Files(f"s3://{BUCKET}/{prefix}", s3_proxy.url, None, True, tmp_path)
    for fault, told in ((breaking_off, "cannot be reached"), (hanging, "did not respond in time")):
        s3_proxy.fault = fault
        with pytest.raises(FilesUnavailable, match=told):
            keep(files, TEXT, "b" * 32)
        s3_proxy.fault = when_reading(fault)
        with pytest.raises(FilesUnavailable, match=told), files.local(name, ""):
            pass
    gone = S3Files(f"s3://{BUCKET}/{prefix}", f"http://127.0.0.1:{free_port()}", None, True, tmp_path)
    with pytest.raises(FilesUnavailable, match="cannot be reached"):
        keep(gone, TEXT, "b" * 32)
    assert s3.names(prefix) == {name}


def test_a_file_that_is_shorter_than_was_said_is_damaged(
    s3_files: S3Files, s3_proxy: FaultyProxy, prefix: str, tmp_path: Path
) -> None:
    def longer(request: BaseHTTPRequestHandler) -> bool:
        if request.command == "HEAD":
            request.send_response_only(200)
            for header, value in {"Content-Length": "500", "ETag": '"a"', "Last-Modified": LONG_AGO}.items():
                request.send_header(header, value)
            request.end_headers()
        return request.command == "HEAD"

    name = keep(s3_files, TEXT)
    files = S3Files(f"s3://{BUCKET}/{prefix}", s3_proxy.url, None, True, tmp_path)
    s3_proxy.fault = longer
    with pytest.raises(FileDamaged), files.local(name, ""):
        pass
    with pytest.raises(FileDamaged), files.open(name) as file:
        file.read()


def when_reading(fault: Fault) -> Fault:
    return lambda request: request.command == "GET" and fault(request)


def test_missing_keys_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    files = S3Files("s3://documents", f"http://127.0.0.1:{free_port()}", None, True, tmp_path)
    with pytest.raises(FilesUnavailable) as raised:
        files.check()
    assert str(raised.value) == (
        f"There are no keys for {files.address}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
    )


def test_the_keys_may_be_those_of_the_role_of_the_machine(
    s3_proxy: FaultyProxy, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def role(request: bytes) -> Shape:
        keys = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": "", "Expiration": "2999-01-01T00:00:00Z"}
        return Shape(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + json.dumps(keys).encode())

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with lying_endpoint(role) as url:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)
        files = S3Files(f"s3://{BUCKET}/{prefix}", s3_proxy.url, None, True, tmp_path / "transfers")
        name = keep(files, TEXT)
    assert files.open(name).read() == TEXT


@pytest.mark.parametrize(
    ("url", "endpoint", "region", "path_style", "expected"),
    [
        ("s3://geese/shelf/", "https://s3.example/", "eu-central-1", False, "https://geese.s3.example/shelf/"),
        ("s3://geese/shelf", "https://s3.example", None, True, "https://s3.example/geese/shelf/"),
        ("s3://geese", None, "eu-central-1", True, "https://geese.s3.eu-central-1.amazonaws.com/"),
        ("s3://geese", None, None, True, "https://geese.s3.amazonaws.com/"),
    ],
)
def test_the_name_of_the_bucket_is_in_the_host_or_in_the_path(
    url: str,
    endpoint: str | None,
    region: str | None,
    path_style: bool,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the addresses are looked at: there are no such hosts."""
    sent: list[httpx2.URL] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.url)
        return httpx2.Response(404, stream=httpx2.ByteStream(b""))

    monkeypatch.setattr(module, "BoundedTransport", lambda _: httpx2.MockTransport(answer))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    S3Files(url, endpoint, region, path_style, tmp_path).drop("a" * 32)
    assert str(sent[0].copy_with(query=None)).removesuffix("?") == expected + "a" * 32
    assert f"/{region or 'us-east-1'}/s3/" in sent[0].params["X-Amz-Credential"]


def listing(*pages: str) -> Fault:
    """Respond with the pages of a list, and with the last one again and again."""
    left = list(pages)

    def respond(request: Passing) -> bool:
        body = (left.pop(0) if len(left) > 1 else left[0]).encode()
        request.send_response_only(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
        return True

    return respond


def page(*keys: str, token: str = "") -> str:
    about = "<Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag>"
    contents = "".join(f"<Contents><Key>{key}</Key>{about}</Contents>" for key in keys)
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    return f"<ListBucketResult {space}><EncodingType>url</EncodingType>{more}{contents}</ListBucketResult>"


def test_keys_of_any_letters_are_listed_and_read_in_pages(
    s3_files: S3Files, s3: S3Server, s3_proxy: FaultyProxy, prefix: str
) -> None:
    names = ["a b+c%20d&e.md", "gänse <1>.txt", "shelf/鵝?#.txt", *(f"shelf/{number}" for number in range(1100))]
    for name in names:
        (s3.folder / prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (s3.folder / prefix / name).write_bytes(TEXT)
    marks = {file.name: mark for file, mark in s3_files.objects()}
    assert set(marks) == set(names)
    assert len([one for one in s3_proxy.seen if "list-type" in one[1]]) == 2
    for name in names[:3]:
        with s3_files.open(name) as file:
            assert file.read() == TEXT
        assert marks[name].startswith(f"{len(TEXT)} ")


def test_what_a_list_has_of_others_is_left_out(s3_files: S3Files, s3_proxy: FaultyProxy, prefix: str) -> None:
    s3_proxy.fault = listing(page(f"{prefix}/a+b%2Bc", f"{prefix}/folder/", f"{prefix}/", "elsewhere/d"))
    assert [(file.name, mark) for file, mark in s3_files.objects()] == [("a b+c", '1 "e"')]


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        ([page("a", token="t")], "does not end its list of files"),
        ([page("a", token="t"), page("a", token="u"), page("a", token="t"), page("a")], "does not end its list"),
        ([page("a").replace("<Contents>", "<IsTruncated>true</IsTruncated><Contents>")], "does not end its list"),
        (["geese"], "does not list its files as S3 does"),
        ([""], "does not list its files as S3 does"),
        ([page("a").replace("2026-01-01", "2026-13-01")], "does not list its files as S3 does"),
        ([page("a").replace("<Size>1<", f"<Size>{'1' * 5000}<")], "does not list its files as S3 does"),
        ([page("a").replace("<Key>a</Key>", "")], "does not list its files as S3 does"),
        ([f"<!DOCTYPE x [<!ENTITY a 'b'>]>{page('&a;')}"], "does not list its files as S3 does"),
    ],
)
def test_a_list_that_lies_is_refused(
    s3_proxy: FaultyProxy, pages: list[str], told: str, tmp_path: Path, s3_files: S3Files
) -> None:
    s3_proxy.fault = listing(*pages)
    with pytest.raises(FilesUnavailable, match=told):
        list(S3Files(f"s3://{BUCKET}", s3_proxy.url, None, True, tmp_path).objects())


def test_a_list_that_never_ends_is_given_up(
    s3_files: S3Files, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PAGES", 20)
    s3_proxy.fault = lambda request: listing(page("a", token=f"t{len(s3_proxy.seen)}"))(request)
    with pytest.raises(FilesUnavailable, match="does not end its list of files"):
        list(s3_files.objects())
    assert len(s3_proxy.seen) == 20


CONSTANT = """
import os, resource, sys, uuid
from pathlib import Path
from rag_assistant.files.s3 import S3Files
files = S3Files(sys.argv[1], sys.argv[2], "us-east-1", True, Path(sys.argv[3]))
def go(megabytes):
    path, name = Path(sys.argv[3]) / "big.part", uuid.uuid4().hex
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1_000_000))
    files.keep(path, name)
    with files.local(name, "") as path:
        assert path.stat().st_size == megabytes * 1_000_000
    files.drop(name)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
go(20)
print(go(20), go(150))
"""


@pytest.mark.long
def test_memory_does_not_depend_on_the_size_of_a_file(s3: S3Server, prefix: str, tmp_path: Path) -> None:
    program = [sys.executable, "-c", CONSTANT, f"s3://{BUCKET}/{prefix}", s3.url, str(tmp_path)]
    small, large = map(int, subprocess.check_output(program, text=True).split())
    assert large < small + 20
