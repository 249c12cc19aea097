"""Documents about one topic, a lake and its lighthouse, and what is said about them: for the pictures and the views."""

from tests.browser.shelf import upload
from tests.testkit.pdfs import new_pdf
from tests.testkit.server_process import ServerProcess

YEARS = range(1990, 2008)

KEEPER = """# The keeper's handbook

## The lamp

The lamp is lit half an hour before sunset and put out half an hour after sunrise. Its lens is wiped with a dry cloth
every Monday, and with spirit on the first of the month.

## Visitors

The tower is open from May to September, Saturdays and Sundays from ten to four. No more than eight people climb the
stairs at the same time. Children under six stay on the ground floor.

## Storm

From wind force nine the gallery is closed and the boats are taken into the boat house. The keeper rings the bell twice.
"""

GEESE = """# Counting the geese

Geese are counted from the old pier on the first Sunday of October, between seven and nine in the morning, by two people
who do not tell each other their figures until both have finished. The mean of both is what is written down.

In 1997 there were 337 geese, more than in any year before. In 1998 there were 344.
"""

BERTHS = "berth,boat,length in metres,rent in crowns\n1,Tern,6.2,40\n2,Gull,7.0,46\n3,Heron,5.1,33\n4,Grebe,8.4,55\n"

QUESTIONS = {
    "When is the tower open for visitors?": "From **May to September**, Saturdays and Sundays from ten to four [1]. No "
    "more than eight people climb the stairs at the same time.",
    "What happens in a storm?": "From wind force nine [1]:\n\n1. the gallery is closed,\n2. the boats are taken into "
    "the boat house,\n3. the keeper rings the bell twice.",
    "How are the geese counted?": "By **two people**, on the first Sunday of October, from the old pier [1]. They do "
    "not tell each other their figures until both have finished; the mean is written down.",
    "How often is the lens of the lamp wiped?": "Every Monday with a dry cloth, and with spirit on the first of the "
    "month [1].",
    "How deep was the lake at the old pier in 1997?": "The lake was **3.35 metres** deep at the old pier in 1997 [1]. "
    "It rose by five centimetres a year:\n\n| year | depth | geese |\n|---|---|---|\n| 1995 | 3.25 m | 323 |\n"
    "| 1996 | 3.30 m | 330 |\n| 1997 | 3.35 m | 337 |\n",
}


def lake_report() -> bytes:
    """Return a report of three pages as a PDF."""
    pdf = new_pdf()
    for part in range(3):
        pdf.add_page()
        pdf.set_font("helvetica", size=18)
        pdf.cell(0, 12, f"Lake report, part {part + 1}", new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("helvetica", size=12)
        for year in YEARS[part * 6 : part * 6 + 6]:
            since = year - YEARS[0]
            pdf.multi_cell(
                0,
                7,
                f"In the year {year} the lake was {3 + since * 0.05:.2f} metres deep at the old pier. The geese "
                f"counted in autumn were {288 + since * 7}. The keeper of the lighthouse wrote this down in the "
                "evening, as his mother had done before him.",
            )
            pdf.ln(3)
    return bytes(pdf.output())


def fill_the_shelf(server: ServerProcess) -> dict[str, int]:
    """Add the documents of the story, wait until they are ready, and return their ids by name."""
    return {
        "Lake report.pdf": upload(server, "Lake report.pdf", lake_report(), tags="lake, measured"),
        "The keeper's handbook.md": upload(server, "The keeper's handbook.md", KEEPER, tags="lighthouse"),
        "Counting the geese.md": upload(server, "Counting the geese.md", GEESE, tags="lake, birds"),
        "Berths 2025.csv": upload(server, "Berths 2025.csv", BERTHS, tags="boats"),
    }
