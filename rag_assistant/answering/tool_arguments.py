"""What tools take and give back: the arguments of our own, checked like requests, and any tool's result."""

import json
from functools import cache
from typing import Annotated, Any

from msgspec import Struct
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rag_assistant.records import MAX_INT32, MAX_NOTE_CHARS, Passage
from rag_assistant.records.errors import ToolFailed
from rag_assistant.records.validation import first_problem, storable_value, visible

MAX_PASSAGES = 20
MAX_PIECE_CHARS = 8000
MAX_DELETED_AT_ONCE = 100
MAX_NAME_CHARS = 60
NAME_END_CHARS = 15


class Arguments(BaseModel):
    """The arguments of a tool; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", defer_build=True, str_strip_whitespace=True)


def argument(default: Any, allowed: str, description: str, **limits: Any) -> Any:
    """Declare an argument; ``allowed`` completes "it must be ..."."""
    return Field(default, description=description, json_schema_extra={"allowed": allowed}, **limits)


class SearchDocuments(Arguments):
    """Search the user's documents for passages that answer a question. Use the words that may stand in the text."""

    query: str = argument(..., "text that is not empty", "What to search for.", min_length=1, max_length=2000)
    limit: int = argument(
        6, f"a whole number from 1 to {MAX_PASSAGES}", "How many passages to return.", ge=1, le=MAX_PASSAGES
    )


class ReadDocument(Arguments):
    """Read a piece of one document, when a passage is not enough."""

    document_id: int = argument(
        ..., "the id of a document", "The document's id, as list_documents gives it.", ge=1, le=MAX_INT32
    )
    start: int = argument(0, "a whole number, 0 or more", "The character to begin with.", ge=0, le=MAX_INT32)
    length: int = argument(
        4000, f"a whole number from 1 to {MAX_PIECE_CHARS}", "How many characters to read.", ge=1, le=MAX_PIECE_CHARS
    )


class ListDocuments(Arguments):
    """List the user's documents with their ids, the newest first."""

    name_contains: str = argument("", "text", "Only documents whose name contains this.", max_length=255)


class DeleteDocuments(Arguments):
    """Delete documents. The user is asked first, and nothing is deleted before the answer is yes."""

    document_ids: list[int] = argument(
        ..., f"a list of 1 to {MAX_DELETED_AT_ONCE} document ids", "The ids of the documents.",
        min_length=1, max_length=MAX_DELETED_AT_ONCE,
    )  # fmt: skip


class ProposeNote(Arguments):
    """Propose a note about the user for later questions, also in other conversations: a lasting fact or preference that
    the user stated, in one sentence. It is kept if the user accepts it. Do not ask about it; go on with the answer."""

    text: Annotated[str, AfterValidator(visible)] = argument(
        ..., f"text of 1 to {MAX_NOTE_CHARS} characters", "The note.", min_length=1, max_length=MAX_NOTE_CHARS
    )


def object_in(text: str) -> dict[str, Any]:
    """Return the JSON object in a text. Raises ToolFailed."""
    try:
        given = storable_value(json.loads(text or "{}"))
    except (ValueError, RecursionError) as error:
        raise ToolFailed(f"The arguments are not JSON: {text[:200]}") from error
    if not isinstance(given, dict):
        raise ToolFailed("The arguments must be one JSON object.")
    return given


def read_arguments(kind: type[Arguments], text: str) -> Arguments:
    """Return the arguments in a JSON text. Raises ToolFailed, which says what is wrong."""
    given = object_in(text)
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise ToolFailed(first_problem(error, kind, given)[1]) from None


@cache
def schema_of(name: str, kind: type[Arguments]) -> dict[str, Any]:
    """Return a tool in the OpenAI format."""
    described = kind.model_json_schema()
    properties = {
        key: {name: value for name, value in field.items() if name not in ("title", "allowed")}
        for key, field in described["properties"].items()
    }
    parameters = {"type": "object", "properties": properties, "required": described.get("required", [])}
    function = {"name": name, "description": kind.__doc__, "parameters": parameters | {"additionalProperties": False}}
    return {"type": "function", "function": function}


class ToolResult(Struct, frozen=True):
    """A tool's result: text for the model, passages to number, a question to a person, or a note to store."""

    text: str
    passages: tuple[Passage, ...] = ()
    asks: str | None = None
    arguments: dict[str, Any] | None = None
    note: str | None = None


def quoted_name(name: str, max_chars: int = MAX_NAME_CHARS) -> str:
    """Return a name so that nothing in it can be taken for one of our sentences, in plain text and as Markdown."""
    if len(name) > max_chars:
        name = f"{name[: max_chars - NAME_END_CHARS - 1]}…{name[-NAME_END_CHARS:]}"
    return "`" + name.replace("`", "'") + "`"
