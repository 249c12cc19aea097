"""The tables of people: their accounts, what they show to be known again, and the libraries and projects they share."""

from sqlalchemy import JSON, Boolean, Column, Float, ForeignKey, Index, Integer, String, Table, Text, UniqueConstraint

from rag_assistant.storage.tables.base import UtcTime, metadata, table_of_ids

people = table_of_ids(
    "people",
    Column("name", String, nullable=False),
    # Upper and lower case are the same, and so are letters that look the same.
    Column("name_key", String, nullable=False, unique=True),
    Column("role", String, nullable=False),
    Column("password_hash", String),
    Column("created_at", UtcTime, nullable=False),
    Column("disabled_at", UtcTime),
)

# Of what somebody shows to be known again, the hash alone is kept: who reads the database cannot use it.
sessions = table_of_ids(
    "sessions",
    Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    Column("secret_hash", String, nullable=False, unique=True),
    Column("created_at", UtcTime, nullable=False),
    Column("used_at", UtcTime),
    Column("expires_at", UtcTime, nullable=False),
    Column("address", String, nullable=False),
    Column("browser", String, nullable=False),
    # With which account elsewhere it began, if with one.
    Column("identity_id", Integer),
    Index("ix_sessions_person", "person_id"),
)

# Accounts elsewhere by which people are known. Two issuers can have the same subject; a label is for people to read.
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
    # By which a person knows it again in a list.
    Column("prefix", String, nullable=False),
    Column("scopes", JSON, nullable=False),
    Index("ix_api_tokens_person", "person_id"),
)

# With such a link a person chooses a password, once.
password_links = Table(
    "password_links",
    metadata,
    Column("secret_hash", String, primary_key=True),
    Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at", UtcTime, nullable=False),
)

# Who did what to which account or library, by name, so that it outlives the account. Never what anybody asked or keeps.
audit_log = table_of_ids(
    "audit_log",
    Column("at", UtcTime, nullable=False),
    Column("actor", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("address", String),
)

# What models took within the last day, for whom; nobody's where there are no accounts, or a command asked.
model_tokens = table_of_ids(
    "model_tokens",
    Column("person_id", Integer),
    Column("at", UtcTime, nullable=False),
    Column("tokens", Integer, nullable=False),
    Index("ix_model_tokens_at", "at", "person_id", "tokens"),
)

# The questions of people that were accepted within the last minute, or that a process (``owner``) answers.
asked_questions = table_of_ids(
    "asked_questions",
    Column("person_id", Integer, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("owner", String),
    Index("ix_asked_questions_person", "person_id", "at"),
)

# How the model of an endpoint counts tokens, and the most that it takes.
model_counts = Table(
    "model_counts",
    metadata,
    Column("base_url", String, primary_key=True),
    Column("model", String, primary_key=True),
    Column("ratio", Float),
    Column("context_limit", Integer),
    Column("declared_limit", Integer),
    Column("whole_counts", Integer, nullable=False),
)

# Sets of documents. Where there are no accounts there is one, which belongs to nobody.
libraries = table_of_ids(
    "libraries",
    Column("name", String, nullable=False),
    Column("person_id", Integer, ForeignKey("people.id")),
    # What everybody may do with it besides its owner: nothing, read, or write.
    Column("everyone", String),
    Index("ix_libraries_person", "person_id"),
)

# Whoever is signed in and has such a link reads the conversation.
conversation_links = table_of_ids(
    "conversation_links",
    Column("conversation_id", Integer, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("secret_hash", String, nullable=False, unique=True),
    Column("with_sources", Boolean, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_conversation_links_conversation", "conversation_id"),
)

library_shares = Table(
    "library_shares",
    metadata,
    Column("library_id", Integer, ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
    Column("access", String, nullable=False),
    Index("ix_library_shares_person", "person_id"),
)

# What conversations have in common: what the model is told, and what holds where a conversation decides nothing.
projects = table_of_ids(
    "projects",
    Column("name", String, nullable=False),
    # Nobody's while there are no accounts.
    Column("person_id", Integer, ForeignKey("people.id")),
    # As of a library: who may write changes it. Conversations in it stay their owner's.
    Column("everyone", String),
    Column("instructions", Text, nullable=False),
    # As of a conversation.
    Column("overrides", JSON, nullable=False),
    Column("scope", JSON(none_as_null=True)),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_projects_person", "person_id"),
)

project_shares = Table(
    "project_shares",
    metadata,
    Column("project_id", Integer, ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", Integer, ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
    Column("access", String, nullable=False),
    Index("ix_project_shares_person", "person_id"),
)
