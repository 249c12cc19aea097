"""(f) The page in a real Chromium: bytes of the first view, token to paint, long transcripts, many rows, memory.

MINUTES (default 1) is how long an answer is streamed while the heap is watched.
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.stage import add_conversation, open_database, percentile, server, wait_for
from tests.testkit.stub_model import Reply, StubModel

CHROMIUM = "/usr/bin/chromium"
LONG_TRANSCRIPT = 2_000
MANY_CONVERSATIONS = 10_000

# When the page was painted and its scripts had run, in ms after the request.
OPENED = """
async () => {
    const painted = () => performance.getEntriesByName("first-contentful-paint")[0];
    while (!painted()) await new Promise(requestAnimationFrame);
    const { domContentLoadedEventEnd } = performance.getEntriesByType("navigation")[0];
    return Math.max(painted().startTime, domContentLoadedEventEnd);
}
"""
# Scrolls from the end to the beginning, a part of the height per frame, and records each frame's duration.
SCROLL = """
async () => {
    const frames = [];
    const holder = [...document.querySelectorAll("*")].filter((one) => one.scrollHeight > one.clientHeight + 50)
        .sort((one, other) => other.scrollHeight - one.scrollHeight)[0];
    let before = performance.now();
    for (let n = 0; n < 300; n += 1) {
        holder.scrollTop -= holder.clientHeight / 2;
        const now = await new Promise(requestAnimationFrame);
        frames.push(now - before);
        before = now;
    }
    return frames;
}
"""
# Records for every piece received when the next frame was drawn.
TOKEN_TO_PAINT = """
() => {
    window.painted = [];
    const decode = TextDecoder.prototype.decode;
    TextDecoder.prototype.decode = function (...rest) {
        const came = performance.now();
        const text = decode.apply(this, rest);
        if (text.includes("event: token")) {
            requestAnimationFrame(() => setTimeout(() => window.painted.push(performance.now() - came)));
        }
        return text;
    };
}
"""


def main() -> None:
    """Print every figure of the page."""
    print("| what | figure |\n|---|---|")
    stub = StubModel()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        data = Path(folder) / "data"
        database = open_database(data)
        long_one = add_conversation(database, LONG_TRANSCRIPT)
        for _ in range(MANY_CONVERSATIONS - 1):
            add_conversation(database, 1)
        database.close()
        with server(data, OPENAI_BASE_URL=stub.url, OPENAI_MODEL="stub-model", QUERY_REWRITING="words") as (url, _):
            wait_for(f"{url}/readyz")
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--js-flags=--expose-gc"]
            )
            first_view(browser, url)
            long_transcript(browser, url, f"{url}/conversations/{long_one}")
            many_conversations(browser, url)
            streaming(browser, url, stub)
            browser.close()
    stub.close()


def say(what: str, figure: str) -> None:
    """Print a row of the table."""
    print(f"| {what} | {figure} |", flush=True)


def open_page(browser: Browser) -> tuple[Page, CDPSession]:
    """Return a page of a browser with an empty cache, and its DevTools session."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    return page, page.context.new_cdp_session(page)


def first_view(browser: Browser, url: str) -> None:
    """Measure the bytes transferred for the first view."""
    page, wire = open_page(browser)
    sizes: list[float] = []
    wire.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    wire.send("Network.enable")
    page.goto(url, wait_until="networkidle")
    say("first page view, empty cache", f"{sum(sizes) / 1000:.1f} kB in {len(sizes)} requests")
    page.context.close()


def long_transcript(browser: Browser, start: str, url: str) -> None:
    """Open a long conversation, in a fresh browser and from the start page, and scroll through it."""
    first, again = [], []
    for _ in range(9):
        page, _ = open_page(browser)
        page.goto(url)
        first.append(page.evaluate(OPENED))
        page.goto(start, wait_until="networkidle")
        page.goto(url)
        again.append(page.evaluate(OPENED))
    frames = page.evaluate(SCROLL)
    slow = sum(frame > 50 for frame in frames)
    say(
        f"{LONG_TRANSCRIPT:,} turns, opened from the start page: painted and usable (median of 9)",
        f"{percentile(again, 0.5):.0f} ms",
    )
    say("the same, opened by its address with an empty cache", f"{percentile(first, 0.5):.0f} ms")
    say("frames above 50 ms while scrolling through it", f"{slow} of {len(frames)} ({100 * slow / len(frames):.1f} %)")
    for context in browser.contexts:
        context.close()


def many_conversations(browser: Browser, url: str) -> None:
    """Open the page beside many conversations, and search them."""
    page, _ = open_page(browser)
    for what, path in (("opened", "/"), ("searched", "/?q=text")):
        began = time.monotonic()
        page.goto(url + path)
        say(f"{MANY_CONVERSATIONS:,} conversations: {what}", f"{1000 * (time.monotonic() - began):.0f} ms")
    page.context.close()


def streaming(browser: Browser, url: str, stub: StubModel) -> None:
    """Stream answers for some minutes; print the time from event to paint, and the growth of the heap."""
    page, wire = open_page(browser)
    page.goto(url)
    page.evaluate(TOKEN_TO_PAINT)
    minutes = float(os.environ.get("MINUTES", "1"))
    stub.default = Reply("word " * 500, seconds_between=0.02)
    began = time.monotonic()
    heaps = [heap_mb(wire)]
    number = 0
    while time.monotonic() - began < 60 * minutes:
        number += 1
        page.get_by_label("Your question").fill(f"Question {number}")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#turn-{number}.completed", timeout=60_000)
        heaps.append(heap_mb(wire))
    painted: list[float] = page.evaluate("window.painted")
    say("from token event to paint", f"p50 {percentile(painted, 0.5):.1f} ms, p95 {percentile(painted, 0.95):.1f} ms")
    said = ", ".join(f"{heap:.1f}" for heap in heaps[:: max(1, len(heaps) // 6)])
    say(f"heap after every {max(1, len(heaps) // 6)} of {number} answers ({minutes:g} min)", f"{said} MB")
    page.context.close()


def heap_mb(wire: CDPSession) -> float:
    """Return the page's heap after garbage collection."""
    wire.send("HeapProfiler.collectGarbage")
    used: dict[str, Any] = wire.send("Runtime.getHeapUsage")
    return float(used["usedSize"]) / 1e6
