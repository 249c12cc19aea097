"""The tables of conversations, their turns, and what was sent and answered."""

from sqlalchemy import (
    JSON,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    literal_column,
    true,
)

from rag_assistant.storage.tables.base import CompressedJSON, UtcTime, metadata, partial_index, table_of_ids

conversations = table_of_ids(
    "conversations",
    Column("title", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("deleted_at", UtcTime),
    # The owner's id in people, which is never reused; none while there are no accounts.
    Column("person_id", Integer),
    # Overrides of this conversation, such as {"max_history_turns": null}.
    Column("overrides", JSON, nullable=False),
    # Counters, so that no figure needs a count over the messages. Visible are the turns that a model may see.
    Column("turns", Integer, nullable=False),
    Column("visible_turns", Integer, nullable=False),
    Column("visible_messages", Integer, nullable=False),
    # Incremented with every change that no other column shows.
    Column("changes", Integer, nullable=False, server_default="0"),
    # Where the model's view begins: moved by clear and reset; after a summary, view_start is the turn after it.
    Column("context_start", Integer, nullable=False, server_default="1"),
    Column("view_start", Integer, nullable=False, server_default="1"),
    # The context starts before it, oldest first: what was cleared stays cleared in a branch at an earlier turn.
    Column("earlier_starts", JSON, nullable=False, server_default="[]"),
    Column("summary_id", Integer),
    # Up to which turn a person has agreed to leave turns out.
    Column("decided_until", Integer, nullable=False, server_default="0"),
    # How many turns are pinned or await confirmation, and what else stays left out until the next change.
    Column("held_turns", Integer, nullable=False, server_default="0"),
    Column("standing_runs", JSON, nullable=False, server_default="[]"),
    # Pinned conversations are listed first.
    Column("pinned", Boolean, nullable=False, server_default=false()),
    # Which documents its questions are about, such as {"document_ids": [3], "tags": []}; none for all.
    Column("scope", JSON(none_as_null=True)),
    # The conversation and turn it branched from, such as {"conversation_id": 7, "turn": 3}.
    Column("branched_from", JSON(none_as_null=True)),
    Column("origin_id", Integer),
    # A long operation in progress, such as {"what": "compact", "part": 1, "parts": 3}.
    Column("operation", JSON(none_as_null=True)),
    Column("operation_owner", String),
    # Whether it is in the sidebar: somebody asked there, or it has an answer.
    Column("listed", Boolean, nullable=False, server_default=true()),
    # An id in projects, which is never reused. One that the owner may not read counts as none.
    Column("project_id", Integer),
    # Not listed until somebody asks in it again.
    Column("archived", Boolean, nullable=False, server_default=false()),
    # An answer ended while nobody was watching.
    Column("unread", Boolean, nullable=False, server_default=false()),
    # With the title, so that title searches read only the index.
    Index("ix_conversations_latest", "deleted_at", "updated_at", "id", "title"),
    Index("ix_conversations_person", "person_id", "deleted_at", "updated_at", "id", "title"),
    Index("ix_conversations_listed", "listed", "deleted_at", "updated_at", "id"),
    partial_index("ix_conversations_pinned", "deleted_at", "updated_at", "id", where="pinned"),
    partial_index(
        "ix_conversations_project", "project_id", "deleted_at", "updated_at", "id", where="project_id IS NOT NULL"
    ),
    partial_index("ix_conversations_branches", "origin_id", "id", where="origin_id IS NOT NULL"),
)

turns = table_of_ids(
    "turns",
    Column("conversation_id", Integer, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("status", String, nullable=False),
    Column("visible", Boolean, nullable=False),
    # The process that generates the answer, or did.
    Column("owner", String, nullable=False),
    # A person stopped it through another process.
    Column("stop_requested", Boolean, nullable=False, server_default=false()),
    # The request options besides the question.
    Column("request", JSON, nullable=False),
    Column("idempotency_key", String, unique=True),
    Column("request_hash", String),
    # What the response contains: the history's figures, the sources, the model, its usage, an error.
    Column("history", JSON),
    Column("sources", CompressedJSON),
    Column("usage", JSON),
    Column("model", String),
    Column("error_type", String),
    Column("error_message", Text),
    # When a failed endpoint asked to be retried.
    Column("retry_at", UtcTime),
    Column("created_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    # A person's decisions about the turn; a purged one belongs to a completed confirmation.
    Column("pinned", Boolean, nullable=False, server_default=false()),
    Column("excluded", Boolean, nullable=False, server_default=false()),
    Column("purged", Boolean, nullable=False, server_default=false()),
    # Whether it is read wherever the view begins: it is pinned, awaits confirmation, or was skipped by a summary.
    Column("held", Boolean, nullable=False, server_default=false()),
    # The action that awaits a person's yes or no.
    Column("waiting", JSON(none_as_null=True)),
    Column("message_count", Integer, nullable=False, server_default="0"),
    # How the documents were searched for it.
    Column("search", JSON(none_as_null=True)),
    # Notes for people on how the answer came about.
    Column("notes", JSON, nullable=False, server_default="[]"),
    # Which of its answers is current, and how many there are; the others are in answer_versions.
    Column("version", Integer, nullable=False, server_default="1"),
    Column("versions", Integer, nullable=False, server_default="1"),
    # When it was erased: nothing of its content is left, here or elsewhere.
    Column("erased_at", UtcTime),
    # The turn it was copied from, in a branch; in a branch of a branch, the original.
    Column("origin_id", Integer),
    partial_index("ix_turns_origin", "origin_id", where="origin_id IS NOT NULL"),
    UniqueConstraint("conversation_id", "number", name="uq_turns_number"),
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
HIDDEN: ColumnElement[bool] = literal_column("NOT turns.visible")
HELD: ColumnElement[bool] = literal_column("turns.held")
MARKED: ColumnElement[bool] = literal_column("(turns.pinned OR turns.waiting IS NOT NULL)")

messages = Table(
    "messages",
    metadata,
    Column("turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("role", String, nullable=False),
    Column("content", Text),
    # Other fields of the OpenAI chat format: tool_calls, tool_call_id, name.
    Column("extra", JSON),
    sqlite_with_rowid=False,
)

answer_parts = Table(
    "answer_parts",
    metadata,
    Column("turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("text", Text, nullable=False),
    sqlite_with_rowid=False,
)

# The pictures attached to questions, each a data URL by its hash.
pictures = Table(
    "pictures",
    metadata,
    Column("turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String, primary_key=True),
    Column("url", Text, nullable=False),
    Index("ix_pictures_key", "key"),
)

# The request bodies of a turn as they were sent, and what was left out of them.
receipts = Table(
    "receipts",
    metadata,
    Column("turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    Column("body", CompressedJSON, nullable=False),
)

# Which turns the receipt or the search of turn ``number`` may contain: see receipts.py.
sent_turns = Table(
    "sent_turns",
    metadata,
    Column("conversation_id", Integer, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("magnitude", Integer, primary_key=True),
    Column("first_turn", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("last_turn", Integer, primary_key=True),
    sqlite_with_rowid=False,
)

# Which receipts and sources contain turns of other conversations: see receipts.py.
sent_elsewhere = Table(
    "sent_elsewhere",
    metadata,
    Column("turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    Column("receipt_turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    Index("ix_sent_elsewhere_receipt", "receipt_turn_id"),
    sqlite_with_rowid=False,
)

# Notes that people saved.
notes = table_of_ids(
    "notes",
    Column("person_id", Integer),
    # It is only sent in conversations of this project.
    Column("project_id", Integer, ForeignKey("projects.id", ondelete="CASCADE")),
    Column("turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE")),
    Column("text", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    # The note that replaced its text; both stay visible.
    Column("superseded_by", Integer),
    # Sent with every question; sent at all.
    Column("pinned", Boolean, nullable=False),
    Column("active", Boolean, nullable=False),
    # A model proposed it, or an import brought it, and nobody has said yes or no.
    Column("proposed", Boolean, nullable=False, server_default=false()),
    CheckConstraint("NOT (proposed AND active)", name="ck_notes_proposed"),
    Index("ix_notes_person", "person_id", "active"),
    Index("ix_notes_turn", "turn_id"),
    Index("ix_notes_project", "project_id"),
)

# The answers of a turn that aren't current, each in full, so that they can be restored.
answer_versions = Table(
    "answer_versions",
    metadata,
    Column("turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True),
    # The messages after the question, and the turn's columns that describe the answer.
    Column("messages", JSON, nullable=False),
    Column("figures", CompressedJSON, nullable=False),
    Column("receipt", CompressedJSON),
    Column("finished_at", UtcTime),
    sqlite_with_rowid=False,
)

# The receipts of a conversation as a chain: for each part its salt, or its hash and the time once erased.
receipt_links = Table(
    "receipt_links",
    metadata,
    Column("conversation_id", Integer, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("previous", String, nullable=False),
    Column("parts", CompressedJSON, nullable=False),
    Column("hash", String, nullable=False),
    Index("ux_receipt_links_turn", "turn_id", "version", unique=True),
    sqlite_with_rowid=False,
)

# A person's rating of an answer, which may be the current one or a version.
ratings = Table(
    "ratings",
    metadata,
    Column("turn_id", Integer, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("rating", String, nullable=False),
    Column("right_answer", Text),
    Column("rated_at", UtcTime, nullable=False),
    # The result when the question was last asked again; see answering/evaluation.py.
    Column("result", JSON(none_as_null=True)),
)

# A text that stands for some turns. Each edit is a new row, so that it can be undone.
summaries = table_of_ids(
    "summaries",
    Column("conversation_id", Integer, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("first_turn", Integer, nullable=False),
    Column("last_turn", Integer, nullable=False),
    # The numbers of the turns it covers, as runs of [first, last].
    Column("covered", JSON, nullable=False),
    Column("text", Text, nullable=False),
    Column("written_by", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_summaries_conversation", "conversation_id", "id"),
)

# What can be undone: each row holds the state before a change. Undoing one deletes its row.
history_changes = table_of_ids(
    "history_changes",
    Column("conversation_id", Integer, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String, nullable=False),
    Column("before", JSON, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_history_changes_conversation", "conversation_id", "id"),
)
