"""Alembic's entry: runs the migrations on the engine that the application hands over."""

from alembic import context

from rag_assistant.storage.tables import metadata

engine = context.config.attributes["engine"]
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
