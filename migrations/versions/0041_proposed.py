"""A proposed note is not active before a person accepts it."""

revision = "0041"
down_revision = "0040"

from alembic import op


def upgrade() -> None:
    op.execute("UPDATE notes SET active = false WHERE proposed")
    # On SQLite the table is built anew, which would use the ids of deleted notes again.
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE TEMP TABLE highest AS SELECT seq FROM sqlite_sequence WHERE name = 'notes'")
    with op.batch_alter_table("notes", table_kwargs={"sqlite_autoincrement": True}) as notes:
        notes.create_check_constraint("ck_notes_proposed", "NOT (proposed AND active)")
    if op.get_bind().dialect.name == "sqlite":
        op.execute("UPDATE sqlite_sequence SET seq = (SELECT seq FROM highest) WHERE name = 'notes'")
        op.execute("INSERT INTO sqlite_sequence SELECT 'notes', seq FROM highest WHERE changes() = 0")
        op.execute("DROP TABLE highest")
