"""A browser for which every other host is one place of ours that counts its visitors."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright

from tests.browser.conftest import CHROMIUM, FLAGS, MILLISECONDS_TO_WAIT
from tests.browser.hostile.payloads import EVERY, PAYLOADS, Payload, joined
from tests.browser.hostile.seeding import seed
from tests.browser.hostile.watch import Elsewhere, Watch
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import PROJECT, ServerProcess
from tests.testkit.stub_model import StubModel


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(PAYLOADS[::EVERY], id="sample"),
        pytest.param(PAYLOADS, id="whole", marks=pytest.mark.long),
    ],
)
def corpus(request: pytest.FixtureRequest) -> list[Payload]:
    """The hostile texts of a test: some of every kind, or all."""
    found: list[Payload] = request.param
    return found


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Elsewhere]:
    running = Elsewhere()
    yield running
    running.close()


@pytest.fixture(scope="session")
def lured_chromium(playwright: Playwright, elsewhere: Elsewhere) -> Iterator[Browser]:
    rules = f"--host-resolver-rules=MAP elsewhere.example 127.0.0.1:{elsewhere.port}"
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, rules])
    yield browser
    browser.close()


@pytest.fixture
def watch(lured_chromium: Browser, elsewhere: Elsewhere) -> Iterator[Watch]:
    context = lured_chromium.new_context()
    context.set_default_timeout(MILLISECONDS_TO_WAIT)
    yield Watch(context, elsewhere)
    context.close()


@pytest.fixture(scope="session")
def own_elements() -> list[str]:
    """The elements that our templates, our scripts and the Markdown of an answer may make."""
    from rag_assistant.web.markdown.render import TAGS

    templates = "".join(path.read_text() for path in sorted((PROJECT / "templates").glob("*.html")))
    scripts = "".join(path.read_text() for path in sorted((PROJECT / "static" / "js").rglob("*.js")))
    made = re.findall(r'createElement\("([a-z]+)"\)', scripts)
    return sorted({"html", "head", *re.findall(r"<([a-z][a-z0-9]*)", templates), *made, *TAGS})


@pytest.fixture
def page(watch: Watch) -> Page:
    return watch.context.new_page()


@pytest.fixture(scope="session")
def hostile_server(
    server_fork: ServerFork, corpus: list[Payload], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    stub = StubModel()
    folder = tmp_path_factory.mktemp("hostile")
    own = {
        "OPENAI_BASE_URL": stub.url,
        "OPENAI_MODEL": "stub-model",
        "QUERY_REWRITING": "words",
        "RETRIEVAL_MODE": "agent",
    }
    made = ServerProcess(folder, server_fork.launch, **own)
    made.start("/readyz")
    made.environment["HOSTILE_DOCUMENT"] = str(seed(made, stub, corpus))
    Path(made.environment["SETTINGS_FILE"]).write_text(json.dumps({"instructions": joined(corpus, "value")}))
    made.wait_for_words("/settings", f"end{corpus[-1].number}value")
    yield made
    made.kill()
    stub.close()
