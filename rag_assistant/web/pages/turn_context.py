"""What accompanies the turns on a page: notices about left-out turns, versions, corrections."""

from collections.abc import Sequence

from msgspec import Struct

from rag_assistant.history.words import shifts
from rag_assistant.records import Conversation, Correction, Turn
from rag_assistant.web.routing import services


class Around(Struct, frozen=True):
    """``shifts`` are the numbers of the turns with a notice about left-out turns.

    ``versions`` are the conversations with versions of a question, by turn number, if there are several.
    ``offers_quotes``: after a failure, quotes are offered; ``has_model``: beside an answer, too. ``corrections`` are
    later changes to what the answers rest on, by turn id. ``empty_library``: the reason why nothing was searched.
    """

    shifts: frozenset[int]
    versions: dict[int, list[int]]
    offers_quotes: bool
    has_model: bool
    corrections: dict[int, list[Correction]]
    empty_library: bool = False

    def marks(self, turn: Turn) -> str:
        """Return a text that changes whenever a turn is shown differently, apart from its answer."""
        marks: list[object] = [turn.id, turn.status, turn.version, turn.versions]
        marks += [name for name in ("pinned", "excluded", "purged", "waiting") if getattr(turn, name)]
        if turn.rating:
            marks.append(turn.rating.rated_at.timestamp())
        if turn.number in self.shifts:
            marks.append("told")
        beside = len(self.versions.get(turn.number, ())), len(self.corrections.get(turn.id, ()))
        return " ".join(map(str, (*marks, *beside)))


def around(conversation: Conversation | None, turns: Sequence[Turn], before: Turn | None) -> Around:
    """Return what accompanies some turns of a conversation; ``before`` is the turn before them."""
    versions: dict[int, list[int]] = {}
    if conversation is not None:
        branches = services().branches
        branched = branches.turns_branched_at(conversation.id) | {(conversation.branched_from or {}).get("turn", 0)}
        numbers = branched & {turn.number for turn in turns}
        versions = {number: branches.versions_of(conversation.id, number) for number in numbers}
    has_model = services().models.connected
    offers_quotes = has_model and services().settings.current.when_model_fails == "offer"
    empty = is_library_empty(turns)
    return Around(shifts(turns, before), versions, offers_quotes, has_model, services().corrections.of(turns), empty)


def is_library_empty(turns: Sequence[Turn]) -> bool:
    """Return whether there are no documents but the guide, if that matters to some of the turns."""
    return any(turn.support == "not_searched" for turn in turns) and not services().documents.page(1, guide=False)


def page_of_turns(conversation_id: int, limit: int, before: int | None = None) -> tuple[list[Turn], Turn | None]:
    """Return up to ``limit`` turns, oldest first, and the turn before them."""
    page = services().turns.page(conversation_id, limit + 1, before)
    return (page[1:], page[0]) if len(page) > limit else (page, None)
