"""Why no place was found that says the value of a cell is one doubt, "unverified"."""

revision = "0054"
down_revision = "0053"

import sqlalchemy as sa
from alembic import op

MERGED = ("not_in_passage", "other_words", "other_unit", "one_of_several", "hedged", "judged")


def upgrade() -> None:
    key = [sa.column(name, sa.Integer) for name in ("grid_id", "document_id", "column_id")]
    cells = sa.table("grid_cells", *key, sa.column("result", sa.JSON))
    connection = op.get_bind()
    for *ids, result in connection.execute(sa.select(cells)).all():
        if result and result.get("doubt") in MERGED:
            own = (column == value for column, value in zip(cells.c, ids, strict=False))
            connection.execute(sa.update(cells).where(*own).values(result=result | {"doubt": "unverified"}))
