"""Pictures beside a question: attached, pasted, removed, sent, and shown in the transcript."""

import base64
import io

import pytest
from PIL import Image
from playwright.sync_api import FilePayload, Page, expect

from tests.testkit.stub_model import StubModel


def pixel() -> bytes:
    held = io.BytesIO()
    Image.new("L", (1, 1), 128).save(held, "PNG")
    return held.getvalue()


PIXEL = pixel()
PASTE = """([name, content]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(content), (one) => one.charCodeAt(0))], name, { type: "image/png" }));
  const pasted = new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
  document.getElementById("question").dispatchEvent(pasted);
}"""


@pytest.mark.every_time
@pytest.mark.settings(MODEL_IMAGES="true")
def test_pictures_are_attached_pasted_removed_and_sent(page: Page, stub: StubModel) -> None:
    page.goto("/")
    choose = page.get_by_label("Attach pictures")
    choose.set_input_files(FilePayload(name="goose.png", mimeType="image/png", buffer=PIXEL))
    page.evaluate(PASTE, ["pasted.png", base64.b64encode(PIXEL).decode()])
    attached = page.get_by_role("list", name="Attached pictures")
    expect(attached.get_by_role("listitem")).to_have_count(2)
    page.get_by_role("button", name="Remove pasted.png").click()
    expect(attached.get_by_role("listitem")).to_have_count(1)
    choose.set_input_files(FilePayload(name="film.gif", mimeType="image/gif", buffer=b"GIF89a"))
    expect(page.locator("#composer-error")).to_contain_text("Use PNG, JPEG or WebP, up to 5 MB.")
    page.get_by_label("Your question").fill("What is this?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".turn .answer")).not_to_be_empty()
    expect(attached).to_be_hidden()
    page.wait_for_function("() => !document.querySelector('.turn[data-followed]')")
    content = stub.requests[-1].messages[-1]["content"]
    assert content[1]["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    picture = page.get_by_alt_text("Picture 1 of the question")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1


@pytest.mark.every_time
@pytest.mark.shared
def test_a_model_that_takes_none_is_offered_none(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_label("Your question")).to_be_visible()
    expect(page.get_by_label("Attach pictures")).to_have_count(0)
