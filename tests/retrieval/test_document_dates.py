"""The date that a document gives itself, in six languages; what may be another day is none."""

from datetime import date

import pytest

from rag_assistant.retrieval.dates import date_in_name, date_in_text

TODAY = date(2026, 11, 29)


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("english", "Valid from 4 March 2024"),
        ("english", "Effective date: March 4, 2024"),
        ("english", "This policy is effective as of 4 March 2024 and replaces the one of 2 May 2019."),
        ("english", "Version 2.1 of 4 March 2024"),
        ("english", "Last updated: Mon, 4 Mar 2024"),
        ("english", "LAST UPDATED: 4 MARCH 2024"),
        ("english", "LAST UPDATED: MARCH 4TH, 2024"),
        ("english", "last updated: 4 march 2024"),
        ("english", "| Date | 2024-03-04 |"),
        ("english", "---\ntitle: Geese\ndate: 2024-03-04T09:00:00Z\n---"),
        ("english", "## [1.2.0] - 2024-03-04"),
        ("english", "goose (1.2) unstable\n\n  * Hiss.\n\n -- Ann <ann@example.org>  Mon, 04 Mar 2024 18:38:15 +0100"),
        ("english", "The geese\n\n4 March 2024"),
        ("german", "Stand: 04.03.2024"),
        ("german", "Gültig ab dem 4. März 2024"),
        ("german", "GÜLTIG AB DEM 4. MÄRZ 2024"),
        ("german", "Die Ordnung ist in Kraft seit 4.3.2024."),
        ("german", "Zuletzt geändert am 4. März 2024"),
        ("german", "Harbourtown, den 4. März 2024"),
        ("german", "gültig ab 04/03/2024"),
        ("french", "En vigueur depuis le 4 mars 2024"),
        ("spanish", "VIGENTE DESDE EL 4 DE MARZO DE 2024"),
        ("french", "Dernière mise à jour : 04/03/2024"),
        ("french", "À compter du 4 mars 2024"),
        ("spanish", "Vigente desde el 4 de marzo de 2024"),
        ("spanish", "Última actualización: 4/3/2024"),
        ("spanish", "Fecha: 4 de marzo de 2024"),
        ("", "生效日期：2024年3月4日"),  # noqa: RUF001
        ("", "本规定自2024年3月4日起施行。"),
        ("arabic", "ساري من 4 مارس 2024"),
        ("arabic", "آخر تحديث: 4 مارس 2024"),
    ],
)
def test_a_line_near_the_start_dates_a_document(language: str, line: str) -> None:
    assert date_in_text(f"# Geese\n\n{line}\n\nThey hissed on 1 May 1999.", language, TODAY) == "2024-03-04"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("english", "Effective date: 3/4/2024"),  # The third of April, or the fourth of March.
        ("", "Date: 3-4-2024"),
        ("english", "Valid until 4 March 2024"),
        ("english", "The geese hissed on 4 March 2024, and then they left."),
        ("english", "Effective date: 31 February 2024"),
        ("english", "Valid from 4 March 2224"),
        ("english", "Valid from 4 March"),
        ("english", "| Date | Price |\n|---|---|\n| 2020-01-05 | 1.0 |\n| 2021-01-05 | 1.2 |"),
        ("english", "Payments\n\n| Amount | Date |\n|---|---|\n| 49.90 | 2020-01-05 |"),
        ("english", "| 4 March 2024 | Geese hissed |"),
        ("english", "The office is closed on:\n\n- 4 March 2024\n- 5 March 2024"),
        ("english", "Geese. " * 1000 + "\nValid from 4 March 2024"),
    ],
)
def test_what_is_not_surely_its_date_is_none(language: str, text: str) -> None:
    assert date_in_text(text, language, TODAY) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Effective date: 3/14/2024", "2024-03-14"),  # There is no 14th month.
        ("Version of March 2024", "2024-03"),
        ("Published: 1 May 2020\nLast updated: 4 March 2024\nValid from 1 June 2023", "2023-06-01"),
        ("Published: 1 May 2020\nLast updated: 4 March 2024", "2024-03-04"),
        ("Revisions\n\n| 1.0 | 2020-01-05 |\n| 1.1 | 2022-02-02 |\n| 2.0 | 2024-09-09 |", "2024-09-09"),
        ("Revision history\n\n| Date | Version |\n|---|---|\n| 2020-01-05 | 1.0 |\n| 2024-09-09 | 2.0 |", "2024-09-09"),
        (
            "| Author | Version | Date |\n|---|---|---|\n| Ann | 2 | 2024-09-09 |\n| Ben | 1 | 2020-01-05 |",
            "2024-09-09",
        ),
        ("| Version | From |\n|---|---|\n| 3.0 | 2027-05-01 |\n| 2.0 | 2024-09-09 |", "2024-09-09"),
        ("| Date | Price |\n|---|---|\n| 2020-01-05 | 4.50 |\n\nLast updated: 4 March 2024", "2024-03-04"),
        ("Version 1.0 of 5 January 2020\nVersion 2.0 of 9 September 2024\nVersion 3.0 of 1 May 2027", "2024-09-09"),
        ("## [1.2.0] - 2024-03-04\n\nText.\n\n## [1.1.0] - 2023-01-01", "2024-03-04"),
        ("Published: 1 May 2020\nPublished: 2 May 2021", "2020-05-01"),
    ],
)
def test_as_much_of_a_date_as_is_written_is_taken_and_what_is_valid_comes_first(text: str, expected: str) -> None:
    assert date_in_text(text, "english", TODAY) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2024-03-04 minutes.md", "2024-03-04"),
        ("minutes_20240304.docx", "2024-03-04"),
        ("minutes 4 March 2024.txt", "2024-03-04"),
        ("prices_2024-03.xlsx", "2024-03"),
        ("refund-policy-2024.pdf", "2024"),
        ("refund policy 2023-2024.pdf", None),
        ("2024-02-31.txt", "2024-02"),
        ("Agenda 2030.pdf", None),
        ("lease until 2035-12-31.pdf", None),
        ("lease until 31 May 2035.pdf", None),
        ("prices 2027-01-01.pdf", "2027-01-01"),
        ("price list 2027.csv", "2027"),
        ("price list 2028.csv", None),
        ("PRICES 4 MAY 2026.csv", "2026-05-04"),
        ("rfc2026.txt", None),
        ("geese.txt", None),
    ],
)
def test_a_name_dates_a_document_if_it_has_one_date(name: str, expected: str | None) -> None:
    assert date_in_name(name, TODAY) == expected


def test_a_version_may_be_valid_from_a_year_far_ahead_and_nothing_else_is() -> None:
    ahead = TODAY.year + 2
    assert date_in_text(f"# Badges\n\nValid from 1 January {ahead}\n", "english", TODAY) == f"{ahead}-01-01"
    assert date_in_text(f"# Badges\n\nPublished on 1 January {ahead}\n", "english", TODAY) is None
