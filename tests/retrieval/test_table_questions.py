"""Questions over tables of their own kinds: dates in two columns, stock, money per supplier, months, German."""

import pytest

from rag_assistant.retrieval.table_answers import answer_from, query_for, unexplained
from rag_assistant.retrieval.table_query import Condition, TableAnswer, TableQuery
from rag_assistant.retrieval.tables import Tables, lists_of


def table_of(text: str) -> str:
    first, *rows = (f"| {line.replace(';', ' | ')} |" for line in text.strip().split("\n"))
    return "\n".join([first, "|" + "---|" * (first.count("|") - 1), *rows])


def answer(question: str, text: str, document: str, before: str = "") -> TableAnswer | None:
    (table,) = Tables(text).all
    return answer_from(question, text, table, document, before)


def holds(found: TableAnswer | None, expected: list[int] | str | None) -> bool:
    """Return whether an answer has just these rows, or a note with these words; or there is none."""
    if found is None or expected is None:
        return found is None and expected is None
    return expected in found.note if isinstance(expected, str) else list(found.rows) == expected


FLEET = table_of(""""Plate;Kind;Branch;Driver;Bought;Next service;Mileage (km);Price (EUR);In use;On site
V-1;Van;Leith;Ann Lee;2019-03-01;2026-02-01;91000;21000;yes;no
V-2;Van;Leith;;2021-05-11;2026-01-10;40000;30500;no;yes
V-3;Trailer;Perth;Bo Ek;2020-07-07;2025-12-24;0;8000;yes;yes
V-4;Van;Perth;Bo Ek;2023-01-15;2026-03-03;12000;33000;yes;no
V-5;Trailer;Leith;;2018-11-30;2026-01-31;0;7500;no;yes
V-6;Van;Leith;Cy Moe;2022-05-20;2026-02-14;55000;29000;yes;yes""")
ARTICLES = table_of(""""Article;Description;Supplier;In stock;Unit price (EUR);Discount
A-10;Paper clips, box of 50;Office & Co;120;1.90;5 %
A-11;Paper clips, box of 100;Office & Co;0;3.20;0 %
A-12;Staples, box of 50;Pinlab;14;2.10;
A-13;Ballpoint pen, blue;Pinlab;0;0.80;10 %
A-14;Ballpoint pen, red;Inkwell;310;0.85;
A-15;Desk lamp;Inkwell;7;39.00;15 %""")
ORDERS = table_of(""""Order;Supplier;Ordered;Delivered;Amount (EUR);Paid
O-1;Acme;2025-01-10;2025-01-20;500;Yes
O-2;Bolt Ltd;2025-02-03;2025-02-10;250;No
O-3;Acme;2025-03-15;2025-04-02;700;Yes
O-4;Cargo;2025-03-20;;90;No
O-5;Bolt Ltd;2025-05-05;2025-05-09;320;Yes""")
ENERGY = table_of(""""Month;Consumption (kWh);Cost (EUR)
January;4200;1260
February;3900;1170
March;3500;1050
April;2800;840
May;2100;630""")
STAFF = table_of(""""Name;Abteilung;Standort;Eintritt;Gehalt (EUR);Teilzeit
Anna Kunz;Vertrieb;Bonn;01.04.2019;52.000;nein
Ben Ott;Einkauf;Bonn;15.09.2021;48.500;ja
Cem Yilmaz;Vertrieb;Ulm;01.01.2023;61.000;nein
Dora Pohl;Technik;Ulm;01.07.2020;58.200;ja
Emil Raab;Technik;Bonn;12.03.2018;63.400;nein""")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which branch has the most vans?", "Leith, 3"),
        ("How many vans does each branch have?", "Leith 3; Perth 1"),
        ("How many vehicles per branch are there?", None),
        ("Which vans are in use?", [0, 3, 5]),
        ("Which vans are not in use?", [1]),
        ("What is not in use?", [1, 4]),
        ("Which vans are on site?", [1, 5]),
        ("Is there a van in Perth?", [3]),
        ("Which vans have no driver?", [1]),
        ("Which trailers have nobody assigned?", None),
        ("Which is the oldest van?", [0]),
        ("Which van was bought last?", [3]),
        ("Which van has its next service first?", [1]),
        ("Which vans were bought after 2020?", [1, 3, 5]),
        ("Which vans were bought before May 2021?", [0]),
        ("Which vans were bought in 2021 or 2022?", None),
        ("Which vans are due for service in February?", None),
        ("Which vans have their next service in February 2026?", [0, 5]),
        ("Which vans were bought between 2020 and 2022?", [1, 5]),
        ("What did the vans cost in total?", "113,500"),
        ("How much did we spend per branch?", "Leith 88,000"),
        ("How much did we pay for trailers?", "15,500"),
        ("Which is the most expensive van?", [3]),
        ("Which vans have more than 50,000 km?", [0, 5]),
        ("Which vans have a mileage over 50000?", [0, 5]),
        ("Which vans cost less than 30,000 euros?", [0, 5]),
        ("What is the average price of a van?", "28,375"),
        ("Which branches do we have?", "Branch, 2: Leith; Perth"),
        ("How many branches do we have?", "Branch, 2"),
        ("Who drives V-4?", [3]),
        ("Which vans does Bo Ek drive?", [3]),
        ("How many vans were stolen?", None),
        ("How many vans are being serviced?", None),
        ("Which vans are electric?", None),
        ("How many people work in Leith?", None),
        ("Which driver has the most vehicles?", None),
        ("List all vans with a driver", [0, 3, 5]),
        ("What is the total mileage of the vans in Leith?", "186,000"),
        ("Which van has the highest mileage?", [0]),
        ("Which vans are older than 5 years?", None),
        ("How many vans are not on site?", [0, 3]),
        ("List all vans that are in use and on site", [5]),
        ("Which vans are neither in use nor on site?", None),
        ("Which vans are in use but not on site?", [0, 3]),
    ],
)
def test_rows_are_told_by_place_dates_use_and_what_is_missing(question: str, expected: list[int] | str | None) -> None:
    found = answer(question, FLEET, "fleet.csv")
    assert holds(found, expected), found


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what does a box of 50 paper clips cost", [0]),
        ("What is the price of a box of 100 paper clips?", [1]),
        ("Which articles are out of stock?", [1, 3]),
        ("Which articles are in stock?", [0, 2, 4, 5]),
        ("Which articles are without a discount?", [1, 2, 4]),
        ("Which articles have a discount?", [0, 3, 5]),
        ("Which articles have no discount?", [1, 2, 4]),
        ("How many suppliers do we have?", "Supplier, 3"),
        ("How many different suppliers are there?", "Supplier, 3"),
        ("Which suppliers do we have?", "Supplier, 3"),
        ("Which suppliers are there?", "Supplier, 3"),
        ("List all suppliers", "Supplier, 3"),
        ("Which articles does Pinlab supply?", [2, 3]),
        ("How many ballpoint pens do we have in stock?", "310"),
        ("Which article is the cheapest?", [3]),
        ("Which articles cost more than 2 euros?", [1, 2, 5]),
        ("How many articles are there?", "6 rows"),
        ("Which supplier has the most articles?", "Inkwell; Office & Co; Pinlab, 2"),
        ("What is the stock of the red ballpoint pen?", [4]),
        ("Which articles cost over 5 dollars?", None),
        ("How many articles did we sell?", None),
        ("Which articles are blue?", [3]),
        ("Which articles are green?", None),
        ("Do we have any desk lamps?", [5]),
    ],
)
def test_stock_discounts_and_descriptions_are_told_apart(question: str, expected: list[int] | str | None) -> None:
    found = answer(question, ARTICLES, "articles.csv")
    assert holds(found, expected), found


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How much did we spend per supplier?", "Acme 1,200; Bolt Ltd 570; Cargo 90"),
        ("Which is the most expensive order?", [2]),
        ("most expensive order", [2]),
        ("Which orders were delivered before April?", [0, 1]),
        ("Which orders were delivered after March 2025?", [2, 4]),
        ("Which orders were placed in March 2025?", None),
        ("Which orders were ordered in March 2025?", [2, 3]),
        ("Which order is the oldest?", None),
        ("Which order was delivered last?", [4]),
        ("Which orders have not been paid?", [1, 3]),
        ("Which orders were delivered?", [0, 1, 2, 4]),
        ("How many orders were delivered?", [0, 1, 2, 4]),
        ("When was O-4 delivered?", [3]),
        ("Which Acme orders were invoiced?", None),
        ("Which orders are unpaid?", [1, 3]),
        ("Which orders were not delivered?", [3]),
        ("Which supplier did we spend the most on?", "Acme, 1,200"),
        ("What is the total amount of unpaid orders?", "340"),
        ("How much did we pay Acme?", "1,200"),
        ("How many orders did Acme get?", [0, 2]),
        ("Which orders are over 400 euros?", [0, 2]),
        ("Average order amount by supplier", "Acme 600"),
        ("What is the number of orders per supplier?", "Acme 2; Bolt Ltd 2; Cargo 1"),
        ("Which orders were ordered between February and March 2025?", [1, 2, 3]),
    ],
)
def test_money_is_added_up_per_supplier_and_dates_need_their_column(
    question: str, expected: list[int] | str | None
) -> None:
    found = answer(question, ORDERS, "orders.csv")
    assert holds(found, expected), found


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which months are above 3,500 kWh?", [0, 1]),
        ("months above 3,500 kWh", [0, 1]),
        ("Which month had the highest consumption?", [0]),
        ("How much did we spend in total?", "4,950"),
        ("What did the energy cost in March?", [2]),
        ("What is the average consumption?", "3,300"),
        ("In which months did we pay more than 1,000 euros?", [0, 1, 2]),
        ("What was the consumption in May?", [4]),
        ("How much gas did we use?", None),
        ("Which item was the most expensive?", None),
        ("What was the total cost from January to March?", "3,480"),
    ],
)
def test_a_month_is_a_cell_where_the_column_has_months(question: str, expected: list[int] | str | None) -> None:
    found = answer(question, ENERGY, "energy_2025.csv")
    assert holds(found, expected), found


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Wie viele Mitarbeiter arbeiten in Bonn?", [0, 1, 4]),
        ("Wer arbeitet in Teilzeit?", [1, 3]),
        ("Wer arbeitet nicht in Teilzeit?", [0, 2, 4]),
        ("Welche Abteilungen gibt es?", "Abteilung, 3"),
        ("Wie hoch ist das durchschnittliche Gehalt im Vertrieb?", "56,500"),
        ("Wer verdient am meisten?", None),
        ("Wer hat das höchste Gehalt?", [4]),
        ("Wer ist nach 2020 eingetreten?", None),
        ("Wie viele Mitarbeiter gibt es pro Standort?", "Bonn 3; Ulm 2"),
        ("Welcher Standort hat die meisten Mitarbeiter?", "Bonn, 3"),
        ("Wie hoch ist die Summe der Gehälter?", "283,100"),
        ("Welche Mitarbeiter haben ein Gehalt über 60.000 Euro?", [2, 4]),
        ("Nenne alle Mitarbeiter aus Ulm", [2, 3]),
        ("Wie viele Mitarbeiter haben ein Auto?", None),
    ],
)
def test_german_questions_are_computed_as_english_ones_are(question: str, expected: list[int] | str | None) -> None:
    found = answer(question, STAFF, "mitarbeiter.csv")
    assert holds(found, expected), found


@pytest.mark.parametrize(
    ("before", "question", "expected"),
    [
        (
            "How many vans are in use?",
            "And of the trailers?",
            "1 of 6 rows, where “In use” is “yes” and “Kind” is “Trailer”.",
        ),
        (
            "How many vans are in use?",
            "And in Perth?",
            "1 of 6 rows, where “Kind” is “Van” and “In use” is “yes” and “Branch” is “Perth”.",
        ),
        ("What is the average price of a van?", "What about the trailers?", "Average of Price (EUR): 7,750.00."),
        ("When was V-2 bought?", "Is it on site?", [1]),
        ("What did we talk about?", "And of the trailers?", None),
        ("How many vans are in use?", "And of the lorries?", None),
        ("", "And of the trailers?", None),
        ("", "Is it on site?", None),
    ],
)
def test_a_follow_up_keeps_the_conditions_before_it(
    before: str, question: str, expected: list[int] | str | None
) -> None:
    found = answer(question, FLEET, "fleet.csv", before)
    assert holds(found, expected), found


LOANS = table_of(""""Loan;Pupil;Class;Phone;Book;Lent;Returned;Fine (GBP)
L-1;Ada Moss;5A;0421 5550;Skellig;2026-01-10;2026-01-20;0.50
L-2;Ben Roe;5B;;Holes;2026-01-12;;0
L-3;Ada Moss;5A;0421 5550;Holes;2026-02-01;2026-03-01;1.20
L-4;Cy Tull;5B;0421 7771;Wonder;2026-02-09;;0""")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("fines per class", "Sum of Fine (GBP) per Class: 5A 1.70; 5B 0."),
        ("How much are the fines per class?", "Sum of Fine (GBP) per Class: 5A 1.70; 5B 0."),
        ("How many loans per class?", "Rows per Class: 5A 2; 5B 2."),
        ("What is the date of Ada Moss?", None),
        ("What is the address of Ada Moss?", None),
    ],
)
def test_figures_are_added_up_per_group_and_a_columns_noun_is_one_of_its_words(
    question: str, expected: list[int] | str | None
) -> None:
    found = answer(question, LOANS, "library_loans.csv")
    assert holds(found, expected), found


def test_how_many_of_them_counts_the_rows_of_the_question_before() -> None:
    before = "How many loans have not been returned yet?"
    found = answer("How many of them are from Ben Roe?", LOANS, "library_loans.csv", before)
    assert holds(found, "1 of 4 rows, where “Returned” is empty and “Pupil” is “Ben Roe”."), found
    assert holds(answer("Wie viele davon hat Ben Roe?", LOANS, "library_loans.csv", before), "1 of 4 rows"), found


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many vans are in Leith?", []),
        ("How many vans are being serviced in Leith?", ["serviced"]),
        ("How many electric vans are in Leith?", ["electric"]),
    ],
)
def test_a_query_of_a_model_is_told_the_words_that_it_leaves_out(question: str, words: list[str]) -> None:
    where = (Condition("Kind", "=", "Van"), Condition("Branch", "=", "Leith"))
    (table,) = Tables(FLEET).all
    assert unexplained(TableQuery(1, "count", where=where), question, FLEET, table, "fleet.csv") == words


MEMBERS = table_of("""Berth;Boat owner;Pier;Fee per year (EUR);Payment;Length (m);Paid
B-1;Ann Lee;North;310;yearly;8;yes
B-2;;North;290;;7;no
B-3;Bo Ek;South;450;half-yearly;11;no
B-4;Cy Moe;South;450;yearly;12;no""")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # Where there is no owner, no owner has not paid.
        ("Which boat owners have not paid?", [2, 3]),
        ("How many boat owners have not paid?", "2 of 4 rows, where “Paid” is “no” and “Boat owner” is not empty."),
        # "Per year" is the column's, no payment.
        ("What is the total fee per year?", "1,500.\n4 rows."),
        ("How much do we get in fees per year?", "1,500.\n4 rows."),
        ("How much is the fee per year in total for the South pier?", "= 900.\n2 of 4 rows, where “Pier” is “South”."),
        ("Which berths pay yearly?", [0, 3]),
        # Per row, not per group of rows.
        ("What is the average fee per pier berth?", "Average of Fee per year (EUR): 375.00."),
        ("What is the average fee per pier?", "per Pier: South 450.00; North 300.00."),
        ("What is the sum of the fees per berth?", "per Berth: B-3 450; B-4 450; B-1 310; B-2 290."),
        ("Which berths are bigger than 10 m?", [2, 3]),
        ("Which pier has the most berths?", "Most rows per Pier: North; South, 2."),
    ],
)
def test_what_a_column_says_is_no_cell_and_what_is_empty_is_nobody(
    question: str, expected: list[int] | str | None
) -> None:
    found = answer(question, MEMBERS, "berths.csv")
    assert holds(found, expected), found


ACTIONS = table_of("""Action;Responsible;Status
Repaint the meeting rooms;Ann Lee;open
Buy a new coffee machine;Bo Ek;done
Coffee machine service;Bo Ek;open""")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which meeting rooms do we have?", None),
        ("How many meeting rooms are there?", None),
        ("Which coffee machines do we have?", None),
        ("Who repaints the meeting rooms?", [0]),
        ("Which actions are about coffee machines?", [1, 2]),
        ("How many actions did the meeting agree?", None),
        ("How many actions did the meeting make?", "3 rows."),
    ],
)
def test_a_thing_that_a_cell_only_mentions_is_not_what_the_rows_are(
    question: str, expected: list[int] | str | None
) -> None:
    found = answer(question, ACTIONS, "minutes.md")
    assert holds(found, expected), found


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which rooms do we have?", "Room, 2: Kiln room; Studio."),
        ("Which meeting rooms do we have?", None),
        ("How many classes are in a small room?", None),
        ("Which classes are in the kiln room?", [0, 2]),
        ("Which classes are in a room that was booked?", None),
    ],
)
def test_the_name_of_a_column_is_no_part_of_its_cells(question: str, expected: list[int] | str | None) -> None:
    text = table_of("Class;Room;Fee (EUR)\nPottery;Kiln room;90\nYoga;Studio;40\nGlazing;Kiln room;70")
    found = answer(question, text, "classes.md")
    assert holds(found, expected), found


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How much did we spend in total?", "Sum of Spent (EUR): 512.40 + 98.50 = 610.90.\n2 rows."),
        (
            "How much did we spend on the choir?",
            "Sum of Spent (EUR): 512.40.\n1 of 2 rows, where “Category” is “Choir”.",
        ),
        ("Which item was the most expensive?", None),
    ],
)
def test_what_was_spent_is_not_what_was_planned(question: str, expected: str | None) -> None:
    text = table_of("Item;Category;Planned (EUR);Spent (EUR)\nSheet music;Choir;450;512.40\nCompost;Garden;120;98.50")
    found = answer(question, text, "budget.csv")
    assert holds(found, expected), found


@pytest.mark.parametrize("name", ["In stock", "On site", "Is active", "With VAT"])
def test_a_stop_word_names_no_column(name: str) -> None:
    text = table_of(f"Part;Town;{name}\nBolt;Leith;yes\nNut;Leith;no\nCog;Perth;yes")
    (table,) = Tables(text).all
    query = query_for(
        "Which part is in Leith with us on that street, or is it so?".split(" with")[0], text, table, "x.csv"
    )
    assert query is not None
    assert query.where == (Condition("Town", "=", "Leith"),)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("En stock", "Quelles pièces sont en vente à Leith avec nous ?"),
        ("En almacén", "¿Qué piezas están en Leith con nosotros?"),
        ("在库", "哪些零件在Leith?"),
        ("في المخزن", "ما هي القطع الموجودة في Leith؟"),
        ("Im Lager", "Welche Teile sind im Ort Leith bei uns?"),
    ],
)
def test_a_stop_word_names_no_column_in_other_languages_either(name: str, question: str) -> None:
    text = table_of(f"Part;Town;{name}\nBolt;Leith;yes\nNut;Leith;no\nCog;Perth;yes")
    (table,) = Tables(text).all
    query = query_for(question, text, table, "x.csv")
    assert query is None or all(one.column != name for one in query.where)


@pytest.mark.parametrize(
    ("name", "question"),
    [("En stock", "Part en Leith ?"), ("En almacén", "Part en Leith"), ("Im Lager", "Part im Leith")],
)
def test_nor_does_it_where_all_other_words_are_explained(name: str, question: str) -> None:
    text = table_of(f"Part;Town;{name}\nBolt;Leith;yes\nNut;Leith;no\nCog;Perth;yes")
    (table,) = Tables(text).all
    query = query_for(question, text, table, "x.csv")
    assert query is None or all(one.column != name for one in query.where)


FERRIES = table_of("""Trip;From;To;Departs;Arrives;Crossing (min);Deck;Department
F1;Harbour;Airport;8:05;8:45;40;1;East
F2;Airport;Harbour;18:20;19:10;50;2;East
F3;Harbour;Island;21:15;22:00;45;2;West""")
PLOTS = table_of("""Plot;Tenant;Size (m²);Rent (EUR);Lent to;Notice
P1;Ann Lee;250;105;Bo Ek;3 months
P2;Bo Ek;365;150;;1 month
P3;Cy Moe;300;170;;3 months""")
COURSES = table_of("""Participant;Language;Teacher;Lessons attended;Course cost (EUR)
Ann Lee;Polish;Mr Oduya;12;545
Bo Ek;Greek;Ms Tran;22;329
Cy Moe;Polish;Mr Oduya;14;400""")
ORIGINS = table_of("""Gebäude;Verbrauch (kWh);Kosten (€);Baujahr;Letzte Ablesung
Rathaus;124.970;17.495,80;1964;23.08.2025
Bauhof;29.390;9.110,90;2016;05.11.2025""")


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Which trips leave after 18:00?", FERRIES, [1, 2]),
        ("What is the earliest departure?", FERRIES, [0]),
        ("Which trips leave from the harbour?", FERRIES, [0, 2]),
        ("Which trips are on deck 2?", FERRIES, [1, 2]),
        ("Which department has the most trips?", FERRIES, "Most rows per Department: East, 2."),
        ("Which is the largest plot?", PLOTS, [1]),
        ("Which plots are lent?", PLOTS, [0]),
        ("Which plots have a notice of three months?", PLOTS, [0, 2]),
        ("What is the total cost from February to April?", ENERGY, "= 3,060."),
        ("In which months did we use more than 3,000 kWh?", ENERGY, [0, 1, 2]),
        ("How much did we consume in total?", ENERGY, "16,500"),
        ("What is the mean number of lessons attended in the courses?", COURSES, "Average of Lessons attended: 16.00."),
        ("Which language course participant attended the most lessons?", COURSES, [1]),
        ("Welches Gebäude verbraucht am meisten?", ORIGINS, [0]),
        ("Was ist unser ältestes Gebäude?", ORIGINS, [0]),
        ("How many trips did we call?", FERRIES, None),
        ("Which plot is the most modern?", PLOTS, None),
    ],
)
def test_times_months_sizes_and_words_of_one_root_name_their_column(
    question: str, text: str, expected: list[int] | str | None
) -> None:
    names = {FERRIES: "ferry_trips.csv", PLOTS: "plots.csv", COURSES: "language_courses.csv", ENERGY: "energy.csv"}
    found = answer(question, text, names.get(text, "gebäude.csv"))
    assert holds(found, expected), found


SUPPLIES = table_of("""Article;Rayon;Fournisseur;Quantité;Prix unitaire (€);Livré
Agrafeuse;Bureau;Lyreco;12;14,50;oui
Ramette A4;Papier;Antalis;80;4,20;oui
Stylo bleu;Bureau;Lyreco;200;0,90;non
Toner noir;Impression;Manutan;6;89,00;non
Tambour;Impression;Manutan;2;129,00;oui""")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Combien d'articles avons-nous au rayon Bureau ?", "2 of 5 rows, where “Rayon” is “Bureau”."),
        ("Quels articles n'ont pas été livrés ?", [2, 3]),
        ("Quel est l'article le plus cher ?", [4]),
        ("Quelle est la quantité totale des articles ?", "= 300."),
        ("Combien d'articles par fournisseur ?", "Rows per Fournisseur: Lyreco 2; Manutan 2; Antalis 1."),
        ("Quels articles coûtent plus de 50 euros ?", [3, 4]),
        ("Quel est le prix unitaire moyen ?", "47.52"),
        ("Quels fournisseurs avons-nous ?", "Fournisseur, 3: Antalis; Lyreco; Manutan."),
        ("Combien coûte le toner noir ?", [3]),
        ("Combien d'articles sont en rupture ?", None),
        ("Pourquoi le toner est-il cher ?", None),
    ],
)
def test_tables_answer_in_french(question: str, expected: list[int] | str | None) -> None:
    found = answer(question, SUPPLIES, "fournitures.csv")
    assert holds(found, expected), found


@pytest.mark.parametrize(
    "question", ["What is the default of smtp_url?", "When is smtp_url needed?", "Is smtp_url set?"]
)
def test_a_list_answers_only_what_asks_for_a_list(question: str) -> None:
    text = "# smtp_url\n\nThe steps:\n\n- Register a new application\n- Set smtp_url\n- Restart"
    (items,) = lists_of(text)
    assert answer_from(question, text, items, "settings.md") is None
    assert answer_from("List all steps of smtp_url", text, items, "settings.md") is not None
