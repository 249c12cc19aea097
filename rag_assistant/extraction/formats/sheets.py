"""The cells of a workbook's sheet, and how they become text."""

from msgspec import Struct, field

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
