"""Talk on the page as a person does."""

from typing import Any

from playwright.sync_api import Locator, Page


def say(page: Page, text: str) -> None:
    """Type a text and send it."""
    page.get_by_label("Your question").fill(text)
    page.get_by_role("button", name="Ask", exact=True).click()


def ask(page: Page, question: str, turn: int) -> Locator:
    """Ask a question, wait for its answer and return the turn."""
    say(page, question)
    answered = page.locator(f"#turn-{turn}.completed")
    answered.wait_for()  # Cheaper than to expect it: that describes the whole page whenever it is not there yet.
    return answered


def ask_many(page: Page, count: int, *questions: str, **own: object) -> int:
    """Open a new conversation of ``count`` turns, asked over the API, and return its id; it may begin with questions.

    On the page that takes ten times as long. From its second turn on it has settings of its ``own``.
    """
    known: dict[str, Any] = {}
    for number in range(1, count + 1):
        question = questions[number - 1] if number <= len(questions) else f"Question {number}"
        response = page.request.post("/api/query", data={"question": question} | known)
        assert response.ok, response.text()
        known = {"conversation_id": response.json()["conversation_id"]}
        if own and number == 1:
            assert page.request.patch(f"/api/conversations/{known['conversation_id']}", data=own).ok
    page.goto(f"/conversations/{known['conversation_id']}")
    return int(known["conversation_id"])


def options(page: Page) -> Locator:
    """Open the options and return them."""
    opened = page.locator("#options")
    if opened.get_attribute("open") is None:
        opened.locator("> summary").click()
    return opened


def window(page: Page) -> Locator:
    """Open the control of the window below the composer and return it."""
    opened = page.locator("#window")
    if opened.get_attribute("open") is None:
        opened.locator("summary").click()
    return opened


def mark(turn: Locator, name: str) -> None:
    """Choose what stands in the menu of a turn, such as "Pin"."""
    turn.locator(".more > summary").click()
    turn.get_by_role("button", name=name, exact=True).click()


def dimmed(page: Page) -> list[str]:
    """Return the turns that the model does not see, as the page shows them."""
    return list(page.locator(".turn.beyond").evaluate_all("all => all.map(one => one.id)"))


def above(page: Page, first: str, second: str) -> bool:
    """Tell whether one part of the transcript stands directly above another."""
    return bool(page.locator(first).evaluate("(one, other) => one.nextElementSibling?.matches(other)", second))


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """Return a tool call for the scripted model."""
    return {"id": f"call-{name}", "name": name, "arguments": arguments}


def set_in_module(page: Page, module: str, assignment: str) -> None:
    """Change a value that a script of the page exports, such as ``silenceTimeout.seconds = 1`` of ``sse.js``."""
    # The address of the scripts changes with them, so it is taken from the page.
    page.evaluate(
        """async ([module, assignment]) => {
            const { modules } = await import(document.querySelector("script[type=module]").src);
            const [place, value] = assignment.split(" = ");
            const [name, field] = place.split(".");
            modules[module][name][field] = Number(value);
        }""",
        [module, assignment],
    )
