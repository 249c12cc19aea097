"""What is computed from all rows of a table or list by rules, and what isn't."""

import pytest

from rag_assistant.retrieval.table_answers import query_for, unexplained
from rag_assistant.retrieval.table_query import Condition, TableAnswer, TableQuery, run
from rag_assistant.retrieval.tables import Table, Tables, lists_of


def table_of(text: str) -> str:
    first, *rows = (f"| {line.replace(';', ' | ')} |" for line in text.strip().split("\n"))
    return "\n".join([first, "|" + "---|" * (first.count("|") - 1), *rows])


TABLES = {
    "expenses.csv": """Expense ID;Employee;Date;Category;Amount (EUR);Approved
E-101;Nora Feld;2024-01-08;Train;84.20;Yes
E-102;Tim Osei;2024-01-15;Hotel;1,312.00;No
E-103;Nora Feld;2024-01-22;Meals;46.90;Yes
E-104;Luis Prado;2024-02-02;Taxi;38.00;No""",
    "shipments.csv": """Shipment;Weight (kg);Hours;Severity;Carrier
SH-700;30;5;high;First Freight
SH-701;900;2;low;Falk
SH-702;70;9;high;Falk
Total;1000;16;;""",
    "fleet.csv": """Plate;Kind;Branch;Driver;Bought;Next service;Mileage (km);Price (EUR);In use;On site
V-1;Van;Leith;Ann Lee;2019-03-01;2026-02-01;91000;21000;yes;no
V-2;Van;Leith;;2021-05-11;2026-01-10;40000;30500;no;yes
V-3;Trailer;Perth;Bo Ek;2020-07-07;2025-12-24;0;8000;yes;yes
V-4;Van;Perth;Bo Ek;2023-01-15;2026-03-03;12000;33000;yes;no
V-5;Trailer;Leith;;2018-11-30;2026-01-31;0;7500;no;yes
V-6;Van;Leith;Cy Moe;2022-05-20;2026-02-14;55000;29000;yes;yes""",
    "articles.csv": """Article;Description;Supplier;In stock;Unit price (EUR);Discount
A-10;Paper clips, box of 50;Office & Co;120;1.90;5 %
A-11;Paper clips, box of 100;Office & Co;0;3.20;0 %
A-12;Staples, box of 50;Pinlab;14;2.10;
A-13;Ballpoint pen, blue;Pinlab;0;0.80;10 %
A-14;Ballpoint pen, red;Inkwell;310;0.85;
A-15;Desk lamp;Inkwell;7;39.00;15 %""",
    "orders.csv": """Order;Supplier;Placed;Amount (EUR);Paid
O-1;Acme;2025-01-10;500;Yes
O-2;Bolt Ltd;2025-02-03;250;No
O-3;Acme;2025-03-15;700;Yes
O-4;Cargo;2025-03-20;90;No
O-5;Bolt Ltd;2025-05-05;320;Yes""",
    "energy.csv": """Month;Consumption (kWh);Cost (EUR)
January;4200;1260
February;3900;1170
March;3500;1050""",
    "berths.csv": """Berth;Boat owner;Pier;Fee per year (EUR);Payment;Length (m);Paid
B-1;Ann Lee;North;310;yearly;8;yes
B-2;;North;290;;7;no
B-3;Bo Ek;South;450;half-yearly;11;no
B-4;Cy Moe;South;450;yearly;12;""",
    "minutes.md": """Action;Responsible;Status
Repaint the meeting rooms;Ann Lee;open
Buy a new coffee machine;Bo Ek;done
Coffee machine service;Bo Ek;open""",
    "laptops.csv": """Laptop;Department;Range (km)
L-1;IT;12
L-2;Sales;7""",
    "mitarbeiter.csv": """Name;Abteilung;Standort;Eintritt;Gehalt (EUR);Teilzeit
Anna Kunz;Vertrieb;Bonn;01.04.2019;52.000;nein
Ben Ott;Einkauf;Bonn;15.09.2021;48.500;ja
Cem Yilmaz;Vertrieb;Ulm;01.01.2023;61.000;nein""",
    "fournitures.csv": """Article;Rayon;Fournisseur;Quantité;Prix unitaire (€);Livré
Agrafeuse;Bureau;Lyreco;12;14,50;oui
Ramette A4;Papier;Antalis;80;4,20;oui
Stylo bleu;Bureau;Lyreco;200;0,90;non""",
    "donations.md": """No.;Received;Donor;Item;Quantity;Unit
D-1;2025-10-21;Rotary Club;Baked beans;42;tins
D-2;2025-10-23;Rotary Club;Rice;9;bags
D-3;2025-11-02;Holm Bakery;Baked beans;6;tins""",
    "prints.csv": """Product;Category;Working days;Collected on
Poster;Display;4;2025-02-01
Cards;Stationery;3;2025-03-04""",
    "members.csv": """Member;First name;Last name;Fee
M1;Ann;Lee;30
M2;Bo;Ek;20""",
    "fuel.csv": """Fill;Supplier;Litres
F1;Total;40
F2;Esso;30""",
    "trips.csv": """Trip;From;To;Departs;Crossing (min)
F1;Harbour;Airport;8:05;40
F2;Airport;Harbour;18:20;50""",
}

COMPUTED = [
    # Counted, added up, averaged and compared; rows of totals are left out.
    ("expenses.csv", "How many expenses are there?", "4 rows."),
    ("expenses.csv", "What is the sum of the expenses of Nora Feld?", "Sum of Amount (EUR): 84.20 + 46.90 = 131.10."),
    ("expenses.csv", "What is the average expense?", "Average of Amount (EUR): 370.28."),
    ("expenses.csv", "Which expense is the largest?", [1]),
    ("expenses.csv", "Which is the cheapest expense?", [3]),
    ("expenses.csv", "Which is the latest expense?", [3]),
    ("shipments.csv", "What is the total weight of the shipments?", "= 1,000."),
    ("shipments.csv", "How many hours do the shipments take?", "Sum of Hours: 5 + 2 + 9 = 16."),
    ("shipments.csv", "Which shipment is the heaviest?", [1]),
    ("fleet.csv", "How much did we pay for trailers?", "15,500"),
    ("fleet.csv", "Which is the most expensive van?", [3]),
    ("fleet.csv", "Which van was bought last?", [3]),
    ("fleet.csv", "Which van has the highest mileage?", [0]),
    ("energy.csv", "What is the average consumption?", "3,866.67"),
    ("laptops.csv", "Which laptop has the fewest kilometres?", [1]),
    # Per group, and the different values of a column.
    ("fleet.csv", "How many vans does each branch have?", "Leith 3; Perth 1"),
    ("fleet.csv", "How much did we spend per branch?", "Leith 88,000; Perth 41,000"),
    ("fleet.csv", "Which branch has the most vans?", "Leith, 3"),
    ("orders.csv", "Which supplier did we spend the most on?", "Acme, 1,200"),
    ("orders.csv", "Average order amount by supplier", "Acme 600"),
    ("articles.csv", "Which suppliers do we have?", "Supplier, 3: Inkwell; Office & Co; Pinlab."),
    ("articles.csv", "How many different suppliers are there?", "Supplier, 3"),
    ("berths.csv", "What is the average fee per pier?", "per Pier: South 450.00; North 300.00."),
    ("berths.csv", "What is the sum of the fees per berth?", "per Berth: B-3 450; B-4 450; B-1 310; B-2 290."),
    # Cells, and parts of cells.
    ("expenses.csv", "Which expenses of Nora Feld are there?", "where “Employee” is “Nora Feld”."),
    ("expenses.csv", "How many expenses does Nora have?", "2 of 4 rows, where “Employee” contains “Nora”."),
    ("expenses.csv", "Which expenses are not from Nora?", [1, 3]),
    ("expenses.csv", "What did the hotel cost?", [1]),
    ("shipments.csv", "Who took the First Freight shipments?", [0]),
    ("shipments.csv", "How many high severity shipments are there?", [0, 2]),
    ("fleet.csv", "Who drives V-4?", [3]),
    ("articles.csv", "Do we have any desk lamps?", [5]),
    ("articles.csv", "What is the discount of the red ballpoint pen?", [4]),
    ("minutes.md", "Which actions are about coffee machines?", [1, 2]),
    ("laptops.csv", "List all IT laptops", [0]),
    ("energy.csv", "What did the energy cost in March?", [2]),
    # Figures and dates.
    ("shipments.csv", "Which shipments have a weight of at most 70?", [0, 2]),
    ("shipments.csv", "How many Falk shipments had fewer than 5 hours?", [1]),
    ("fleet.csv", "Which vans have more than 50,000 km?", [0, 5]),
    ("fleet.csv", "Which vans cost less than 30,000 euros?", [0, 5]),
    ("energy.csv", "months above 3,500 kWh", [0, 1]),
    ("shipments.csv", "How many shipments weigh more than 50?", "2 of 3 rows, where “Weight (kg)” > 50."),
    ("donations.md", "How many donations have baked beans?", [0, 2]),
    ("fleet.csv", "Which vans were bought after 2020?", [1, 3, 5]),
    ("fleet.csv", "Which vans were bought between 2020 and 2022?", [1, 5]),
    ("fleet.csv", "Which vans have their next service in February 2026?", [0, 5]),
    ("orders.csv", "Which orders were placed before March?", [0, 1]),
    ("orders.csv", "Which orders were placed between February and March 2025?", [1, 2, 3]),
    # Yes and no, and what is empty; a word of a column's name is no cell.
    ("expenses.csv", "Which expenses are unapproved?", "2 of 4 rows, where “Approved” is “No”."),
    ("expenses.csv", "Which expenses were approved?", [0, 2]),
    ("fleet.csv", "Which vans are in use but not on site?", [0, 3]),
    ("fleet.csv", "Which vans have no driver?", [1]),
    ("articles.csv", "Which articles are out of stock?", [1, 3]),
    ("articles.csv", "Which articles are without a discount?", [1, 2, 4]),
    ("berths.csv", "Which berths are not paid?", [1, 2]),
    ("berths.csv", "What is the total fee per year?", "1,500.\n4 rows."),
    # In German and French.
    ("mitarbeiter.csv", "Wie viele Mitarbeiter arbeiten in Bonn?", [0, 1]),
    ("mitarbeiter.csv", "Wer arbeitet nicht in Teilzeit?", [0, 2]),
    ("mitarbeiter.csv", "Wie hoch ist das durchschnittliche Gehalt im Vertrieb?", "56,500"),
    ("mitarbeiter.csv", "Welche Mitarbeiter haben ein Gehalt über 50.000 Euro?", [0, 2]),
    ("mitarbeiter.csv", "Wie viele Mitarbeiter gibt es pro Standort?", "Bonn 2; Ulm 1"),
    ("fournitures.csv", "Combien d'articles avons-nous au rayon Bureau ?", [0, 2]),
    ("fournitures.csv", "Quel est l'article le plus cher ?", [0]),
    ("fournitures.csv", "Quels articles n'ont pas été livrés ?", [2]),
    ("fournitures.csv", "Quels articles coûtent plus de 4 euros ?", [0, 1]),
]

NOT_COMPUTED = [
    # A word is neither a column's name nor a cell, an operation or the noun for the rows.
    ("expenses.csv", "Which expenses were paid by card?"),
    ("expenses.csv", "What is the salary of Nora Feld?"),
    ("expenses.csv", "How many suppliers do we have?"),
    ("expenses.csv", "Which expenses are over 5 years?"),
    ("fleet.csv", "How many vans were stolen?"),
    ("fleet.csv", "How many people work in Leith?"),
    ("articles.csv", "Which articles cost over 5 dollars?"),
    ("trips.csv", "How many trips did we call?"),
    # Nothing in the question is the table's, or nothing of it is asked for.
    ("expenses.csv", "How many are there in total?"),
    ("expenses.csv", "What are the expenses?"),
    ("expenses.csv", "Which hotel expenses does Nora Feld have?"),
    ("expenses.csv", f"Which expenses were not approved{' or not approved' * 20}?"),
    # A name of a column that the result leaves out, several columns that may be meant, and only some of the rows.
    ("fleet.csv", "How many vans are being serviced?"),
    ("fleet.csv", "Which is the oldest van?"),
    ("berths.csv", "Which boat owners have not paid?"),
    ("berths.csv", "What is the average fee per pier berth?"),
    ("fleet.csv", "List all vans with a driver"),
    ("fleet.csv", "Which vans are neither in use nor on site?"),
    ("fleet.csv", "Which vans are not there without why?"),
    ("laptops.csv", "Which laptop is the cheapest?"),
    # A thing that a cell only mentions.
    ("minutes.md", "Which meeting rooms do we have?"),
    ("minutes.md", "Which coffee machines do we have?"),
    # Several cells of a column, the months between two, times, and the words of a column's name for its cells.
    ("expenses.csv", "List the taxi and hotel expenses"),
    ("energy.csv", "What was the total cost from January to March?"),
    ("trips.csv", "Which trips leave after 18:00?"),
    ("trips.csv", "What is the earliest departure?"),
    ("trips.csv", "Which trips leave from the harbour?"),
    # A thing of which a row has several, a group that is no column, and what is only compared.
    ("donations.md", "How many tins of baked beans did we get?"),
    ("members.csv", "How much did each person pay?"),
    # A thing that is only said to be done, or that no row has, a word of the same root, and a cell that says total.
    ("prints.csv", "How many works are not on display?"),
    ("prints.csv", "Which is the oldest work in the collection?"),
    ("minutes.md", "Which actions are on repainting?"),
    ("fuel.csv", "What is the total of the fills?"),
    # Synonyms, numbers without a column's name, ages, and what was done.
    ("energy.csv", "How much did we consume in total?"),
    ("articles.csv", "What does a box of 50 paper clips cost?"),
    ("fleet.csv", "Which vans are older than 5 years?"),
    ("fournitures.csv", "Combien d'articles sont en rupture ?"),
    # Follow-ups and reasons.
    ("fleet.csv", "And of the trailers?"),
    ("fleet.csv", "Is it on site?"),
    ("fleet.csv", "How many of them are in Perth?"),
    ("fleet.csv", "How many of those are trailers?"),
    ("fleet.csv", "Which of those are in Perth?"),
    ("orders.csv", "How much did those cost?"),
    ("fleet.csv", "Why are vans in Perth?"),
]


def answer(document: str, question: str) -> TableAnswer | None:
    text = table_of(TABLES[document])
    (table,) = Tables(text).all
    return computed(question, text, table, document)


def computed(question: str, text: str, table: Table, document: str) -> TableAnswer | None:
    query, _ = query_for(question, text, table, document)
    return run(query, text, table) if query else None


@pytest.mark.parametrize(("document", "question", "expected"), COMPUTED)
def test_a_question_that_a_table_explains_is_computed(document: str, question: str, expected: list[int] | str) -> None:
    found = answer(document, question)
    assert found is not None
    assert expected in found.note if isinstance(expected, str) else list(found.rows) == expected, found


@pytest.mark.parametrize(("document", "question"), NOT_COMPUTED)
def test_of_any_other_nothing_is_computed(document: str, question: str) -> None:
    assert answer(document, question) is None


def test_the_numbers_of_rows_are_no_figures() -> None:
    text = table_of("No.;Task\n1;Sail\n2;Row")
    assert computed("What is the sum of the tasks?", text, Tables(text).all[0], "tasks.csv") is None


def test_a_table_without_rows_explains_nothing() -> None:
    text = table_of("Task;Hours")
    assert computed("How many tasks are there?", text, Tables(text).all[0], "tasks.csv") is None


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("In stock", "Which part is in Leith?"),
        ("With VAT", "Which part is in Leith with us?"),
        ("En stock", "Part en Leith ?"),
        ("En almacén", "Part en Leith"),
        ("Im Lager", "Part im Leith"),
    ],
)
def test_a_stop_word_names_no_column(name: str, question: str) -> None:
    text = table_of(f"Part;Town;{name}\nBolt;Leith;yes\nNut;Leith;no\nCog;Perth;yes")
    query, _ = query_for(question, text, Tables(text).all[0], "x.csv")
    assert query is not None
    assert query.where == (Condition("Town", "=", "Leith"),)


REVISIONS = """# Records

| Version | Date | Author | Change |
|---|---|---|---|
| 1.0 | 2023-01-05 | Ann Lee | First draft |
| 1.1 | 2024-02-02 | Bo Ek | Retention of invoices |
| 2.0 | 2025-03-01 | Ann Lee | New layout |

Invoices are kept for 8 years.
"""


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How long are invoices kept?", None),
        ("How long is the retention of invoices?", None),
        ("Which invoices are there?", None),
        ("Who made which changes to the layout?", [2]),
        ("What changed in 2024?", [1]),
        ("What is the newest version?", [2]),
        ("How many versions are there?", [0, 1, 2]),
    ],
)
def test_a_table_of_revisions_answers_what_asks_for_them(question: str, rows: list[int] | None) -> None:
    found = computed(question, REVISIONS, Tables(REVISIONS).all[0], "records.md")
    assert (list(found.rows) if found else None) == rows
    assert not found or "Sum" not in found.note


def test_a_verb_that_no_column_explains_is_not_left_out() -> None:
    text = table_of("Topic;Owner\nInvoices;Ann\nLetters;Bo")
    assert computed("How long are invoices kept?", text, Tables(text).all[0], "office.csv") is None


LISTS = """# Workshop

## Forbidden

- Loose sleeves
- Food and drink
  at the machines

## Equipment

You need:

1. Gloves
2. Boots
3. A face shield

## In your first week

- Meet the master
- Sign the rules
"""


@pytest.mark.parametrize(
    ("question", "counts"),
    [
        ("What is forbidden in the workshop?", [2]),
        ("How many things are forbidden in the workshop?", [2]),
        ("Which equipment do we need?", [3]),
        ("What is there in my first week? List all", [2]),
        ("How many rules are there?", []),
        ("Is food forbidden?", []),
        ("What is the default in the first week?", []),
        ("What is the equipment for?", []),
    ],
)
def test_a_list_answers_with_all_its_items_what_asks_for_them(question: str, counts: list[int]) -> None:
    answers = (computed(question, LISTS, one, "workshop.md") for one in lists_of(LISTS))
    assert [len(one.rows) for one in answers if one is not None] == counts


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many vans are in Leith?", []),
        ("How many vans are being serviced in Leith?", ["serviced"]),
        ("How many electric vans are in Leith?", ["electric"]),
    ],
)
def test_a_query_of_a_model_is_told_the_words_that_it_leaves_out(question: str, words: list[str]) -> None:
    where, text = (Condition("Kind", "=", "Van"), Condition("Branch", "=", "Leith")), table_of(TABLES["fleet.csv"])
    (table,) = Tables(text).all
    assert unexplained(TableQuery(1, "count", where=where), question, text, table, "fleet.csv") == words
    other = (Condition("Kind", "!=", "Trailer"), *where[1:])
    assert unexplained(TableQuery(1, where=other), "What in Leith is no trailer?", text, table, "fleet.csv") == []


@pytest.mark.parametrize(
    "question",
    [
        *("How much did we spend per supplier?", "How much did we pay per supplier?"),
        *("What is the total cost per supplier?", "What is the total price per supplier?"),
        *("What is the total revenue per supplier?", "Revenue per supplier?"),
    ],
)
def test_words_of_money_mean_the_one_money_column(question: str) -> None:
    found = answer("orders.csv", question)
    assert found is not None
    assert "Acme 1,200" in found.note


def test_revenue_means_the_column_that_is_called_so() -> None:
    text = table_of("Shop;Revenue (EUR);Costs (EUR)\nLeith;500;90\nPerth;700;80")
    found = computed("What is the total revenue?", text, Tables(text).all[0], "shops.csv")
    assert found is not None
    assert "1,200" in found.note
