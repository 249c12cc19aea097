"""What every page looks like: its theme, its sidebar open or folded, and the page of an error."""

import pytest
from flask.testing import FlaskClient

from tests.web.conftest import PAGE


def test_an_error_says_what_kind_it_is_and_leads_home(client: FlaskClient) -> None:
    missing = client.get("/conversations/9", headers=PAGE).text
    assert "<h1>Not found</h1>" in missing
    assert '<a href="/">Go to the start page</a>.</p>' in missing
    refused = client.post("/theme", data={"theme": "pink"}, headers=PAGE).text
    assert "<h1>Something went wrong</h1>" in refused
    assert (
        '<a href="/">Go to the start page</a>. Or go back in your browser: what you typed is still there.</p>'
        in refused
    )


def test_a_theme_is_kept_and_drawn_on_every_page(client: FlaskClient) -> None:
    for theme in ("light", "dark", "system"):
        response = client.post("/theme", data={"theme": theme}, headers={"Referer": "http://localhost/documents?tag=a"})
        assert (response.status_code, response.headers["Location"]) == (303, "/documents?tag=a")
        for address in ("/", "/documents", "/deleted", "/conversations/9"):
            assert f'data-theme="{theme}"' in client.get(address, headers=PAGE).text, (theme, address)


def test_a_theme_that_is_none_is_refused_and_a_cookie_with_one_is_ignored(empty: FlaskClient) -> None:
    assert empty.post("/theme", data={"theme": "pink"}).status_code == 422
    empty.set_cookie("theme", '"><script>')
    assert 'data-theme="system"' in empty.get("/").text


@pytest.mark.parametrize("referrer", ["http://evil.example/x", "http://localhost//evil.example", "", "nonsense"])
def test_choosing_a_theme_never_leads_to_another_host(empty: FlaskClient, referrer: str) -> None:
    response = empty.post("/theme", data={"theme": "dark"}, headers={"Referer": referrer})
    assert response.headers["Location"] == "/"


def test_a_folded_sidebar_is_drawn_folded(empty: FlaskClient) -> None:
    assert 'data-sidebar="closed"' not in empty.get("/").text
    empty.set_cookie("sidebar", "closed")
    assert 'data-sidebar="closed"' in empty.get("/").text
