"""The cells of a workbook's sheet: as text, each number as its cell shows it, dates and times in ISO 8601. Pure.

Number formats: https://ecma-international.org/publications-and-standards/standards/ecma-376/ (part 1, 18.8.31).
"""

import re
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct, field

from rag_assistant.extraction.formats import DATA
from rag_assistant.extraction.formats.markup import Span, heading, spread, table

MAX_COLUMNS = 16_384
# So many hidden rows and columns are named.
MAX_HIDDEN = 20
# Larger, sparse sheets are read without their empty cells.
MAX_PLACES = 2_000_000


class Sheet(Struct):
    """The cells of a sheet by row and column, counted from 1, and the merged ones."""

    rows: dict[int, dict[int, str]] = field(default_factory=dict)
    merged: list[Span] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    has_uncounted: bool = False

    def text(self) -> str:
        """Return the sheet as a table, without empty rows and columns."""
        places = sorted(self.rows)
        columns = sorted({column for row in self.rows.values() for column, text in row.items() if text})
        if len(places) * len(columns) > MAX_PLACES:
            return table([[row[column] for column in sorted(row) if row[column]] for row in self.rows.values()])
        for span in self.merged:
            # A column covered only by a merged cell still exists.
            columns = sorted({*columns, *(span.columns if span.left in columns else ())})
        row_of, column_of = ({place: n for n, place in enumerate(one)} for one in (places, columns))
        spans = [span.within(row_of, column_of) for span in self.merged]
        rows = [[self.rows[place].get(column, "") for column in columns] for place in places]
        rows = spread(rows, [span for span in spans if span is not None])
        return table(rows) if len(rows) > 1 else " ".join(text for row in rows for text in row if text)

    def blocks(self, name: str, *, is_hidden: bool) -> list[str]:
        """Return the sheet below its name, and which of its cells are hidden."""
        columns = self.hidden_columns & {column for row in self.rows.values() for column, text in row.items() if text}
        hidden = [f"row {place}" for place in sorted(self.hidden_rows & self.rows.keys())]
        hidden += [f"column {_letters(column)}" for column in sorted(columns)]
        listed = ", ".join(hidden[:MAX_HIDDEN]) + (" and others" if len(hidden) > MAX_HIDDEN else "")
        title = heading(2, f"{name} (hidden)" if is_hidden else name)
        return [title, self.text(), f"Hidden in this sheet: {listed}." if hidden else ""]


def _letters(column: int) -> str:
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


GENERAL = "General"
# Formats with only a number. Locale-dependent ones are dates.
BUILT_IN = {int(number): code for number, code in DATA["number_formats"].items()}
# Text, escaped characters, spacing, fill characters, brackets; anything else is one character.
TOKEN = re.compile(r'"([^"]*)"|\\(.)|[_*].|\[([^\[\]]*)\]|(AM/PM|A/P)|(E[+-])|(.)', re.I | re.S)
ELAPSED = re.compile(r"[hms]+", re.I)
PLACEHOLDERS, PLACES = "0#?.,", "0#?"
FRACTION = re.compile(r"[#0? ]{0,20}[?#0]/([?#]{1,9}|\d{1,4})")
FIRST_DAYS = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}
DAY_SECONDS = 86_400
# Longer numbers weren't formatted by anybody.
MAX_FORMATTED = 1e15
MAX_DAYS = 2_958_466


class Section(Struct, frozen=True):
    """A section of a number format: its digits, literal text, and parts of a time.

    ``mask`` has the places and the text between them, such as ``000-0000``; ``fraction`` what is below its line.
    """

    digits: str = ""
    before: str = ""
    after: str = ""
    scale: float = 1.0
    clock: str = ""
    elapsed: str = ""
    mask: tuple[str, ...] = ()
    fraction: str = ""
    is_general: bool = False


def shown(value: float, code: str, *, is_1904: bool = False) -> str:
    """Return a number in a format, or with all its digits if the format is unknown."""
    sections = _sections(code)
    is_negative = value < 0 and len(sections) > 1
    section = sections[1 if is_negative else 2 if value == 0 and len(sections) > 2 else 0]
    if section.clock or section.elapsed:
        if 0 <= value < MAX_DAYS:
            return _moment(value, section, is_1904)
    elif not section.is_general and abs(value) < MAX_FORMATTED:
        sign = "-" if value < 0 and not is_negative else ""
        if section.fraction:
            return sign + _fraction(abs(value), section.fraction)
        if section.mask:
            return sign + _masked(abs(value), section.mask)
        if section.digits:
            return f"{sign}{section.before}{_digits(abs(value) * section.scale, section.digits)}{section.after}".strip()
        if section.before.strip():  # A word for every number.
            return section.before.strip()
    return f"{value:.0f}" if value == int(value) else f"{value:.15g}"


def _moment(days: float, section: Section, is_1904: bool) -> str:
    seconds = round(days * DAY_SECONDS)
    if section.elapsed:
        parts = [(seconds, "s")] if section.elapsed == "s" else [(seconds // 60, "m"), (seconds % 60, "s")]
        if section.elapsed == "h":
            parts = [(seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
        wanted = parts if "s" in section.clock or section.elapsed == "s" else parts[:2]
        return ":".join(str(part) if not n else f"{part:02}" for n, (part, _) in enumerate(wanted))
    moment = FIRST_DAYS[is_1904] + timedelta(seconds=seconds)
    time = moment.strftime("%H:%M:%S" if "s" in section.clock else "%H:%M")
    if not {"y", "d"} & set(section.clock) and "h" in section.clock + section.elapsed:
        return time
    has_time = "h" in section.clock or (moment.hour, moment.minute, moment.second) != (0, 0, 0)
    return f"{moment:%Y-%m-%d} {time}" if has_time and "h" in section.clock else f"{moment:%Y-%m-%d}"


def _digits(value: float, digits: str) -> str:
    """Return the digits of a number, as many as its format has places for."""
    if "E" in digits:
        return f"{value:.{len(digits.partition('E')[0].partition('.')[2])}E}"
    whole, _, decimals = digits.partition(".")
    number, _, rest = f"{value:{',' if ',' in whole else ''}.{len(decimals)}f}".partition(".")
    rest = rest[: decimals.rfind("0") + 1] + rest[decimals.rfind("0") + 1 :].rstrip("0")
    number = "" if number == "0" and "0" not in whole else number.zfill(whole.count("0"))
    return f"{number}.{rest}" if rest else number or "0"


def _fraction(value: float, below: str) -> str:
    """Return a number as a fraction, whose denominator is given or has at most that many digits."""
    whole = int(value)
    denominator = int(below) if below.isdigit() and int(below) else 0
    part = Fraction(value - whole).limit_denominator(10 ** min(len(below), 4) - 1)
    above, under = (round((value - whole) * denominator), denominator) if denominator else part.as_integer_ratio()
    if above == under:
        whole, above = whole + 1, 0
    return f"{whole} {above}/{under}" if whole and above else f"{above}/{under}" if above else str(whole)


def _masked(value: float, mask: tuple[str, ...]) -> str:
    """Return the digits of a whole number in the places of a mask, filled from the right."""
    digits, parts = list(f"{value:.0f}"), []
    places = sum(place in PLACES for place in mask)
    for place in reversed(mask):
        if place in PLACES:
            places -= 1
            # The first place takes all digits that are left.
            taken = "".join(digits) if not places else digits.pop() if digits else ""
            parts.append(taken or ("0" if place == "0" else ""))
        else:
            parts.append(place)
    return "".join(reversed(parts)).strip()


@lru_cache(maxsize=1000)
def _sections(code: str) -> list[Section]:
    """Return the sections of a format: for all numbers, or for positive, negative and zero."""
    sections: list[list[re.Match[str]]] = [[]]
    for token in TOKEN.finditer(code):
        if token[6] == ";":
            sections.append([])
        else:
            sections[-1].append(token)
    return [_section(tokens) for tokens in sections[:3]]


def _section(tokens: list[re.Match[str]]) -> Section:
    digits, before, after, clock, elapsed, scale = "", "", "", "", "", 1.0
    plain = "".join(token[6] or "" for token in tokens)
    fraction = FRACTION.fullmatch(plain.strip())
    is_general = "general" in plain.lower() or "@" in plain or ("/" in plain and bool(set(plain) & set("0#?")))
    is_general = is_general and fraction is None
    mask: list[str] = []
    for token in tokens:
        text, escaped, bracketed, _, exponent, sign = token.groups()
        literal = text or escaped or ""
        if bracketed is not None:
            literal = bracketed[1:].partition("-")[0] if bracketed.startswith("$") else ""
            elapsed = elapsed or (bracketed[0].lower() if ELAPSED.fullmatch(bracketed) else "")
            is_general = is_general or bracketed[:1] in tuple("<>=")
        elif exponent:
            digits += "E"
        elif (
            sign
            and sign in PLACEHOLDERS
            and not (sign in ".," and not digits and "0" not in plain and "#" not in plain)
        ):
            mask += [*(after if digits else before), sign]
            after = ""
            digits += sign
        elif sign and sign.lower() in "ymdhs" and not digits:
            clock += sign.lower()
        elif sign == "%":
            scale *= 100
            literal = sign
        elif sign:
            literal = sign
        before, after = (before, after + literal) if digits else (before + literal, after)
    mask += after
    has_text_between = len(mask) - len(before) - len(after) > len(digits)
    is_general = is_general or (has_text_between and not set(digits) <= set(PLACES))
    scale /= 1000 ** (len(digits) - len(digits.rstrip(",")))
    between, below = tuple(mask) if has_text_between else (), fraction[1] if fraction else ""
    return Section(digits.rstrip(","), before, after, scale, clock, elapsed, between, below, is_general)
