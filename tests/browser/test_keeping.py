"""Nothing is lost and nothing is doubled: reloads, silence, a server that dies, a second window."""

import json
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.talk import ask, ask_many, say, set_in_module
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


@pytest.mark.shared
def test_a_draft_survives_a_reload_and_belongs_to_its_conversation(page: Page) -> None:
    conversation = ask_many(page, 1)
    page.get_by_label("Your question").fill("Half a tho")
    page.reload()
    expect(page.get_by_label("Your question")).to_have_value("Half a tho")
    page.goto("/")
    expect(page.get_by_label("Your question")).to_have_value("")
    page.goto(f"/conversations/{conversation}")
    expect(page.get_by_label("Your question")).to_have_value("Half a tho")


def test_a_question_that_was_sent_is_no_draft_any_more(page: Page) -> None:
    ask_many(page, 1)
    ask(page, "Another one", 2)
    page.reload()
    expect(page.get_by_label("Your question")).to_have_value("")
    expect(page.locator(".unsent")).to_have_count(0)


def cut_off(page: Page, before_sending: bool) -> None:
    """Let the next question vanish on its way, or its answer."""

    def drop(route: Route) -> None:
        if not before_sending:
            route.fetch()
        route.abort()

    page.route("**/api/query/stream*", drop, times=1)


@pytest.mark.shared
def test_a_question_that_vanished_can_be_sent_again_after_a_reload(page: Page) -> None:
    page.goto("/")
    cut_off(page, before_sending=True)
    say(page, "A question that must not be lost")
    expect(page.locator("#composer-error")).to_contain_text("Your question is still here")
    page.reload()
    expect(page.locator(".unsent")).to_contain_text("This question may not have been sent")
    expect(page.locator(".unsent blockquote")).to_have_text("A question that must not be lost")
    page.get_by_role("button", name="Send again").click()
    expect(page.locator("#turn-1.completed .question")).to_have_text("A question that must not be lost")
    expect(page.locator(".turn")).to_have_count(1)
    page.goto("/")
    expect(page.locator(".unsent")).to_have_count(0)


def test_a_question_that_did_arrive_is_not_asked_twice(page: Page, server: ServerProcess, stub: StubModel) -> None:
    page.goto("/")
    cut_off(page, before_sending=False)
    say(page, "Why?")
    expect(page.locator("#composer-error")).to_contain_text("Your question is still here")
    page.reload()
    page.get_by_role("button", name="Send again").click()
    expect(page.locator("#turn-1.completed")).to_be_visible()
    assert len(server.call("GET", "/api/conversations")[1]["conversations"]) == 1
    assert len(stub.requests) == 1


def test_a_question_that_is_not_wanted_any_more_can_be_discarded(page: Page) -> None:
    page.goto("/")
    cut_off(page, before_sending=True)
    say(page, "Why?")
    expect(page.locator("#composer-error")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Discard").click()
    page.reload()
    expect(page.get_by_label("Your question")).to_be_visible()
    expect(page.locator(".unsent")).to_have_count(0)


def watch_length(page: Page) -> None:
    """Note every time at which the answer on the page became shorter."""
    page.evaluate(
        """() => {
            window.shorter = [];
            let longest = 0;
            new MutationObserver(() => {
                const length = document.querySelector("#turn-1 .answer")?.innerText.trim().length ?? longest;
                if (length < longest) window.shorter.push([longest, length]);
                longest = Math.max(longest, length);
            }).observe(document.getElementById("transcript"), { childList: true, subtree: true, characterData: true });
        }"""
    )


@pytest.mark.shared
def test_a_connection_that_falls_silent_is_given_up_and_the_answer_comes_whole(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    words = " ".join(f"w{n}" for n in range(20))
    stub.default = Reply(words, seconds_between=0.1)
    page.goto("/")
    set_in_module(page, "lib/sse.js", "silenceTimeout.seconds = 1")
    # The first stream begins and then says nothing more, as after sleep: nobody closes it.
    page.evaluate(
        """() => {
            const real = window.fetch;
            let first = true;
            window.fetch = async (url, options) => {
                const response = await real(url, options);
                if (!first || !String(url).includes("/query/stream")) return response;
                first = false;
                const body = response.body.getReader();
                const silent = new ReadableStream({
                    async start(out) { out.enqueue((await body.read()).value); },
                    cancel() { window.left = true; return body.cancel(); },
                });
                return new Response(silent, { headers: response.headers });
            };
        }"""
    )
    say(page, "Why?")
    watch_length(page)
    expect(page.locator("#turn-1.completed .answer")).to_have_text(words)
    assert page.evaluate("window.left") is True
    assert page.evaluate("window.shorter") == []


@pytest.mark.every_time
def test_while_the_server_is_gone_the_page_says_so_and_keeps_what_is_wanted_and_what_was_answered(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    parts = [f"**Part {n}** with `code`\n\n" for n in range(300)]
    stub.default = Reply("".join(parts), pieces=parts, seconds_between=0.3)
    page.goto("/")
    say(page, "Why?")
    expect(page.locator("#turn-1 .answer")).to_contain_text("Part 3")
    watch_length(page)
    ask_button = page.get_by_role("button", name="Ask", exact=True)
    expect(ask_button).to_be_hidden()
    page.context.set_offline(True)
    server.kill()
    state, told = page.locator("#turn-1 .state"), page.locator("#composer-error")
    expect(state).to_have_text("Connection lost. Reconnecting…")
    page.get_by_label("Your question").fill("And then?")
    page.keyboard.press("Enter")
    expect(told).to_have_text("Not connected. Your question is still here.")
    expect(page.get_by_label("Your question")).to_have_value("And then?")
    page.get_by_role("button", name="Stop").click()
    expect(state).to_have_text("Not connected. The answer will be stopped once the connection is back.")
    server.start("/readyz")
    page.context.set_offline(False)
    expect(page.locator("#turn-1.interrupted")).to_be_visible()
    assert page.evaluate("window.shorter") == []
    assert server.call("GET", "/api/conversations/1")[1]["turns"] == 1
    expect(told).to_be_hidden()
    expect(page.locator(".toast")).to_have_count(0)
    expect(ask_button).to_be_enabled()
    expect(page.get_by_label("Your question")).to_have_value("And then?")


def test_a_stop_that_did_not_arrive_is_sent_again(page: Page, stub: StubModel) -> None:
    stub.default = Reply("word " * 3000, seconds_between=0.05)
    page.goto("/")
    say(page, "Why?")
    expect(page.locator("#turn-1 .answer")).to_contain_text("word word")
    page.route("**/api/turns/1/stop", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turn-1.stopped")).to_be_visible()


def two_windows(context: BrowserContext, page: Page) -> Page:
    conversation = ask_many(page, 2)
    other = context.new_page()
    other.goto(f"/conversations/{conversation}")
    expect(other.locator("#turn-2")).to_be_visible()
    return other


@pytest.mark.shared
def test_a_second_window_shows_what_is_asked_in_the_first_and_does_not_fetch_again_what_nobody_changed(
    context: BrowserContext, page: Page, stub: StubModel
) -> None:
    other = two_windows(context, page)
    fetched: list[str] = []
    other.on("request", lambda sent: fetched.append(f"{sent.method} {sent.url}"))
    set_in_module(other, "conversation/sync.js", "interval.seconds = 0.2")
    for _ in range(3):
        other.wait_for_event("request", lambda sent: sent.method == "HEAD")
    assert {one.split()[0] for one in fetched if "/conversations/" in one} == {"HEAD"}, json.dumps(fetched)
    stub.default = Reply(" ".join(f"w{n}" for n in range(8)), seconds_between=0.4)
    page.bring_to_front()
    say(page, "A third one")
    other.bring_to_front()
    running = other.locator("#turn-3.running .answer")
    expect(running).to_contain_text("w3")
    expect(other.locator("#turn-3.completed .answer")).to_contain_text("w7")
    expect(page.locator("#turn-3.completed .answer")).to_contain_text("w7")
    expect(other.locator("#turn-3")).to_have_count(1)
    expect(page.locator("#turn-3")).to_have_count(1)


def test_marks_names_and_versions_come_to_the_second_window(
    context: BrowserContext, page: Page, server: ServerProcess, stub: StubModel
) -> None:
    other = two_windows(context, page)
    stub.default = Reply("Answered anew.")
    calls: list[tuple[str, str, Any]] = [
        ("PATCH", "/api/turns/1", {"pinned": True}),
        ("PATCH", "/api/conversations/1", {"title": "Another name"}),
        ("POST", "/api/turns/2/regenerate", None),
    ]
    for method, path, body in calls:
        server.call(method, path, body)
    expect(other.locator("#turn-1 .mark")).to_contain_text("Pinned")
    expect(other.get_by_role("heading", name="Another name")).to_be_visible()
    expect(other.locator("#turn-2.completed .answer")).to_have_text("Answered anew.")
    server.call("POST", "/api/turns/2/versions/1/choose")
    expect(other.locator("#turn-2 .answer")).to_have_text("An answer.")
    server.call("POST", "/api/conversations/1/clear")
    expect(other.locator(".turn.beyond")).to_have_count(2)


def test_the_second_window_is_told_of_a_deletion(context: BrowserContext, page: Page, server: ServerProcess) -> None:
    other = two_windows(context, page)
    server.call("DELETE", "/api/conversations/1")
    expect(other.locator(".toast.deleted")).to_contain_text("This conversation was deleted")
    other.get_by_role("button", name="Restore").click()
    expect(other.locator("#turn-2 .answer")).to_be_visible()
    assert server.call("GET", "/api/conversations/1")[0] == 200


def test_a_question_that_is_being_edited_is_not_disturbed_by_news(
    context: BrowserContext, page: Page, server: ServerProcess
) -> None:
    other = two_windows(context, page)
    other.locator("#turn-1").get_by_role("link", name="Edit the question").click()
    other.get_by_label("Edited question").fill("Half a tho")
    server.call("PATCH", "/api/turns/1", {"pinned": True})
    server.call("PATCH", "/api/conversations/1", {"title": "Another name"})
    expect(other.get_by_role("heading", name="Another name")).to_be_visible()
    expect(other.get_by_label("Edited question")).to_have_value("Half a tho")
    other.get_by_role("link", name="Cancel").click()
    expect(other.locator("#turn-1 .mark")).to_contain_text("Pinned")
