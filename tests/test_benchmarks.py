"""The table of the aims in docs/benchmarks.md is made of what was measured, and says what stands between."""

from pathlib import Path

import pytest

from bench import aims
from bench.aims import AIMS, Aim, Figure

QUICK = Aim("quick", "start", "until it answers, first / second time", (2, 1), "s", "importing")
MANY = Aim("many", "start", "answers a second", (1000,), "a second", "two cores", at_least=True)


def rows(**figures: Figure) -> list[str]:
    return aims.table((QUICK, MANY), figures).splitlines()[2:]


def test_a_row_says_of_each_value_whether_its_limit_is_kept() -> None:
    quick, many = rows(quick=Figure((1.5, 1.0)), many=Figure((1234.5,)))
    assert quick == "| until it answers, first / second time | 2 / 1 s | 1.5 / 1 s | yes |"
    assert many == "| answers a second | at least 1,000 a second | 1,230 a second | yes |"


def test_a_row_that_is_missed_says_what_stands_between() -> None:
    quick, many = rows(quick=Figure((1.5, 1.04), "cold"), many=Figure((999.4,), day="2026-01-02"))
    assert quick.endswith("| 1.5 / 1.04 s (cold) | yes / no: importing |")
    assert many.endswith("| 999 a second (2026-01-02) | no: two cores |")


def test_a_row_that_is_not_taken_says_why() -> None:
    quick, many = rows(quick=aims.not_taken("no peers"))
    assert quick.endswith("| | not taken: no peers |")
    assert many.endswith("| | not taken: it needs `python -m bench start` |")


def test_no_two_rows_have_the_same_key() -> None:
    assert len({aim.key for aim in AIMS}) == len(AIMS)


def test_the_page_has_the_figures_that_are_kept() -> None:
    found = aims.TABLE.search(aims.PAGE.read_text())
    assert found is not None
    assert found.group() == aims.table(AIMS, aims.kept())


def test_what_a_run_takes_is_kept_and_what_it_does_not_take_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aims, "FIGURES", tmp_path / "figures.json")
    monkeypatch.setattr(aims, "PAGE", tmp_path / "page.md")
    aims.FIGURES.write_text("{}")
    aims.PAGE.write_text("Before.\n<!-- aims -->\nold\n<!-- /aims -->\nBehind.\n")
    aims.keep({"start": Figure((0.5, 1.0)), "hybrid": Figure((3.0, 11.0))})
    aims.keep({"start": Figure((0.6, 1.3)), "hybrid": aims.not_taken("no data")})
    assert {key: one.values for key, one in aims.kept().items()} == {"start": (0.6, 1.3), "hybrid": (3.0, 11.0)}
    page = aims.PAGE.read_text()
    assert "| 0.6 / 1.3 s (" in page
    assert "| 3 / 11 ms (" in page
    assert page.startswith("Before.\n<!-- aims -->\n| what |")
    assert page.endswith("|\n<!-- /aims -->\nBehind.\n")
