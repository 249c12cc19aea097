"""The date among a file's properties, however its format writes it."""

import re
from datetime import date

# As ISO 8601 and PDF have it: 2024-05-31T10:00:00Z, D:20240531100000.
STAMP = re.compile(r"\s*(?:D:)?(\d{4})-?(\d\d)-?(\d\d)")
# Earlier ones are the beginning of some calendar.
MIN_YEAR = 1985
# Of the empty files that come with python-docx and python-pptx: what is made with these keeps their times.
TEMPLATES = ("2013-12-23T23:15:00Z", "2013-01-27T09:14:16Z", "2013-01-27T09:15:58Z")


def date_in(*stamps: str | None) -> str | None:
    """Return the day of the first plausible time among some, in ISO 8601."""
    for match in (STAMP.match(stamp or "") for stamp in stamps if stamp not in TEMPLATES):
        try:
            day = date(*map(int, match.groups())) if match else None
        except ValueError:
            continue
        if day and day.year >= MIN_YEAR and day <= date.today():
            return day.isoformat()
    return None
