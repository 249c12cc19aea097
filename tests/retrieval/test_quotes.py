"""Which sentences of some passages are quoted for a question."""

from collections.abc import Sequence

import pytest

from rag_assistant.records import Source
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.quotes import MAX_EMBEDDED, MAX_ROWS, MAX_SENTENCES, Compare, Quote, choose_quotes
from rag_assistant.retrieval.sentences import sentences_of
from tests.retrieval.test_table_answers import REVISIONS
from tests.testkit.embedders import WordHashEmbedder


def comparing(embedder: WordHashEmbedder) -> Compare:
    """Return what compares texts by their vectors."""

    def compare(query: SearchQuery, texts: Sequence[str]) -> list[float]:
        vector, *rows = embedder.embed([query.text, *texts])
        return [float(row @ vector) for row in rows]

    return compare


compare = comparing(WordHashEmbedder())


def source(text: str, n: int = 1, score: float = 0.5) -> Source:
    return Source(n, n, f"{n}.md", None, 0, len(text), text, score)


def quoted(question: str, *texts: str) -> list[tuple[int, str]]:
    """Return what is quoted as number of the source and text; earlier texts are better passages."""
    sources = [source(text, n, 1 / n) for n, text in enumerate(texts, 1)]
    return [
        (quote.n, " ".join(one.text for one in quote.sentences))
        for quote in choose_quotes(SearchQuery(question), sources, compare)
    ]


ISLAND = (
    "The keeper of the lighthouse on the island feeds seventeen geese every morning. "
    "The boat of the harbour master was painted green in the spring of that year. "
    "The lamp of the lighthouse burns oil from the mainland in winter and in summer."
)


def test_each_of_two_things_that_are_asked_for_is_quoted() -> None:
    rent = "The rent of the cottage is nine hundred crowns, and the rent is paid on the first day of each month."
    keys = "Whoever loses one of the keys tells the harbour master, who has a new one made in the town."
    rents = [rent, "The rent of the cottage rises with the price of oil, and never by more than a tenth."]
    quotes = quoted("What is the rent of the cottage and what about lost keys?", " ".join(rents), keys)
    assert 2 in [n for n, _ in quotes]


def test_a_sentence_is_quoted_though_a_revision_has_a_word_of_the_question() -> None:
    first = choose_quotes(SearchQuery("How long are invoices kept?"), [source(REVISIONS)], compare, {1: REVISIONS})[0]
    assert [one.text for one in first.sentences] == ["Invoices are kept for 8 years."]


INVOICE = """Invoice 2026-114

Position Description Quantity Unit price Amount
1 Posters, A2 40 3.20 128.00
2 Flyers, A5 2,000 0.06 120.00
Net 248.00
VAT 19 % 47.12
Total 295.12"""


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("What is the total amount of the invoice?", "Total 295.12"),
        ("How much is the VAT?", "VAT 19 % 47.12"),
        ("What is the net amount?", "Net 248.00"),
        ("How much do the flyers cost?", "2 Flyers, A5 2,000 0.06 120.00"),
        ("Which positions and quantities are there?", "1 Posters, A2 40 3.20 128.00"),
    ],
)
def test_of_the_rows_of_an_invoice_the_one_that_is_asked_for_comes_first(question: str, row: str) -> None:
    ((_, quote),) = quoted(question, INVOICE)
    assert quote.startswith(row)
    assert all(line in quote for line in INVOICE.split("\n")[3:])


def test_a_row_from_the_middle_of_a_long_table_has_its_header_and_its_end() -> None:
    rows = "\n".join(f"| L-{n} | Pupil number {n} of the third form | 2026-02-{n % 28 + 1:02} |" for n in range(400))
    text = f"| Loans of 2026 | | |\n|---|---|---|\n| Loan | Pupil | Lent on |\n{rows}"
    start = text.index("| L-200 |")
    own = Source(1, 1, "loans.csv", None, start, start + 900, text[start : start + 900], 0.5)
    quotes = choose_quotes(SearchQuery("Which pupil borrowed loan L-201?"), [own], compare, {1: text})
    found = [one for quote in quotes for one in quote.sentences]
    assert "| L-201 | Pupil number 201 of the third form | 2026-02-06 |" in [one.text for one in found]
    assert {one.lead for one in found} == {"| Loan | Pupil | Lent on |\n|---|---|---|"}
    assert all(text[one.start : one.end] == one.text for one in found)
    assert all(one.text in rows.split("\n") for one in found)


def test_the_sentence_that_answers_is_quoted_and_the_others_are_not() -> None:
    assert quoted("How many geese does the keeper feed?", ISLAND) == [
        (1, "The keeper of the lighthouse on the island feeds seventeen geese every morning.")
    ]


def test_sentences_that_are_as_near_are_quoted_in_their_order_and_those_side_by_side_as_one() -> None:
    text = (
        "The red boat carries lamps over the sea. The green boat carries oil over the sea. Nobody came. The boat sank."
    )
    (both,) = quoted("Which boat carries oil or lamps over the sea?", text)
    assert both == (1, "The red boat carries lamps over the sea. The green boat carries oil over the sea.")


def test_never_more_than_three_sentences_are_chosen() -> None:
    text = " ".join(
        f"The keeper feeds geese on day number {word} of the week." for word in "one two three four".split()
    )
    (quote,) = choose_quotes(SearchQuery("When does the keeper feed geese?"), [source(text)], compare)
    assert len(quote.sentences) == MAX_SENTENCES


def test_a_few_words_are_quoted_with_what_stands_behind_them() -> None:
    text = "The boat is green. A broken lamp changes nothing. The last good one burns on until morning. Geese sleep."
    assert quoted("What happens when a lamp is broken?", text) == [
        (1, "A broken lamp changes nothing. The last good one burns on until morning.")
    ]


def test_the_better_passage_decides_between_equal_sentences() -> None:
    first, second = (
        "Geese on this island eat grass all day long, they say.",
        "Geese eat grass all day on islands, they say.",
    )
    assert quoted("What do geese eat?", first, second)[0] == (1, first)


def test_a_row_is_found_by_the_singular_of_its_words() -> None:
    table = "| who | single | return |\n|---|---|---|\n" + "\n".join(
        f"| {who} | {n} EUR | {n + 3} EUR |" for n, who in enumerate(("adults", "bicycles", *("cars",) * 20), 3)
    )
    assert quoted("What does a return ticket for a bicycle cost?", table)[0][1].startswith("| bicycles | 4 EUR")


REGISTER = "| bird | island | fed |\n|---|---|---|\n" + "".join(
    f"| {bird} {n} | {island} | {'no' if n == 3 else 'yes'} |\n"
    for n, (bird, island) in enumerate([("goose", "north"), ("duck", "south")] * 10)
)


def register_quotes(question: str, text: str = REGISTER, end: int | None = None) -> list[Quote]:
    one = Source(1, 7, "birds.csv", None, 0, end or len(text), text[:end], 0.5)
    return choose_quotes(SearchQuery(question), [one], compare, {7: text})


def test_a_table_answers_exactly_from_all_its_rows_though_the_passage_has_few() -> None:
    (quote,) = register_quotes("Which birds were not fed?", end=REGISTER.index("goose 2") - 2)
    assert quote.note == "1 of 20 rows, where “fed” is “no”."
    assert [one.text for one in quote.sentences] == ["| duck 3 | south | no |"]


def test_of_many_rows_the_first_are_quoted() -> None:
    (quote,) = register_quotes("How many birds were fed?")
    assert quote.note == "19 of 20 rows, where “fed” is “yes”.\nThe first 12 are shown."
    assert len(quote.sentences) == MAX_ROWS


MEMBERS = "| Member | Fee |\n|---|---|\n" + "\n".join(f"| {name} | {n} |" for n, name in enumerate(["Ann", "Bo", "Cy"]))


@pytest.mark.parametrize(
    ("question", "names", "note"),
    [
        (
            "What is the average fee?",
            ["chess.csv", "rowing.csv"],
            "Several tables fit this question (chess.csv, rowing.csv), so",
        ),
        ("What is the average fee?", ["chess.csv", "geese.md"], "Average of Fee: 1.00."),
        ("What is the average rowing fee?", ["chess.csv", "rowing.csv"], "Average of Fee: 1.00."),
        ("What fee does Ann pay?", ["chess.csv", "rowing.csv"], "Several tables fit this question"),
        ("What is the average club fee?", ["chess club.csv", "rowing club.csv"], "Several tables fit this question"),
    ],
)
def test_nothing_is_computed_from_one_of_several_tables_that_fit(question: str, names: list[str], note: str) -> None:
    texts = {n: MEMBERS if name.endswith(".csv") else "The geese have no fee." for n, name in enumerate(names)}
    sources = [Source(n + 1, n, name, None, 0, len(texts[n]), texts[n], 0.5) for n, name in enumerate(names)]
    (quote, *_) = choose_quotes(SearchQuery(question), sources, compare, texts)
    assert note in quote.note
    assert bool(quote.computed) is note.startswith("Average")


def test_a_price_is_not_taken_from_one_of_two_lists_with_the_same_columns() -> None:
    texts = {n: f"| article | price |\n|---|---|\n| Hammer | {price} EUR |\n" for n, price in enumerate((12, 14))}
    names = "prices-old.csv", "prices.csv"
    sources = [Source(n + 1, n, name, None, 0, len(texts[n]), texts[n], 0.5) for n, name in enumerate(names)]
    quotes = choose_quotes(SearchQuery("What does the hammer cost?"), sources, compare, texts)
    assert {one.n for one in quotes} == {1, 2}


def test_of_a_large_table_it_is_said_how_many_rows_are_quoted() -> None:
    (quote, *_) = register_quotes("What does goose 4 think of fishermen?")
    assert quote.note == f"{len(quote.sentences)} of 20 rows, found by their words. Nothing was computed."


def test_of_a_table_that_was_read_in_part_no_number_of_rows_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.retrieval.quotes.MAX_TEXT_CHARS", len(REGISTER.rstrip()))
    (quote, *_) = register_quotes("What does goose 4 think of fishermen?", REGISTER.rstrip())
    assert quote.note == ""


def test_a_small_table_is_quoted_whole_though_the_passage_ends_in_it() -> None:
    text = (
        "Actions\n\n| what | who |\n|---|---|\n| order motors | Jan |\n| write it | Paul |\n| book a hall | Greta |\n"
    )
    (quote, *_) = register_quotes("Which actions were agreed upon?", text, text.index("| book") - 1)
    assert [one.text for one in quote.sentences] == [line for line in text.split("\n")[4:] if line]
    assert quote.note == "3 of 3 rows, found by their words. Nothing was computed."


FLEET = "| Plate | Kind | Branch | Bought | Next service |\n|---|---|---|---|---|\n" + "".join(
    f"| V-{n} | {kind} | {branch} | {2000 + n}-03-01 | 2026-01-{n:02} |\n"
    for n, (kind, branch) in enumerate(
        [("Van", "Leith"), ("Van", "Perth"), ("Trailer", "Leith"), ("Trailer", "Perth")] * 5, 1
    )
)


@pytest.mark.parametrize("rows", [6, 20])
@pytest.mark.parametrize("question", ["Which van is the oldest?", "What is the newest van?"])
def test_where_two_columns_are_dates_it_is_said_that_nothing_was_computed(question: str, rows: int) -> None:
    quotes = register_quotes(question, "".join(FLEET.splitlines(keepends=True)[: rows + 2]))
    assert {(quote.computed, "Nothing was computed." in quote.note) for quote in quotes} == {(0, True)}


@pytest.mark.parametrize(
    ("question", "is_whole"),
    [
        *(("How many in Perth?", False), ("How many of the trailers?", False), ("Which are in Perth?", False)),
        *(("How much in Perth?", False), ("Wie viele in Perth?", False), ("Combien à Perth ?", False)),
        *(("How many vans are in Perth?", True), ("Which trailers are in Perth?", True)),
    ],
)
def test_after_another_question_one_that_does_not_say_of_what_it_asks_is_not_computed(
    question: str, is_whole: bool
) -> None:
    one = Source(1, 7, "fleet.csv", None, 0, len(FLEET), FLEET, 0.5)
    before = "How many vans were bought after 2010?"
    for query in (SearchQuery(question, before=before), SearchQuery(question, before, 0.6, 0.6, before=before)):
        quotes = choose_quotes(query, [one], compare, {7: FLEET})
        assert {bool(quote.computed) for quote in quotes} == {is_whole}
        assert ("Nothing was computed." in quotes[0].note) is not is_whole


def test_the_row_that_has_all_of_a_thing_comes_first() -> None:
    text = "| Article | Description | Supplier | Unit price (EUR) |\n|---|---|---|---|\n" + "".join(
        f"| {code}{n} | {what}, box of {50 * (n + 1)} | {supplier} | {price + n} |\n"
        for n in range(8)
        for code, what, supplier, price in [
            ("PC", "Paper clips", "Office & Co", 1.9),
            ("ST", "Staples", "Pinlab", 2.1),
        ]
    )
    (quote, *_) = register_quotes("What does a box of 50 paper clips cost?", text)
    assert quote.sentences[0].text == "| PC0 | Paper clips, box of 50 | Office & Co | 1.9 |"
    assert quote.note.endswith("Nothing was computed.")


def test_text_behind_code_that_began_far_before_a_passage_is_text() -> None:
    code = "run --step of the very long job that nobody reads\n" * 200
    keeper = "The keeper of the lighthouse feeds seventeen geese every morning."
    text = f"# Jobs\n\n```sh\n{code}```\n\n{keeper}\n\n```sh\nfeed geese\n```\n"
    start = text.index("The keeper")
    one = Source(1, 7, "jobs.md", None, start, len(text), text[start:], 0.5)
    quotes = choose_quotes(SearchQuery("How many geese does the keeper feed?"), [one], compare, {7: text})
    assert quotes[0].sentences[0].text == keeper
    assert sum(len(each.text) for quote in quotes for each in quote.sentences) < 1_500


def test_a_value_of_the_kind_that_is_asked_for_comes_first_and_a_title_last() -> None:
    between = "Geese swim around the island in the morning and sleep on the roof of the shed at night."
    sentences = (
        "Ann wrote that the invoice is paid in full.",
        between,
        "Bob wrote that the invoice is paid on 3 April.",
    )
    (first, *others) = quoted("When must the invoice be paid?", "\n\n".join(["Invoice of the lighthouse", *sentences]))
    assert first == (1, sentences[-1])
    assert "Invoice of the lighthouse" not in [text for _, text in others]


def test_what_stands_in_two_passages_is_quoted_once() -> None:
    assert quoted("How many geese does the keeper feed?", ISLAND, ISLAND) == quoted(
        "How many geese does the keeper feed?", ISLAND
    )


def test_a_heading_tells_what_the_sentence_below_it_is_about() -> None:
    text = "# Backup\n\nStop the server, and then copy the whole folder elsewhere.\n\n# Ports\n\nIt listens on 8000."
    assert quoted("How do I make a backup?", text) == [
        (1, "Stop the server, and then copy the whole folder elsewhere.")
    ]


def test_the_words_that_a_question_leans_on_count_as_well() -> None:
    text = "The keeper feeds seventeen geese on the island every day. The harbour master feeds nothing at all, ever."
    (quote,) = choose_quotes(SearchQuery("And why?", "Who feeds the geese?", 0.8), [source(text)], None)
    assert quote.sentences[0].text == "The keeper feeds seventeen geese on the island every day."


def test_the_common_words_of_a_question_that_leans_count_for_nothing() -> None:
    text = "The cake was first baked by Lena Holm in 1987, for a wedding. When and how it is eaten is up to everybody."
    (quote,) = choose_quotes(SearchQuery("And when?", "Who is Lena Holm?", 0.8), [source(text)], None)
    assert quote.sentences[0].text == "The cake was first baked by Lena Holm in 1987, for a wedding."


def test_a_line_whose_key_is_asked_for_comes_before_text_about_it() -> None:
    text = "The default is a matter of taste among captains.\n\nGeese swim around all day long.\n\nDefault: green"
    (quote, *_) = choose_quotes(SearchQuery("What is the default?"), [source(text)], None)
    assert quote.sentences[0].text == "Default: green"


def test_where_vectors_say_nothing_the_words_decide() -> None:
    (quote,) = choose_quotes(
        SearchQuery("看守人喂多少只鹅"), [source("灯烧油。看守人每天早上喂岛上十七只鹅。船是绿色的。")], None
    )
    assert quote.sentences[0].text == "看守人每天早上喂岛上十七只鹅。"


def test_only_the_best_by_their_words_are_embedded() -> None:
    embedder = WordHashEmbedder()
    choose_quotes(
        SearchQuery("geese"),
        [source("Geese eat. " + " ".join(f"Nothing {n} here." for n in range(40)))],
        comparing(embedder),
    )
    assert len(embedder.embedded) == 1 + MAX_EMBEDDED


@pytest.mark.parametrize("text", ["", "# Geese"])
def test_of_sources_without_a_sentence_nothing_is_quoted_and_nothing_embedded(text: str) -> None:
    embedder = WordHashEmbedder()
    found: list[Quote] = choose_quotes(SearchQuery("geese"), [source(text)] if text else [], comparing(embedder))
    assert found == []
    assert embedder.embedded == []


def test_words_are_compared_by_the_stems_of_their_language() -> None:
    german = (
        "Hinter dem Haus stehen vier Apfelbäume und der Schuppen. "
        "Die Bienenstöcke gehören seit dem Sommer Frau Lindner aus der Stadt. "
        "Der Hof wird am Abend und nicht am Morgen gegossen."
    )
    (quote,) = choose_quotes(SearchQuery("Wem gehört der Bienenstock?"), [source(german)], None)
    assert "Frau Lindner" in quote.sentences[0].text


def test_sentences_of_hindi_and_urdu_end_where_their_mark_stands() -> None:
    assert len(sentences_of("किताबें यहाँ हैं। पुस्तकालय बंद है। क्यों?")) == 3
    assert len(sentences_of("یہ کتاب ہے۔ وہ گھر ہے؟ ہاں")) == 3
