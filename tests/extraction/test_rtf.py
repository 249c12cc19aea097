"""RTF is read as Word shows it."""

from pathlib import Path

import pytest

from tests.extraction.reading import read


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (rb"20\~km by e\_mail, 17\emspace geese", "20 km by e-mail, 17 geese"),
        (rb"four {\deleted five {\b six }}seven \deleted eight\deleted0 nine \\deleted", "four seven nine \\\\deleted"),
        (rb"10{\super 6} and 10\super -3\nosupersub", "10^6 and 10^-3"),
        (rb"\pard{\listtext\pard\plain \'b7\tab}\ls1 geese\par{\listtext 3.1\tab}\ls1 ducks", "- geese\n\n- 3.1 ducks"),
        (rb"{\pntext\pard\plain 7.\tab}}\pard{\*\pn\pnlvlbody{\pntxta .}}{geese}\par", "7. geese"),
        (rb"\pard\outlinelevel0{\listtext 4\tab}\ls1 geese\par", "# 4 geese"),
        (
            rb"geese{\*\atnid M}{\*\atnauthor Mara}\chatn{\*\annotation{\*\atnref 1}{\*\atndate 9}\pard Why?} hiss\par",
            "geese hiss\n\n[^1]: Comment by Mara: Why?",
        ),
        (
            rb"\pard{\shp{\*\shpinst{\sp{\sn type}{\sv 202}}{\shptxt geese\par}}{\shprslt geese}} hiss\par",
            "geese\n\nhiss",
        ),
        (rb"geese\sect ducks\page gulls{\xe Geese}", "geese\n\nducks\n\ngulls"),
        (rb'See {\field{\*\fldinst{HYPERLINK "http://example.org/"}}{\fldrslt{the goose}}}.\par', "See the goose."),
    ],
)  # fmt: skip
def test_an_rtf_file_is_read_as_it_is_shown(tmp_path: Path, written: bytes, shown: str) -> None:
    assert read(tmp_path, rb"{\rtf1\ansi\ansicpg1252 " + written + b"}").text.strip() == shown
