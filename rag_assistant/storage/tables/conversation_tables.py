"""The tables of conversations, their turns, and what was sent and answered."""

import sqlalchemy as sa

from rag_assistant.storage.tables.base import CompressedJSON, UtcTime, keyed_table, partial_index, table_of_ids

conversations = table_of_ids(
    "conversations",
    sa.Column("title", sa.String, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Column("deleted_at", UtcTime),
    # The owner's id in people, which is never reused; none while there are no accounts.
    sa.Column("person_id", sa.Integer),
    # Overrides of this conversation, such as {"max_history_turns": null}.
    sa.Column("overrides", sa.JSON, nullable=False),
    # Counters, so that no figure needs a count over the messages. Visible are the turns that a model may see.
    sa.Column("turns", sa.Integer, nullable=False),
    sa.Column("visible_turns", sa.Integer, nullable=False),
    sa.Column("visible_messages", sa.Integer, nullable=False),
    # Incremented with every change that no other column shows.
    sa.Column("changes", sa.Integer, nullable=False, server_default="0"),
    # Where the model's view begins: moved by clear and reset; after a summary, view_start is the turn after it.
    sa.Column("context_start", sa.Integer, nullable=False, server_default="1"),
    sa.Column("view_start", sa.Integer, nullable=False, server_default="1"),
    # The context starts before it, oldest first: what was cleared stays cleared in a branch at an earlier turn.
    sa.Column("earlier_starts", sa.JSON, nullable=False, server_default="[]"),
    sa.Column("summary_id", sa.Integer),
    # Up to which turn a person has agreed to leave turns out.
    sa.Column("decided_until", sa.Integer, nullable=False, server_default="0"),
    # How many turns are pinned or await confirmation, and what else stays left out until the next change.
    sa.Column("held_turns", sa.Integer, nullable=False, server_default="0"),
    sa.Column("standing_runs", sa.JSON, nullable=False, server_default="[]"),
    # Pinned conversations are listed first.
    sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),
    # Which documents its questions are about, such as {"document_ids": [3], "tags": []}; none for all.
    sa.Column("scope", sa.JSON(none_as_null=True)),
    # The conversation and turn it branched from, such as {"conversation_id": 7, "turn": 3}.
    sa.Column("branched_from", sa.JSON(none_as_null=True)),
    sa.Column("origin_id", sa.Integer),
    # A long operation in progress, such as {"what": "compact", "part": 1, "parts": 3}.
    sa.Column("operation", sa.JSON(none_as_null=True)),
    sa.Column("operation_owner", sa.String),
    # Whether it is in the sidebar: somebody asked there, or it has an answer.
    sa.Column("listed", sa.Boolean, nullable=False, server_default=sa.true()),
    # An id in projects, which is never reused. One that the owner may not read counts as none.
    sa.Column("project_id", sa.Integer),
    # Not listed until somebody asks in it again.
    sa.Column("archived", sa.Boolean, nullable=False, server_default=sa.false()),
    # An answer ended while nobody was watching.
    sa.Column("unread", sa.Boolean, nullable=False, server_default=sa.false()),
    # With the title, so that title searches read only the index.
    sa.Index("ix_conversations_latest", "deleted_at", "updated_at", "id", "title"),
    sa.Index("ix_conversations_person", "person_id", "deleted_at", "updated_at", "id", "title"),
    sa.Index("ix_conversations_listed", "listed", "deleted_at", "updated_at", "id"),
    partial_index("ix_conversations_pinned", "deleted_at", "updated_at", "id", where="pinned"),
    partial_index(
        "ix_conversations_project", "project_id", "deleted_at", "updated_at", "id", where="project_id IS NOT NULL"
    ),
    partial_index("ix_conversations_branches", "origin_id", "id", where="origin_id IS NOT NULL"),
)

turns = table_of_ids(
    "turns",
    sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("visible", sa.Boolean, nullable=False),
    # The process that generates the answer, or did.
    sa.Column("owner", sa.String, nullable=False),
    # A person stopped it through another process.
    sa.Column("stop_requested", sa.Boolean, nullable=False, server_default=sa.false()),
    # The request options besides the question.
    sa.Column("request", sa.JSON, nullable=False),
    sa.Column("idempotency_key", sa.String, unique=True),
    sa.Column("request_hash", sa.String),
    # What the response contains: the history's figures, the sources, the model, its usage, an error.
    sa.Column("history", sa.JSON),
    sa.Column("sources", CompressedJSON),
    sa.Column("usage", sa.JSON),
    sa.Column("model", sa.String),
    sa.Column("error_type", sa.String),
    sa.Column("error_message", sa.Text),
    # When a failed endpoint asked to be retried.
    sa.Column("retry_at", UtcTime),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime),
    # A person's decisions about the turn; a purged one belongs to a completed confirmation.
    sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("excluded", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("purged", sa.Boolean, nullable=False, server_default=sa.false()),
    # Whether it is read wherever the view begins: it is pinned, awaits confirmation, or was skipped by a summary.
    sa.Column("held", sa.Boolean, nullable=False, server_default=sa.false()),
    # The action that awaits a person's yes or no.
    sa.Column("waiting", sa.JSON(none_as_null=True)),
    sa.Column("message_count", sa.Integer, nullable=False, server_default="0"),
    # How the documents were searched for it.
    sa.Column("search", sa.JSON(none_as_null=True)),
    # Notes for people on how the answer came about.
    sa.Column("notes", sa.JSON, nullable=False, server_default="[]"),
    # Which of its answers is current, and how many there are; the others are in answer_versions.
    sa.Column("version", sa.Integer, nullable=False, server_default="1"),
    sa.Column("versions", sa.Integer, nullable=False, server_default="1"),
    # When it was erased: nothing of its content is left, here or elsewhere.
    sa.Column("erased_at", UtcTime),
    # The turn it was copied from, in a branch; in a branch of a branch, the original.
    sa.Column("origin_id", sa.Integer),
    partial_index("ix_turns_origin", "origin_id", where="origin_id IS NOT NULL"),
    sa.Index("ix_turns_created_at", "created_at"),
    sa.UniqueConstraint("conversation_id", "number", name="uq_turns_number"),
    # The window: the newest visible turns of a conversation, without the others, and how much there is to see.
    partial_index("ix_turns_visible", "conversation_id", "number", "message_count", where="visible"),
    partial_index("ix_turns_held", "conversation_id", "number", where="held"),
    partial_index("ix_turns_versions", "conversation_id", "number", where="version > 1"),
    partial_index("ix_turns_hidden", "conversation_id", "number", where="NOT visible"),
    partial_index("ix_turns_marked", "conversation_id", "number", where="pinned OR waiting IS NOT NULL"),
    # A conversation answers one question at a time.
    partial_index("uq_turns_running", "conversation_id", where="status = 'running'", unique=True),
)

# As in the indexes. turns.c.held comes to SQLite as held = 1, for which it doesn't use the index of held turns.
HIDDEN: sa.ColumnElement[bool] = sa.literal_column("NOT turns.visible")
HELD: sa.ColumnElement[bool] = sa.literal_column("turns.held")
MARKED: sa.ColumnElement[bool] = sa.literal_column("(turns.pinned OR turns.waiting IS NOT NULL)")

messages = keyed_table(
    "messages",
    sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("role", sa.String, nullable=False),
    sa.Column("content", sa.Text),
    # Other fields of the OpenAI chat format: tool_calls, tool_call_id, name.
    sa.Column("extra", sa.JSON),
    sqlite_with_rowid=False,
)

answer_parts = keyed_table(
    "answer_parts",
    sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)

# The pictures attached to questions, and those of pages sent with them, each a data URL by its hash.
pictures = keyed_table(
    "pictures",
    sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Index("ix_pictures_key", "key"),
)

# The request bodies of a turn as they were sent, and what was left out of them.
receipts = keyed_table(
    "receipts",
    sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("body", CompressedJSON, nullable=False),
)

# Which receipts and sources contain turns of other conversations: see receipts.py.
sent_elsewhere = keyed_table(
    "sent_elsewhere",
    sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("receipt_turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Index("ix_sent_elsewhere_receipt", "receipt_turn_id"),
    sqlite_with_rowid=False,
)

# Notes that people saved.
notes = table_of_ids(
    "notes",
    sa.Column("person_id", sa.Integer),
    # It is only sent in conversations of this project.
    sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id", ondelete="CASCADE")),
    sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE")),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    # The note that replaced its text; both stay visible.
    sa.Column("superseded_by", sa.Integer),
    # Sent with every question; sent at all.
    sa.Column("pinned", sa.Boolean, nullable=False),
    sa.Column("active", sa.Boolean, nullable=False),
    # A model proposed it, or an import brought it, and nobody has said yes or no.
    sa.Column("proposed", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.CheckConstraint("NOT (proposed AND active)", name="ck_notes_proposed"),
    sa.Index("ix_notes_person", "person_id", "active"),
    sa.Index("ix_notes_turn", "turn_id"),
    sa.Index("ix_notes_project", "project_id"),
)

# The answers of a turn that aren't current, each in full, so that they can be restored.
answer_versions = keyed_table(
    "answer_versions",
    sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    # The messages after the question, and the turn's columns that describe the answer.
    sa.Column("messages", sa.JSON, nullable=False),
    sa.Column("figures", CompressedJSON, nullable=False),
    sa.Column("receipt", CompressedJSON),
    sa.Column("finished_at", UtcTime),
    sqlite_with_rowid=False,
)

# A person's rating of an answer, which may be the current one or a version.
ratings = keyed_table(
    "ratings",
    sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("rating", sa.String, nullable=False),
    sa.Column("right_answer", sa.Text),
    sa.Column("rated_at", UtcTime, nullable=False),
)

# A text that stands for some turns. Each edit is a new row, so that it can be undone.
summaries = table_of_ids(
    "summaries",
    sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    sa.Column("first_turn", sa.Integer, nullable=False),
    sa.Column("last_turn", sa.Integer, nullable=False),
    # The numbers of the turns it covers, as runs of [first, last].
    sa.Column("covered", sa.JSON, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("written_by", sa.String, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index("ix_summaries_conversation", "conversation_id", "id"),
)

# What can be undone: each row holds the state before a change. Undoing one deletes its row.
history_changes = table_of_ids(
    "history_changes",
    sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("before", sa.JSON, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index("ix_history_changes_conversation", "conversation_id", "id"),
)
