"""On SQLite the words of chunks are kept in a plain table: an index in memory finds chunks by them."""

revision = "0029"
down_revision = "0028"

from alembic import op

TOKENIZER = "unicode61 remove_diacritics 2 categories ''L* N* Co M*''"


def upgrade() -> None:
    renew("CREATE TABLE chunk_words (chunk_id INTEGER PRIMARY KEY, words TEXT NOT NULL)")


def renew(create: str) -> None:
    """Make the table anew and keep its words."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    op.execute("CREATE TABLE words_before (chunk_id INTEGER PRIMARY KEY, words TEXT NOT NULL)")
    op.execute("INSERT INTO words_before SELECT rowid, words FROM chunk_words")
    op.execute("DROP TABLE chunk_words")
    op.execute(create)
    op.execute("INSERT INTO chunk_words (rowid, words) SELECT chunk_id, words FROM words_before")
    op.execute("DROP TABLE words_before")


def downgrade() -> None:
    renew(f"CREATE VIRTUAL TABLE chunk_words USING fts5(words, tokenize = '{TOKENIZER}')")
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        version = connection.connection.dbapi_connection.execute("SELECT sqlite_version()").fetchone()[0]
        if tuple(map(int, version.split("."))) >= (3, 42):
            op.execute("INSERT INTO chunk_words (chunk_words, rank) VALUES ('secure-delete', 1)")
