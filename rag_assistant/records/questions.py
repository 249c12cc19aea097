"""A question with its options."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct, to_builtins

from rag_assistant.records.base import UNSET, Unset


class Scope(Struct, frozen=True):
    """Which documents are searched: those named or in a named library, with one of the tags, dated from ``after`` to
    ``before``, which may be a year or a month only; empty parts don't restrict.

    A newer version that is named is searched once it has replaced the older one.
    """

    document_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    library_ids: tuple[int, ...] = ()
    after: str | None = None
    before: str | None = None

    def __bool__(self) -> bool:
        return self != EVERYTHING

    def as_dict(self) -> dict[str, Any] | None:
        """Return the scope as stored and shown, ``None`` if it includes all documents."""
        return to_builtins(self) if self else None

    def holds(self, document_id: int, tags: Iterable[str], library_id: int | None, date: str) -> bool:
        """Return whether a document with these tags is in the scope."""
        named = document_id in self.document_ids or library_id in self.library_ids
        return (
            (named or not (self.document_ids or self.library_ids))
            and (not self.tags or bool(set(self.tags) & set(tags)))
            and (not self.after or date >= self.after[: len(date)])
            and (not self.before or date[: len(self.before)] <= self.before)
        )


EVERYTHING = Scope()
SCOPE_FIELDS = Scope.__struct_fields__
AnswerMode = Literal["documents", "tools", "plain"]
ConversationSearch = Literal["off", "project", "mine"]


class AnswerOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options for one answer; ``None`` uses the settings.

    ``mode``: search for the question, let the model search with tools, or neither. ``instructions`` are added to ours.
    ``fields`` go to the endpoint unchanged: ``tools`` whose calls the caller runs, ``response_format``, ``stop`` and
    the like; ``fallback`` are the options for an endpoint that refuses them.
    """

    mode: AnswerMode | None = None
    instructions: str | None = None
    max_answer_tokens: int | None = None
    temperature: float | None = None
    history_token_budget: int | None = None
    tool_iterations_keep: int | None = None
    search_conversations: ConversationSearch | None = None
    notes: bool | None = None
    fields: dict[str, Any] | None = None
    # One of the setting models_offered.
    model: str | None = None
    fallback: "AnswerOptions | None" = None

    @property
    def needs_model(self) -> bool:
        """Whether quotes can't answer: the caller has tools or a schema."""
        return self.fallback is None and not {"tools", "response_format"}.isdisjoint(self.fields or ())


AS_SET = AnswerOptions()


class Question(Struct, frozen=True):
    """One question, checked for form but not yet accepted."""

    text: str
    conversation_id: int | None = None
    max_history_turns: int | Unset | None = UNSET
    # By default, the conversation's scope.
    scope: Scope | Unset = UNSET
    # The project of a new conversation; an existing one must be in it.
    project_id: int | None = None
    idempotency_key: str | None = None
    # What to do if turns would be left out; None: as the conversation or the settings say.
    on_overflow: str | None = None
    # The turn whose confirmation this answers with yes or no.
    confirms_turn: int | None = None
    # The turn whose question this edits: it is asked in a branch before that turn.
    edits_turn: int | None = None
    # Whether a person asked, on the page or in a terminal, and not a program.
    interactive: bool = False
    options: AnswerOptions = AS_SET
    # Pictures attached to the question, as data URLs.
    images: tuple[str, ...] = ()
