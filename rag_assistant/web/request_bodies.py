"""Request bodies: the fields of each, and what they accept."""

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, StringConstraints

from rag_assistant.conversations.bill import Wishes
from rag_assistant.conversations.pictures import ALLOWED as PICTURE
from rag_assistant.conversations.pictures import MAX_PICTURES
from rag_assistant.documents.uploads import MAX_NAME_CHARS, MAX_TAG_CHARS
from rag_assistant.history import OVERFLOW_CHOICES, HistoryStrategy, OverflowChoice
from rag_assistant.records import (
    EVERYTHING,
    MAX_GRID_COLUMNS,
    MAX_INT32,
    MAX_NOTE_CHARS,
    SCOPE_FIELDS,
    UNSET,
    UNTITLED,
    Access,
    AnswerOptions,
    ColumnType,
    ConversationSearch,
    Message,
    Question,
    Scope,
)
from rag_assistant.records.validation import visible

ONE_OF_OVERFLOW = f"one of {', '.join(OVERFLOW_CHOICES)}"
SEARCHES = "one of off, project, mine"
# Settings that a conversation or a project can override.
OWN = {"max_history_turns", "history_strategy", "on_overflow", "search_conversations", "notes", "retention_days"}
HISTORY_LIMIT = "a whole number, 0 or more, or null for no limit"
ID = f"a whole number from 1 to {MAX_INT32}"
MAX_DOCUMENT_IDS = 1000
DOCUMENT_IDS = f"a list of 1 to {MAX_DOCUMENT_IDS} document ids, or null for all documents"
LIBRARY_IDS = f"a list of 1 to {MAX_DOCUMENT_IDS} library ids, or null for all documents"
MAX_TAGS = 50
MAX_KEPT, MAX_HINT_CHARS = 1000, 500
MAX_URL = 2000
ROLES = ("user", "assistant")
TAGS = f"a list of up to {MAX_TAGS} tags, each of 1 to {MAX_TAG_CHARS} characters without commas"


def field(default: Any, allowed: str, **limits: Any) -> Any:
    """Declare a field; ``allowed`` completes "it must be ..."."""
    return Field(default, json_schema_extra={"allowed": allowed}, **limits)


def inherited(allowed: str) -> Any:
    """Declare a setting of a conversation or a project, which overrides the inherited one."""
    return field("default", f'{allowed}, or "default" to inherit it')


def stripped(max_chars: int, min_chars: int = 1, pattern: str | None = None) -> StringConstraints:
    """Return the limits of a text without its outer blanks."""
    return StringConstraints(strip_whitespace=True, min_length=min_chars, max_length=max_chars, pattern=pattern)


def shown_as_it_is(name: str) -> str:
    """Return the name of a document. Raises ValueError if it would be displayed as a different one."""
    if not name.isprintable() or "/" in name or "\\" in name:
        raise ValueError
    return name


def real_day(text: str) -> str | None:
    """Return a date in ISO 8601, ``None`` if it is empty. Raises ValueError if there is no such day."""
    return date.fromisoformat(f"{text}-01-01"[:10]).isoformat()[: len(text)] if text else None


Day = Annotated[str, StringConstraints(pattern=r"^([0-9]{4}(-[0-9]{2}){0,2})?$"), AfterValidator(real_day)]
DAY = "a date such as 2024-05-31, 2024-05 or 2024"
Id = Annotated[int, Field(ge=1, le=MAX_INT32)]
BillId = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,10}-[0-9]{1,10}$")]
Tag = Annotated[str, stripped(MAX_TAG_CHARS, pattern=r"^[^,]+$")]
Title = Annotated[str, stripped(200)]
TITLE = "text of 1 to 200 characters, not only blanks"
DocumentName = Annotated[str, stripped(MAX_NAME_CHARS), AfterValidator(shown_as_it_is)]
NoteText = Annotated[str, stripped(MAX_NOTE_CHARS), AfterValidator(visible)]
NOTE_TEXT = f"text of 1 to {MAX_NOTE_CHARS} characters that can be seen"
MAX_RIGHT_ANSWER_CHARS = 4000
RightAnswer = Annotated[str, stripped(MAX_RIGHT_ANSWER_CHARS, 0), AfterValidator(lambda text: text or None)]
RIGHT_ANSWER = f"text of up to {MAX_RIGHT_ANSWER_CHARS} characters, or null for none"
MAX_INSTRUCTIONS_CHARS = 8000
Instructions = Annotated[str, stripped(MAX_INSTRUCTIONS_CHARS, 0)]
INSTRUCTIONS = f"text of up to {MAX_INSTRUCTIONS_CHARS} characters"
TYPES = "text, number, date or yes_no"
COLUMNS = f"a list of 1 to {MAX_GRID_COLUMNS} columns, each with a question, perhaps a name, a type ({TYPES}) and an id"
ACCESS = "read, write, or null for nothing"
DOCUMENT_NAME = f"text of 1 to {MAX_NAME_CHARS} characters without slashes or invisible characters"


class Strict(BaseModel):
    """A request body: unknown fields are refused, and types are not coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    def given(self, name: str) -> Any:
        """Return a field's value, ``UNSET`` if the body doesn't have it."""
        return getattr(self, name) if name in self.model_fields_set else UNSET


class ScopeBody(Strict):
    """A body that may name the documents to search."""

    document_ids: list[Id] | None = field(None, DOCUMENT_IDS, min_length=1, max_length=MAX_DOCUMENT_IDS)
    tags: list[Tag] | None = field(None, f"{TAGS}, or null for all documents", min_length=1, max_length=MAX_TAGS)
    library_ids: list[Id] | None = field(None, LIBRARY_IDS, min_length=1, max_length=MAX_DOCUMENT_IDS)
    after: Day | None = field(None, f"{DAY}, or null for all documents")
    before: Day | None = field(None, f"{DAY}, or null for all documents")

    def scope(self, now: Scope = EVERYTHING) -> Scope | None:
        """Return the new scope, ``None`` if the body has none; parts it leaves out stay."""
        if not self.model_fields_set.intersection(SCOPE_FIELDS):
            return None
        parts = {name: getattr(self if name in self.model_fields_set else now, name) for name in SCOPE_FIELDS}
        lists = {name: tuple(dict.fromkeys(parts[name] or ())) for name in parts.keys() - {"after", "before"}}
        return Scope(**lists, after=parts["after"], before=parts["before"])


class AnyQuestionBody(ScopeBody):
    """The fields that may accompany a question in every protocol."""

    max_history_turns: int | None = field(None, HISTORY_LIMIT, ge=0)
    on_overflow: OverflowChoice | None = field(None, f"{ONE_OF_OVERFLOW}, or null for what is set")

    def question_about(self, text: str, **more: Any) -> Question:
        """Return a text as a question with the body's fields."""
        scope = self.scope()
        return Question(
            text=text,
            max_history_turns=self.given("max_history_turns"),
            scope=UNSET if scope is None else scope,
            **more,
        )


class QueryBody(AnyQuestionBody):
    """The body of /api/query and its streaming twin."""

    question: str = field(
        ..., "text with at least one visible character", validation_alias=AliasChoices("question", "query")
    )
    conversation_id: Id | None = field(None, f"{ID}, or null for a new conversation")
    project_id: Id | None = field(None, f"{ID}: the project of a new conversation, or null")
    confirms_turn: Id | None = field(None, f"{ID}: the id of the turn that asks, or null")
    images: list[str] = field([], f"a list of up to {MAX_PICTURES} pictures, each {PICTURE}", max_length=MAX_PICTURES)
    edits_turn: Id | None = field(None, f"{ID}: the id of the turn whose question this is in other words, or null")
    search_conversations: ConversationSearch | None = field(None, f"{SEARCHES}, or null for what is set")
    notes: bool | None = field(None, "true, false, or null for what is set")
    model: str | None = field(None, "one of models_offered, or null for what is set", max_length=200)

    def as_question(self, key: str | None, *, interactive: bool = False) -> Question:
        """Return the body's question; ``interactive``: a person asks it, on the page."""
        return self.question_about(
            self.question,
            conversation_id=self.conversation_id,
            project_id=self.project_id,
            idempotency_key=key,
            on_overflow=self.on_overflow,
            confirms_turn=self.confirms_turn,
            edits_turn=self.edits_turn,
            interactive=interactive,
            images=tuple(self.images),
            options=AnswerOptions(model=self.model, search_conversations=self.search_conversations, notes=self.notes),
        )


class EarlierTurn(Strict):
    """A turn that the client keeps."""

    question: str = field(..., "text")
    answer: str = field(..., "text")


class TemporaryBody(AnyQuestionBody):
    """The body of /api/query/temporary: the client sends the conversation's turns, since nothing is stored."""

    question: str = field(..., "text with at least one visible character")
    earlier: list[EarlierTurn] = field([], "a list of earlier turns, the oldest first, each with question and answer")

    def as_messages(self) -> list[Message]:
        """Return the conversation before the question, as messages for a model."""
        turns = [(one.question, one.answer) for one in self.earlier]
        messages = [{"role": role, "content": text} for turn in turns for role, text in zip(ROLES, turn, strict=True)]
        return [*messages, {"role": "user", "content": self.question}]


class NewConversationBody(Strict):
    """The body of POST /api/conversations."""

    title: Title = field(UNTITLED, TITLE)
    project_id: Id | None = field(None, f"{ID}: the project that it is made in, or null")


class RulesBody(ScopeBody):
    """A body with the settings of a conversation or a project."""

    max_history_turns: Annotated[int, Field(ge=0)] | Literal["default"] | None = inherited(HISTORY_LIMIT)
    history_strategy: HistoryStrategy | Literal["default"] = inherited("one of window, smart")
    on_overflow: OverflowChoice | Literal["default"] = inherited(ONE_OF_OVERFLOW)
    search_conversations: ConversationSearch | Literal["default"] = inherited(SEARCHES)
    notes: bool | Literal["default"] = inherited("true, false")

    def own(self) -> dict[str, Any]:
        """Return the body's overrides; UNSET removes one."""
        values = {name: getattr(self, name) for name in self.model_fields_set & OWN}
        return {name: UNSET if value == "default" else value for name, value in values.items()}


class ChangeConversationBody(RulesBody):
    """The body of PATCH /api/conversations/ID."""

    title: Title | None = field(None, TITLE)
    pinned: bool | None = field(None, "true or false")
    archived: bool | None = field(None, "true or false")
    project_id: Id | None = field(None, f"{ID}: the project that it moves to, or null for none")


class NewProjectBody(RulesBody):
    """The body of POST /api/projects."""

    name: Title = field(..., TITLE)
    instructions: Instructions = field("", INSTRUCTIONS)
    retention_days: Annotated[int, Field(ge=1, le=36500)] | Literal["default"] | None = inherited(
        "a whole number from 1 to 36500, null for no limit"
    )


class ChangeProjectBody(NewProjectBody):
    """The body of PATCH /api/projects/ID."""

    name: Title = field("", TITLE)
    everyone: Access | None = field(None, ACCESS)

    def values(self) -> dict[str, Any]:
        return self.model_dump(include=self.model_fields_set & {"name", "instructions", "everyone"})


class ColumnBody(Strict):
    """A column of a table; with its id, it is one that is there."""

    id: Id | None = None
    name: Annotated[str, stripped(100, 0)] = ""
    question: Annotated[str, stripped(1000)]
    type: ColumnType = "text"


class ChangeGridBody(ScopeBody):
    """The body of PATCH /api/grids/ID."""

    name: Title = field("", TITLE)
    columns: list[ColumnBody] = field([], COLUMNS, min_length=1, max_length=MAX_GRID_COLUMNS)
    watch: bool = field(False, "true or false")
    max_tokens: int | None = field(None, "a whole number, 1 or more, or null for no limit", ge=1, le=MAX_INT32)
    cells_at_once: int = field(4, "a whole number from 1 to 20", ge=1, le=20)
    everyone: Access | None = field(None, ACCESS)

    def values(self, now: Scope = EVERYTHING) -> dict[str, Any]:
        """Return what changes of a table about the documents of ``now``."""
        scope = self.scope(now)
        return self.model_dump(include=self.model_fields_set - set(SCOPE_FIELDS)) | (
            {} if scope is None else {"scope": scope.as_dict()}
        )


class NewGridBody(ChangeGridBody):
    """The body of POST /api/grids."""

    name: Title = field(..., TITLE)
    columns: list[ColumnBody] = field(..., COLUMNS, min_length=1, max_length=MAX_GRID_COLUMNS)
    project_id: Id | None = field(None, f"{ID}: the project whose documents it is about, or null")


class RetryBody(Strict):
    """The body of POST /api/turns/ID/retry and of POST /api/turns/ID/regenerate."""

    quotes: bool = field(False, "true or false")


class ChangeTurnBody(Strict):
    """The body of PATCH /api/turns/ID."""

    pinned: bool | None = field(None, "true or false")
    excluded: bool | None = field(None, "true or false")


class RatingBody(Strict):
    """The body of PUT /api/turns/ID/rating."""

    rating: Literal["up", "down"] = field(..., "up or down")
    right_answer: RightAnswer | None = field(None, RIGHT_ANSWER)


class SummaryBody(Strict):
    """The body of PUT /api/conversations/ID/summary."""

    text: str = field(..., "text with at least one visible character")


class SummariseBody(Strict):
    """The body of POST /api/conversations/ID/compact."""

    keep: list[BillId] | None = field(
        None, "a list of ids of the bill, or null for what is ticked", max_length=MAX_KEPT
    )
    hint: str = field("", f"text of up to {MAX_HINT_CHARS} characters", max_length=MAX_HINT_CHARS)

    @property
    def wishes(self) -> Wishes:
        """The options of the summary."""
        return Wishes(self.keep, self.hint.strip())


class CommandBody(Strict):
    """The body of POST /api/conversations/ID/commands."""

    command: str = field(..., "a command such as /history", max_length=MAX_NOTE_CHARS + 50)


class NewNoteBody(Strict):
    """The body of POST /api/notes."""

    text: NoteText = field(..., NOTE_TEXT)
    turn_id: Id | None = field(None, f"{ID}: the turn from which it is, or null")
    project_id: Id | None = field(None, f"{ID}: the project whose conversations it is for, or null for all")
    pinned: bool = field(False, "true or false")


class ChangeNoteBody(Strict):
    """The body of PATCH /api/notes/ID."""

    text: NoteText | None = field(None, NOTE_TEXT)
    pinned: bool | None = field(None, "true or false")
    active: bool | None = field(None, "true or false")


class ChangeDocumentBody(Strict):
    """The body of PATCH /api/documents/ID."""

    name: DocumentName | None = field(None, DOCUMENT_NAME)
    tags: list[Tag] | None = field(None, TAGS, max_length=MAX_TAGS)
    library_id: Id | None = field(None, f"{ID}: the library that it moves to, or null")
    date: Day | None = field(None, f"{DAY}, or null for the one that was found")


class UploadFields(Strict):
    """The form fields sent with a file: comma-separated tags, the document it replaces, its library."""

    tags: list[Tag] = field([], TAGS, max_length=MAX_TAGS)
    replaces: Id | None = field(None, f"{ID}: the document whose newer version this is")
    library_id: Id | None = field(None, f"{ID}: the library that it is added to")


class WebPageBody(Strict):
    """The body of POST /api/documents/web-page."""

    url: str = field(..., "the address of a page, such as https://example.org/page", min_length=1, max_length=MAX_URL)
    tags: list[Tag] = field([], TAGS, max_length=MAX_TAGS)
    library_id: Id | None = field(None, f"{ID}: the library that it is added to")


class NewLinkBody(Strict):
    """The body of POST /api/conversations/ID/links."""

    with_sources: bool = field(False, "true or false")
    person: str | None = field(None, "the name of an account: only they can read it", min_length=1, max_length=200)


class NewLibraryBody(Strict):
    """The body of POST /api/libraries."""

    name: Title = field(..., TITLE)


class ChangeLibraryBody(Strict):
    """The body of PATCH /api/libraries/ID."""

    name: Title | None = field(None, TITLE)
    everyone: Access | None = field(None, ACCESS)

    def values(self) -> dict[str, Any]:
        changed = {"name": self.name or UNSET, "everyone": self.given("everyone")}
        return {name: value for name, value in changed.items() if value is not UNSET}


class ShareBody(Strict):
    """The body of PUT /api/libraries/ID/shares."""

    person: str = field(..., "the name of an account", min_length=1, max_length=200)
    access: Access | None = field(..., ACCESS)


class NoFields(Strict):
    """The body of an action without options: empty, or an empty object."""
