"""The sentences below ``web`` that people read, extracted from the code.

A sentence is a text that begins and ends like one. Values become placeholders, ``{name}``; if a part has alternatives,
each makes a sentence.
"""

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from rag_assistant.extraction.formats.kinds import ARCHIVE, DATABASE, FONT, PICTURE, PROGRAM, SOUND, SUPPORTED

PACKAGE = Path(__file__).resolve().parents[2] / "rag_assistant"
# Packages and modules whose sentences are shown on a page. What only a terminal, a log, a program or a model reads is
# not included.
SPEAKING = (
    *("records/answers", "records/errors", "documents", "extraction"),
    *("accounts/accounts", "accounts/admission", "accounts/limits", "accounts/oidc", "accounts/passwords"),
    "accounts/single_sign_on",
    *("answering/assistant", "answering/overflow", "answering/coverage", "answering/request"),
    *(
        "answering/answer",
        "answering/figures",
        "answering/quoting",
        "answering/search",
        "answering/sending",
        "answering/writer",
    ),
    "retrieval/search",
    *(
        "conversations/actions",
        "conversations/bill",
        "conversations/commands",
        "conversations/compaction",
        "conversations/model_profile",
        "conversations/pictures",
    ),
    *(
        "conversations/summary_lines",
        "storage/documents/documents",
        "files/store",
        "files/s3",
        "history/fitting",
        "history/figures",
        "history/words",
    ),
    *("llm/calls", "llm/client", "llm/connection_check", "llm/endpoint", "llm/failures", "llm/local_model"),
    *("llm/models", "llm/reader", "llm/sse", "llm/tool_calls"),
    *("runtime/public_http", "storage/conversations", "storage/documents/rows", "storage/failures"),
    "storage/grids",
    *("web/api/paging", "web/errors", "web/identity", "web/pages"),
)
# Excluded from those.
SILENT = ("conversations/exchange/export", "documents/doctor", "web/pages/handbook")
# Texts for models or programs, invisible ones, and questions for the guide, which is in English.
NOT_FOR_PEOPLE = frozenset(
    {
        # For the log.
        "The disk is full. The last %.1f MB were kept for signing in and deleting; questions and uploads are refused "
        "until there is room. Delete documents or empty the trash, or free some space elsewhere.",
        "I have read the summary. I take it as a record of what was said.",
        "{turns} of this conversation is not shown.",
        "{turns} of this conversation are not shown.",
        "Is it ready?",
        "It is ready.",
        "The geese are asleep.",
        "A compaction leaves a summary.",
        "How many earlier turns does the model see?",
        "The geese on the shore of the lake are asleep, and nobody wakes them.",
        "The code word is {value}.",
        "What is the code word? Answer with that word alone.",
        "Which kinds of documents can I add?",
        "How large may a document be?",
        '"cursor" and "before" mean the same; send one of them.',
        # Details of a provider's errors are only logged.
        "The answer comes too slowly.",
        "The answer does not come in pieces.",
        "The answer has more than {max_answer_bytes} bytes.",
        "The answer is compressed, though it was not asked to be.",
    }
)
# Parts of sentences, and what is too short to be told from code.
PHRASES = {
    "extraction/formats/kinds.py": (SUPPORTED, PICTURE, SOUND, PROGRAM, ARCHIVE, DATABASE, FONT),
    "history/words.py": (
        *("{n1} of {n2} earlier turn", "{n1} of {n2} earlier turns"),
        *("{n1} of {n2} earlier turn ({why})", "{n1} of {n2} earlier turns ({why})"),
        *("{n} over the turn limit", "{n} over the token limit", "{n} left out by smart memory", "{n} excluded"),
        *("{n} in a completed confirmation", "{n} from before you started over", "{n} summarised"),
        *("{n} without an answer", "{n} erased"),
        *("over the turn limit", "over the token limit", "left out by smart memory", "excluded", "summarised"),
        *("in a completed confirmation", "from before you started over", "without an answer", "erased", "left out"),
        *("turn {numbers}", "turns {numbers}", "{n} of turns {n1} to {n2}", "none of the earlier turns", "to"),
    ),
    "history/figures.py": (
        *("instructions", "tools", "summary", "earlier turns", "passages", "question", "free"),
        *("instructions {n}", "tools {n}", "summary {n}", "earlier turns {n}", "passages {n}", "question {n}"),
        *("free {n}",),
    ),
    "web/pages/receipt.py": (
        *("Instructions", "Notice about left-out turns", "Summary of older turns", "Earlier turn", "Turn {n}"),
        *("Recalled from left-out turns", "Passages from your documents", "Question", "Tool calls for this answer"),
    ),
    "web/pages/settings.py": (
        *("Memory", "Model", "Documents", "Server", "People", "Advanced", "default"),
        *("environment",),
    ),
    "records/answers.py": ("source {n}", "source {n} of turn {turn}"),
    "conversations/commands.py": (
        *("{name}: {does}", "{n} turn.", "{n} turns."),
        "Next question: {seen}, about {tokens} tokens without the question.",
        "Next question: {seen} + summary, about {tokens} tokens without the question.",
        "The model now sees a summary of {turns}. Type /undo to remove it.",
        "/undo will bring back the turns from before you started over.",
        *("/undo will remove the summary.", "/undo will restore the summary as it was before the edit."),
        *("/undo will undo the last pin change.", "/undo will undo the last exclusion change."),
    ),
    "conversations/prompts.py": (
        *("{brackets} does not match any source of this answer.", "{brackets} do not match any source of this answer."),
    ),
    "conversations/compaction.py": ("Summarising {turns}.", "Summarising {turns}, part {n1} of {n2}."),
    "accounts/limits.py": (
        *("{n} of your answers are already being written", "You asked {n} questions within a minute"),
        *("You have used {n} tokens within a day",),
        *("This server has used {n} tokens within a day, which is its limit",),
        *("You have used your budget of {limit} for a day", "You have used your budget of {limit} for a month"),
        *(
            "This server has used its budget of {limit} for a day",
            "This server has used its budget of {limit} for a month",
        ),
    ),
    "records/errors/requests.py": ("{n} days", "{n} hours", "{n} minutes", "{n} seconds"),
    "accounts/accounts.py": (
        *("ended a session", "ended all other sessions", "changed the password", "revoked a token", "disabled"),
        *("created an account ({role})", "created a password link", "set a password through a link", "enabled"),
        *("changed the role to {role}", "admin", "member", "changed the email address"),
    ),
    "retrieval/table_query.py": (
        *(
            "The figures of {column} are too long to compute.",
            "Largest {column}: {cells}.",
            "Smallest {column}: {cells}.",
        ),
        *("Average of {column}: {figure}.", "Sum of {column}: {figure}.", "Rows per {column}: {groups}."),
        *("Average of {column} per {column2}: {groups}.", "Sum of {column} per {column2}: {groups}."),
        *("Most rows per {column}: {cells}, {figure}.", "Fewest rows per {column}: {cells}, {figure}."),
        "Largest sum of {column} per {column2}: {cells}, {figure}.",
        "Smallest sum of {column} per {column2}: {cells}, {figure}.",
        "Largest average of {column} per {column2}: {cells}, {figure}.",
        "Smallest average of {column} per {column2}: {cells}, {figure}.",
        *("{n} rows.", "{n} items.", "{n} of {n1} rows, where {conditions}.", "{n} of {n1} items, where {conditions}."),
        "Of these, {n} have a figure.",
        *("is", "is not", "contains", "does not contain", "and", "or", "empty"),
    ),
    "retrieval/quotes.py": (
        "{n} of {n1} rows, found by their words. Nothing was computed.",
        *("The first {n} are shown.", "Several tables fit this question ({parts}), so nothing was computed."),
    ),
    "runtime/mail.py": (
        *("it rejected smtp_user or smtp_password", "it offers no STARTTLS, or no sign-in", "it refused the message"),
        *("its certificate is not valid", "it cannot be reached", "it did not answer in time", "smtp_from is not set"),
    ),
    "accounts/single_sign_on.py": ("linked an account of {label}", "unlinked an account"),
    "web/sharing.py": ("created link {n}", "created link {n} for {name}", "revoked link {n}"),
    "web/api/libraries.py": ("created a library", "deleted a library", "changed a library ({fields})"),
    "retrieval/indexes/chroma.py": (
        "The vector index is being built{how_much}. Until it is ready, each search scans all vectors.",
    ),
    "llm/failures.py": (
        *("The local model", "The model at {address}"),
        *("it accepts {n} tokens", "it does not say how many tokens it accepts"),
    ),
}
SENTENCE = re.compile(r"[A-Z“\"{].* .*[.:?!…]", re.DOTALL)
# Two adjacent placeholders, which can't be told apart, and literal braces.
VAGUE = re.compile(r"\}\{|\{(?!\w+\})|(?<!\w)\}")
# With fewer letters of its own, it could match anything.
MIN_LETTERS = 6
# A longer named text is the common end of many sentences.
MAX_CONSTANT_CHARS = 100
LOUD = re.compile(r"log(?:ger|ging)?")


def sentences() -> Iterator[tuple[Path, str]]:
    """Yield the sentences and their parts, each with its file."""
    yield from ((PACKAGE / name, phrase) for name, phrases in PHRASES.items() for phrase in phrases)
    yield from every_sentence(_speaks_to_people)


def every_sentence(is_read: Callable[[Path], bool] = lambda _path: True) -> Iterator[tuple[Path, str]]:
    """Yield the sentences of the selected files, whoever they are for, each with its file."""
    for path in filter(is_read, sorted(PACKAGE.rglob("*.py"))):
        yield from ((path, text) for text in _spoken(ast.parse(path.read_text())))


def _speaks_to_people(path: Path) -> bool:
    name = path.relative_to(PACKAGE).with_suffix("").as_posix()
    return _is_in(name, SPEAKING) and not _is_in(name, SILENT)


def _is_in(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(f"{place}/") for place in places)


def _spoken(tree: ast.AST) -> Iterator[str]:
    for node in _texts(tree):
        for text in readings(node):
            if (
                SENTENCE.fullmatch(text)
                and not VAGUE.search(text)
                and _says_enough(text)
                and text not in NOT_FOR_PEOPLE
            ):
                yield text


def _says_enough(text: str) -> bool:
    return len(re.findall("[A-Za-z]", re.sub(r"\{\w+\}", "", text))) >= MIN_LETTERS


def _texts(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the outermost texts below a node, without docstrings and log messages."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.Call) and _is_log(child.func):
            continue
        if isinstance(child, ast.JoinedStr | ast.BinOp) or (
            isinstance(child, ast.Constant) and isinstance(child.value, str)
        ):
            yield child
        else:
            yield from _texts(child)


def _is_log(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and bool(LOUD.fullmatch(function.value.id))
    )


def readings(node: ast.expr) -> list[str]:
    """Return every variant of a text, with placeholders for values."""
    made = []
    for pieces in itertools.product(*_pieces(node)):
        seen: dict[str, int] = {}
        text = ""
        for piece in pieces:
            if isinstance(piece, str):
                text += piece
            else:
                seen[piece.name] = seen.get(piece.name, 0) + 1
                text += f"{{{piece.name}{seen[piece.name] if seen[piece.name] > 1 else ''}}}"
        made.append(text)
    return made


class Place:
    """A placeholder of a sentence, named after its value."""

    def __init__(self, name: str) -> None:
        self.name = name


def _pieces(node: ast.expr) -> list[list[str | Place]]:
    """Return the pieces of a text, each with its variants."""
    if isinstance(node, ast.Constant):
        return [[str(node.value).replace("{}", "{value}")]]
    if isinstance(node, ast.JoinedStr):
        return [piece for value in node.values for piece in _pieces(value)]
    if isinstance(node, ast.FormattedValue):
        return _pieces(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _pieces(node.left) + _pieces(node.right)
    if isinstance(node, ast.IfExp):
        ways = readings_with_places(node.body) + readings_with_places(node.orelse)
        return [ways]
    if isinstance(node, ast.Name) and node.id.isupper() and isinstance(constants().get(node.id), str):
        return [[constants()[node.id].replace("{}", "{value}")]]
    return [[Place(_name_of(node))]]


def readings_with_places(node: ast.expr) -> list[str | Place]:
    """Return the variants of a part of a text; a mere value is a placeholder."""
    pieces = _pieces(node)
    return list(pieces[0]) if len(pieces) == 1 else list(readings(node))


def _name_of(node: ast.expr) -> str:
    """Return a value's name: of what is counted, joined or formatted, not of the function."""
    if isinstance(node, ast.Call):
        method = node.func.value if isinstance(node.func, ast.Attribute) else node
        return _name_of(node.args[0] if node.args else method) if node.args or method is not node else "value"
    if isinstance(node, ast.Attribute):
        return node.attr.lower().strip("_")
    if isinstance(node, ast.Name):
        return node.id.lower().strip("_")
    inner = next((child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)), None)
    return _name_of(inner) if inner is not None else "value"


@cache
def constants() -> dict[str, str]:
    """Return named texts that exactly one module defines."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, set()).add(node.value.value)
    alone = {name: texts.pop() for name, texts in found.items() if len(texts) == 1}
    return {name: text for name, text in alone.items() if len(text) <= MAX_CONSTANT_CHARS}
