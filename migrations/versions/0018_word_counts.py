"""How many words a row has, beside the words themselves: on PostgreSQL, ranking had to count them for each search."""

revision = "0018"
down_revision = "0016"

from alembic import op

TABLES = ("chunk_words", "turn_words")


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        return  # FTS5 counts them itself.
    op.execute(
        "CREATE FUNCTION count_words(tsvector) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE "
        "AS 'SELECT coalesce(sum(cardinality(positions)), 0)::integer FROM unnest($1)'"
    )
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN length INTEGER GENERATED ALWAYS AS (count_words(words)) STORED")


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        return
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} DROP COLUMN length")
    op.execute("DROP FUNCTION count_words(tsvector)")
