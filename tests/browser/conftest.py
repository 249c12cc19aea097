"""A real Chromium on a real server with a scripted model."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Dialog,
    Page,
    Playwright,
    Request,
    expect,
    sync_playwright,
)

from tests.browser.evidence import Evidence
from tests.browser.used_window import UsedWindow
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess, free_port
from tests.testkit.stub_model import Reply, StubModel

# The headless build of Debian's Chromium opens a window in a third of the time; the whole one does as well.
PROGRAMS = Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")
CHROMIUM = next((program for program in PROGRAMS if program.exists()), PROGRAMS[0])
# For each window Chromium would begin a process that draws its address bar, which costs as much as a page of ours. The
# list takes the place of the driver's own, so what that turns off for good reason stands here, too. One process that
# draws, and no spare one, is enough for one window after the other: an eighth of the CPU time less.
ADDRESS_BAR = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup")
TURNED_OFF = (
    *ADDRESS_BAR, "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "OptimizationHints", "PaintHolding",
    "SpareRendererForSitePerProcess", "ThirdPartyStoragePartitioning",
)  # fmt: skip
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    f"--disable-features={','.join(TURNED_OFF)}", "--in-process-gpu", "--disable-site-isolation-trials",
    "--renderer-process-limit=1",
]  # fmt: skip

# A slow, busy machine must not fail a test; one that passes never waits for long.
MILLISECONDS_TO_WAIT = 60_000
expect.set_options(timeout=MILLISECONDS_TO_WAIT)

EVIDENCE = pytest.StashKey[Evidence]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker("browser")
            if item.get_closest_marker("every_time") is None:
                item.add_marker("long")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failure where the pictures of its pages are."""
    report = yield
    evidence = item.stash.get(EVIDENCE, None)
    if report.when == "call" and report.failed and evidence is not None:
        report.sections.append(("The pages when the test failed", f"{evidence.keep()}/"))
    return report


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    if not CHROMIUM.exists():
        pytest.skip("no Chromium: apt-get install chromium-headless-shell")
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def scriptless(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(
        executable_path=CHROMIUM, args=[*FLAGS, "--blink-settings=scriptEnabled=false"]
    )
    yield browser
    browser.close()


@pytest.fixture
def chromium_without_scripts(scriptless: Browser) -> Iterator[Browser]:
    """A browser whose parser knows that there are no scripts, so that it reads what is meant for this case."""
    yield scriptless
    for context in scriptless.contexts:
        context.close()


@pytest.fixture(scope="session")
def port() -> int:
    """The port of every server of this process, so that the browser has the scripts already: they do not change."""
    return free_port()


def start_server(fork: ServerFork, folder: Path, stub: StubModel, port: int, **more: str) -> ServerProcess:
    """Return a server that has started."""
    own = {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub-model", "QUERY_REWRITING": "words", "PORT": str(port)}
    own |= {"OCR": "off", "EXACT_INDEX": "yes"}  # To recognise a page takes seconds; to start Chroma, one.
    made = ServerProcess(folder, fork.launch, **own | more)
    made.start("/readyz")
    return made


@pytest.fixture(scope="session")
def shared_stub() -> Iterator[StubModel]:
    """The model of the shared server. Since the server remembers what goes wrong with a model, it only ever answers."""
    model = StubModel()
    yield model
    model.close()


@pytest.fixture(scope="session")
def shared_server(
    tmp_path_factory: pytest.TempPathFactory, server_fork: ServerFork, shared_stub: StubModel
) -> Iterator[ServerProcess]:
    """The server of the tests marked ``shared``: to start one for each takes as long as such a test.

    They change nothing of it but conversations that they have begun themselves.
    """
    made = start_server(server_fork, tmp_path_factory.mktemp("shared"), shared_stub, free_port())
    yield made
    made.kill()


@pytest.fixture
def stub(request: pytest.FixtureRequest, stub: StubModel) -> Iterator[StubModel]:
    """The model of the server; that of the shared one says to each test what it would say to the first."""
    if not request.node.get_closest_marker("shared"):
        yield stub
        return
    shared: StubModel = request.getfixturevalue("shared_stub")
    yield shared
    shared.default = Reply()
    shared.replies.clear()
    shared.requests.clear()


@pytest.fixture
def server(
    request: pytest.FixtureRequest, tmp_path: Path, stub: StubModel, server_fork: ServerFork, port: int
) -> Iterator[ServerProcess]:
    """A server; the marker ``settings`` gives it further variables of the environment."""
    if request.node.get_closest_marker("shared"):
        yield request.getfixturevalue("shared_server")
        return
    marker = request.node.get_closest_marker("settings")
    made = start_server(server_fork, tmp_path, stub, port, **(marker.kwargs if marker else {}))
    yield made
    made.kill()


@pytest.fixture(scope="session")
def used_window(chromium: Browser, port: int) -> Iterator[UsedWindow]:
    """A window that goes from test to test, emptied: a new one costs as much as the test that it is for."""
    made = UsedWindow(chromium, f"http://127.0.0.1:{port}")
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared_window(chromium: Browser, shared_server: ServerProcess) -> Iterator[UsedWindow]:
    """The used window at the shared server."""
    made = UsedWindow(chromium, shared_server.url)
    yield made
    made.close()


@pytest.fixture
def context(
    request: pytest.FixtureRequest, chromium: Browser, server: ServerProcess, tmp_path: Path
) -> Iterator[BrowserContext]:
    """An empty window at the server. If the test fails, the report names the folder with pictures of its pages."""
    own = UsedWindow(chromium, server.url) if request.node.get_closest_marker("own_window") else None
    used = "shared_window" if request.node.get_closest_marker("shared") else "used_window"
    window: UsedWindow = own or request.getfixturevalue(used)
    window.context.set_default_timeout(MILLISECONDS_TO_WAIT)
    evidence = request.node.stash[EVIDENCE] = Evidence(window.context, tmp_path / "evidence")
    yield window.context
    evidence.stop()
    window.empty()
    if own:
        own.close()


@pytest.fixture
def page(context: BrowserContext, server: ServerProcess) -> Iterator[Page]:
    opened = context.new_page()
    trouble: list[str] = []

    def note_request(sent: Request) -> None:
        if not sent.url.startswith(server.url):
            trouble.append(f"request: {sent.url}")

    def note_dialog(dialog: Dialog) -> None:
        if dialog.type == "beforeunload":  # The browser's own.
            return dialog.accept()
        trouble.append(f"dialog: {dialog.message}")
        return dialog.dismiss()

    opened.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    opened.on("dialog", note_dialog)
    opened.on("request", note_request)
    yield opened
    assert trouble == []
