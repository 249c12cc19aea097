"""Every route, asked for nonsense: an answer that names what is wrong, and never an error of ours."""

import random
import re
from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pydantic import BaseModel

from tests.web.conftest import ask, upload

SEED = 20
IDS = ("1", "1", "2", "0", "999999", str(2**31), str(2**63), "9" * 40, "-1", "x", "%00", "1%2F1")
STATUSES = {400, 401, 403, 404, 405, 409, 410, 411, 413, 415, 416, 422, 429}
# A model that refuses, or a turn that cannot be stopped any more, is not an error of ours.
OUTSIDE = {502, 503, 504}
VALUES: tuple[object, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, 1e308, -0.5, "", " ", "x", "1", "-1", "\x00", "\ud800"),
    *("a" * 5000, "ß🦢\u202e", "<b>", "%s{}", "../..", "2026-99-99", "[", '"', [], {}, [[]], ["x"], [1, -1, 2**63]),
    *({"x": 1}, {"document_ids": [1]}, {"tags": [""]}, "1,2", "99999999999999999999", "null", "NaN", "true"),
)
HEADERS: tuple[dict[str, str], ...] = (
    *({}, {}, {}, {"Accept": "text/html"}, {"Accept": "application/json"}, {"Accept": "x"}, {"Last-Event-ID": "-1"}),
    *({"Last-Event-ID": "9" * 40}, {"Idempotency-Key": "k" * 300}, {"Idempotency-Key": "ü"}, {"Range": "bytes=9-1"}),
    *({"If-None-Match": '"'}, {"Accept-Encoding": "br;q=x"}, {"Cookie": "theme=\x01; session=="}),
)


def models(base: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    """Return every class of a request or setting."""
    for one in base.__subclasses__():
        yield one
        yield from models(one)


def names() -> list[str]:
    """Return every name of a field, and those that only addresses and forms use."""
    ours = (one for one in models() if one.__module__.startswith("rag_assistant."))
    fields = {name for one in ours for name in one.model_fields}
    return sorted(fields | {"q", "limit", "before", "after", "start", "end", "format", "file", "page", "n"})


@pytest.mark.parametrize("count", [1, pytest.param(400, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_no_request_is_an_error_of_ours(app: Flask, client: FlaskClient, count: int) -> None:
    ask(client)
    upload(client, b"Geese fly south in autumn.", "geese.txt")
    chance, fields = random.Random(SEED), names()
    assert len(fields) > 30

    def some() -> dict[str, object]:
        return {name: chance.choice(VALUES) for name in chance.sample(fields, chance.randrange(6))}

    seen = set()
    for rule in app.url_map.iter_rules():
        for method in sorted((rule.methods or set()) - {"OPTIONS", "HEAD"}):
            for _ in range(count):
                path = re.sub(r"<[^>]+>", lambda _: chance.choice(IDS), rule.rule)
                where = some() if chance.random() < 0.5 else {}
                query = {name: str(value).encode("utf-8", "replace") for name, value in where.items()}
                kind, odd = chance.choice(("json", "json", "form", "raw", "none")), some()
                body: dict[str, object] = {}
                if kind == "json":
                    body["json"] = odd if chance.random() < 0.8 else chance.choice(VALUES)
                elif kind == "form":
                    body["data"] = {name: str(value).encode("utf-8", "replace") for name, value in odd.items()}
                elif kind == "raw":
                    body["data"] = chance.choice((b"\xff\xfe", b"{", b"[" * 50_000, b'{"question": 1e999}', b"NaN"))
                    body["content_type"] = chance.choice(("application/json", "multipart/form-data", "text/plain"))
                asked = {"method": method, "query_string": query, "headers": chance.choice(HEADERS), **body}
                with client.open(path, **asked) as response:
                    status = response.status_code
                    assert status < 400 or status in STATUSES | OUTSIDE, (path, asked, response.data[:500])
                    if status in STATUSES and path.startswith("/api/"):
                        assert response.is_json, (path, asked)
                        assert response.json["error"], (path, asked)
                seen.add(status // 100)
    assert {2, 4} <= seen
