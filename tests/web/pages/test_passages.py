"""Documents as they are read on their pages: a passage in its text, a row in its table."""

import html
import re

import pytest
from flask.testing import FlaskClient

from rag_assistant.web.markdown import passage
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, upload
from tests.web.pages.document_rows import FACT


def birds(rows: int) -> str:
    return "Bird,Number,Keeper\n" + "".join(f"goose {number},{number},keeper {7 * number}\n" for number in range(rows))


def test_a_document_shows_its_passage_exactly_with_its_section_and_without_its_marks_meaning_anything(
    client: FlaskClient,
) -> None:
    text = f"# Prices\n\nBoats <b>pass</b> &amp; stay.\n\n## Europe & more\n\n{FACT}\n"
    document_id = upload(client, text, "prices.md")["document_id"]
    found = client.get("/api/search?q=geese").json["passages"][0]
    start, end = text.index(FACT), text.index(FACT) + len(FACT)
    page = client.get(f"/documents/{document_id}?start={start}&end={end}").text
    assert re.findall(r'<mark id="passage"[^>]*>(.*?)</mark>', page, re.DOTALL) == [FACT]
    shown = page[page.index('<div class="drawn"') : page.index("</section>")]
    assert html.unescape(re.sub(r"<[^<>]*>", "", shown)).split() == text.replace("#", "").split()
    assert "<h3>Europe &amp; more</h3>" in shown
    assert html.escape(found["section"], quote=False) in page


def test_a_document_of_no_text_and_positions_that_are_none_are_answered(client: FlaskClient) -> None:
    document_id = upload(client, " \n ", "blank.txt")["document_id"]
    page = client.get(f"/documents/{document_id}?start=5&end=9").text
    assert "No text yet." not in page
    assert "There is no text in this file." in page
    for wrong in ("start=x", "end=-1", "at=1.5"):
        assert client.get(f"/documents/{document_id}?{wrong}").status_code == 422, wrong


def test_a_row_of_a_table_is_shown_in_its_table_and_sent_with_its_head_even_when_gone(
    client: FlaskClient,
) -> None:
    added = upload(client, birds(300), "birds.csv")
    source = ask(client, "Which number has goose 117?")["sources"][0]
    assert source["text"].startswith("| Bird | Number | Keeper |\n| --- | --- | --- |\n| goose ")
    page = client.get("/turns/1/sources/1").text
    drawn = page[page.index('<div class="drawn"') :]
    assert drawn.count("<table>") == 1
    assert "<th>Bird</th>" in drawn
    assert "---" not in drawn
    marked = [int(number) for number in re.findall(r"<mark[^>]*>goose (\d+)</mark>", drawn)]
    assert marked == [117]
    assert "<td>goose 118</td>" in drawn
    chip = html.unescape(re.findall(r'data-passage="([^"]*)"', client.get("/conversations/1").text)[0])
    assert re.match(r"Bird: goose (\d+), Number: \1, Keeper: ", chip)
    client.delete(f"/api/documents/{added['document_id']}")
    page = client.get("/turns/1/sources/1").text
    assert "The document has been deleted." in page
    assert "<td><mark>117</mark></td>" in page
    assert "---" not in page


@pytest.mark.long
def test_a_part_of_a_large_table_is_shown_with_its_head(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage, "MAX_WHOLE_TEXT_CHARS", 2_000)
    added = upload(client, birds(200), "birds.csv")
    page = client.get(f"/documents/{added['document_id']}?at=4000").text
    assert "goose 100<" not in page
    assert page.count("<table>") == 1
    assert "<th>Bird</th>" in page
    assert "---" not in page


LEASE = (
    "# Lease\n\nThe rent is 1,240 euros. Late payment costs 15 euros.\n\n## Notice\n\n"
    "Either party may end the lease with three months notice. It must be in writing. Keys are handed over at noon.\n"
)


@pytest.mark.parametrize(
    ("answer", "marked"),
    [
        (
            "> Either party may end the lease with **three months** notice. It must be in writing. [1]",
            "Either party may end the lease with three months notice. It must be in writing.",
        ),
        ("You pay more when you are late with the payment [1].", "Late payment costs 15 euros."),
    ],
    ids=["quoted", "told"],
)
def test_a_source_marks_what_the_answer_takes_from_it_and_nothing_else(
    client: FlaskClient, stub: StubModel, answer: str, marked: str
) -> None:
    upload(client, LEASE, "lease.md")
    stub.default = Reply(answer)
    ask(client, "What does the lease say?")
    page = client.get("/turns/1/sources/1").text
    assert re.findall(r"<mark[^>]*>(.*?)</mark>", page, re.DOTALL) == [marked]
