"""The tables of accounts, credentials, and shared libraries and projects."""

from sqlalchemy import JSON, Boolean, Column, Float, ForeignKey, Index, Integer, String, Text, UniqueConstraint

from rag_assistant.storage.tables.base import UtcTime, keyed_table, shares_table, table_of_ids

people = table_of_ids(
    "people",
    Column("name", String, nullable=False),
    # Case is ignored, and so are look-alike letters.
    Column("name_key", String, nullable=False, unique=True),
    Column("role", String, nullable=False),
    Column("password_hash", String),
    # Where links for choosing a password are sent.
    Column("email", String),
    Column("created_at", UtcTime, nullable=False),
    Column("disabled_at", UtcTime),
)

# Only hashes of credentials are stored: whoever reads the database can't use them.
sessions = table_of_ids(
    "sessions",
    Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    Column("secret_hash", String, nullable=False, unique=True),
    Column("created_at", UtcTime, nullable=False),
    Column("used_at", UtcTime),
    Column("expires_at", UtcTime, nullable=False),
    Column("address", String, nullable=False),
    Column("browser", String, nullable=False),
    # The linked identity it was started with, if any.
    Column("identity_id", Integer),
    Index("ix_sessions_person", "person_id"),
)

# Linked identities. Two issuers can have the same subject; a label is for people to read.
linked_identities = table_of_ids(
    "linked_identities",
    Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    Column("issuer", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("label", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("used_at", UtcTime),
    UniqueConstraint("issuer", "subject"),
    Index("ix_linked_identities_person", "person_id"),
)

api_tokens = table_of_ids(
    "api_tokens",
    Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    Column("secret_hash", String, nullable=False, unique=True),
    Column("created_at", UtcTime, nullable=False),
    Column("used_at", UtcTime),
    Column("expires_at", UtcTime),
    Column("name", String, nullable=False),
    # Its first characters, for people to recognise it in a list.
    Column("prefix", String, nullable=False),
    Column("scopes", JSON, nullable=False),
    Index("ix_api_tokens_person", "person_id"),
)

# One-time links for choosing a password.
password_links = keyed_table(
    "password_links",
    Column("secret_hash", String, primary_key=True),
    Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at", UtcTime, nullable=False),
)

# Who did what to which account, by name, so that it outlives the account; all else by number. Never content.
audit_log = table_of_ids(
    "audit_log",
    Column("at", UtcTime, nullable=False),
    Column("actor", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("address", String),
)

# Tokens of models and their cost by the hour, for a month: of each person and, without one, of all together.
model_tokens = table_of_ids(
    "model_tokens",
    Column("person_id", Integer),
    Column("at", UtcTime, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("cost", Float, nullable=False, server_default="0"),
    Index("ix_model_tokens_person", "person_id", "at"),
)

# Questions accepted within the last minute, or being answered by a process (``owner``).
asked_questions = table_of_ids(
    "asked_questions",
    Column("person_id", Integer, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("owner", String),
    Index("ix_asked_questions_person", "person_id", "at"),
)

# How an endpoint's model counts tokens, and its context limit.
model_counts = keyed_table(
    "model_counts",
    Column("base_url", String, primary_key=True),
    Column("model", String, primary_key=True),
    Column("ratio", Float),
    Column("context_limit", Integer),
    Column("declared_limit", Integer),
    Column("whole_counts", Integer, nullable=False),
)

# What was changed on the settings page, where several servers share the database.
page_settings = keyed_table(
    "page_settings",
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("settings", JSON, nullable=False),
)

# Sets of documents. Without accounts there is one, which has no owner.
libraries = table_of_ids(
    "libraries",
    Column("name", String, nullable=False),
    Column("person_id", Integer, ForeignKey("people.id")),
    # What everybody else may do with it: nothing, read, or write.
    Column("everyone", String),
    Index("ix_libraries_person", "person_id"),
)

# Anybody signed in with such a link can read the conversation; with a person, only they can.
conversation_links = table_of_ids(
    "conversation_links",
    Column("conversation_id", Integer, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("secret_hash", String, nullable=False, unique=True),
    Column("with_sources", Boolean, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE")),
    Index("ix_conversation_links_conversation", "conversation_id"),
    Index("ix_conversation_links_person", "person_id"),
)

library_shares = shares_table("library_shares", "library_id", "libraries")

# What conversations share: instructions for the model, and defaults.
projects = table_of_ids(
    "projects",
    Column("name", String, nullable=False),
    # None while there are no accounts.
    Column("person_id", Integer, ForeignKey("people.id")),
    # As in libraries: who may write changes it. Conversations in it keep their owner.
    Column("everyone", String),
    Column("instructions", Text, nullable=False),
    # As in conversations.
    Column("overrides", JSON, nullable=False),
    Column("scope", JSON(none_as_null=True)),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_projects_person", "person_id"),
)

project_shares = shares_table("project_shares", "project_id", "projects")
