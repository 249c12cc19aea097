"""Search the documents for a question: as it stands, with the words of what it leans on, or as a model puts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_assistant.answering.progress import Collaborators, Progress
from rag_assistant.answering.query_rewrite import rewritten
from rag_assistant.document_records import Passage
from rag_assistant.presenters.turns import Exchange, exchanges_of
from rag_assistant.prompts import clearly_relevant, number_sources

# A question leans on what was said just before it, if on anything.
EXCHANGES = 3


def search_documents(progress: Progress, collaborators: Collaborators, may_ask_model: bool) -> None:
    """Find the passages for the question of a turn; they become its sources, and ``search`` says how they were found.

    ``may_ask_model`` is false where the search is only tried out.
    """
    progress.say("searching", "Searching your documents.")
    turn, retriever = progress.turn, collaborators.retriever
    exchanges = _exchanges(progress, collaborators)
    asked = retriever.follow_up(turn.question, exchanges, turn.scope)
    how = {"query": turn.question, "by": "words" if asked.leans else "question", "leans_on": asked.context or None}
    most, budget = progress.choices.passages, progress.settings.passages_token_budget
    found: list[Passage] = []
    if asked.leans and may_ask_model and progress.settings.follow_ups == "model" and not progress.endpoint.built_in:
        put = rewritten(progress, collaborators, exchanges)
        found = retriever.search(put, most, turn.scope, budget) if put is not None else []
        how = {"query": put, "by": "model", "leans_on": None} if found else how
    # What a model made of it may find nothing where the words do.
    found = found or retriever.search(asked, most, turn.scope, budget)
    if not found and collaborators.documents.find("", turn.scope, 1)[1] == 0:
        return  # There is nothing that could have been found.
    passages = clearly_relevant(found) if progress.endpoint.built_in else found
    progress.turn = replace(turn, sources=number_sources(passages), search=how | {"found": len(passages)})


def _exchanges(progress: Progress, collaborators: Collaborators) -> Sequence[Exchange]:
    """Return the newest exchanges that the model sees: what it does not see, nothing leans on."""
    if progress.settings.follow_ups == "off" or progress.conversation.visible_turns == 0:
        return ()
    return exchanges_of(progress.read_past(collaborators.history).messages)[-EXCHANGES:]
