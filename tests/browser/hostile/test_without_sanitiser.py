"""The real pages with the sanitiser off: an answer is HTML as the model wrote it, and the policy alone guards."""

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from markupsafe import Markup
from playwright.sync_api import Page, expect
from werkzeug.serving import make_server

from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.web import create_app
from rag_assistant.web.markdown.blocks import Blocks
from rag_assistant.web.pages import conversation
from tests.browser.hostile.payloads import PAYLOADS, Payload
from tests.browser.hostile.test_policy_alone import GROUPED, TEMPT
from tests.browser.hostile.watch import Watch
from tests.browser.talk import say
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.stub_model import Reply, StubModel

# Some texts take all that stands behind them into a script or a comment. Of those, each on a page of its own, some do.
EVERY = 6
AT_ONCE = 10


class Unguarded:
    """The application without its sanitiser: ``answer`` is what every answer is drawn as."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answer = ""


@pytest.fixture
def unguarded(tmp_path: Path, migrated: Path, stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Unguarded]:
    shutil.copytree(migrated, tmp_path / "data")
    monkeypatch.setattr(minilm, "MiniLM", WordHashEmbedder)
    monkeypatch.setattr("rag_assistant.services.GUIDE", tmp_path / "no-guide")
    files = {"DATA_DIR": str(tmp_path / "data"), "SETTINGS_FILE": str(tmp_path / "settings.json")}
    model = {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub-model", "QUERY_REWRITING": "words"}
    app = create_app(files | model)
    app.extensions["assistant"].start()
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    made = Unguarded(f"http://127.0.0.1:{server.port}")
    monkeypatch.setattr(conversation, "render_markdown", lambda *_: Markup(made.answer))
    monkeypatch.setattr(Blocks, "add", lambda *_: (0, made.answer))
    yield made
    server.shutdown()
    server.server_close()
    app.extensions["assistant"].close()


def batches(page: Page, payloads: list[Payload]) -> list[str]:
    """Return what a policy can stop as HTML for a few pages. Our own pages would let no text be taken apart."""
    texts = [payload.text for payload in payloads if not payload.only_sanitised]
    groups: list[str] = page.evaluate(GROUPED, texts)
    shared = [group for group in groups if group.count("<div>") >= AT_ONCE]
    alone = [group for group in groups if group not in shared]
    return ["".join(shared[start : start + AT_ONCE]) for start in range(0, len(shared), AT_ONCE)] + alone[::EVERY]


# What these headers stop, test_policy_alone.py shows; that every page has them, tests/web/test_security.py.
@pytest.mark.long
def test_on_a_real_page_the_policy_alone_lets_no_answer_run_or_call(
    page: Page, watch: Watch, unguarded: Unguarded, stub: StubModel, corpus: list[Payload]
) -> None:
    drawn = batches(page, corpus)
    page.goto(unguarded.url)
    say(page, "Why?")
    expect(page.locator("#turn-1.completed")).to_be_visible()
    address = re.sub(r"#.*", "", page.url)
    for unguarded.answer in drawn:
        page.goto(address, wait_until="load")
        page.evaluate(TEMPT)
    assert len(watch.reports) > len(corpus) / 4, "the policy had nothing to stop"
    assert watch.trouble == {}


@pytest.mark.long
def test_a_streamed_answer_that_nobody_sanitised_neither_runs_nor_calls(
    page: Page, watch: Watch, unguarded: Unguarded, stub: StubModel
) -> None:
    drawn = batches(page, PAYLOADS)
    stub.default = Reply("Word by word.", pieces=["Word ", "by ", "word."])
    for turn, unguarded.answer in enumerate(drawn[:2], 1):
        page.goto(unguarded.url)
        say(page, f"Question {turn}")
        # What came in may have hidden what is around it.
        expect(page.locator("#turn-1.completed")).to_be_attached()
        page.evaluate(TEMPT)
    assert len(watch.reports) > 50, "the policy had nothing to stop"
    assert watch.trouble == {}
