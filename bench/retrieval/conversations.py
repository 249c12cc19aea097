"""The tables of questions in a conversation: the learned weights, and those in use."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from bench.retrieval.leaning import (
    GROUPINGS,
    Row,
    fold_of,
    learn,
    left_out,
    rows_of,
    set_left_out,
    shares_left_out,
    table_of,
    without_context,
)
from bench.retrieval.measures import mean, standard_error
from bench.retrieval.progress import say
from bench.retrieval.scores import Measure, measures_of, values
from bench.retrieval.sets import Asked, Collection, Exchange
from bench.retrieval.shelf import CollectionShelf
from rag_assistant.retrieval.follow_up import MIN_SHARE, SearchQuery
from rag_assistant.retrieval.search import SURELY_ALONE

Queries = dict[str, SearchQuery]
Values = dict[str, dict[str, float]]

MAX_ALONE = 400


def follow_ups(
    collection: Collection, shelf: CollectionShelf, by_fold: Sequence[Queries], by_set: Queries
) -> list[str]:
    """Return the rows of a set of conversations: last turn, ours with what was left out, a human rewrite.

    Only questions with a history count. Ours by folds left out is the mean over all groupings, with the standard error
    of the gain, and for each grouping the fold with the smallest gain.
    """
    measures, questions = measures_of(collection), [asked for asked in collection.questions if asked.exchanges]
    before = values(questions, lambda asked, limit: shelf.by_both(asked.text, limit), measures)
    set_left_out = _values_of(questions, shelf, by_set, before, measures)
    ours = [_values_of(questions, shelf, queries, before, measures) for queries in by_fold]
    rewritten = [asked for asked in questions if asked.rewrite]
    by_rewrite = values(rewritten, lambda asked, limit: shelf.by_both(asked.rewrite, limit), measures)
    rows = []
    for measure in measures:
        gains = [[one[asked.id][measure] - before[asked.id][measure] for asked in questions] for one in ours]
        alone, by_others = (mean([one[measure] for one in found.values()]) for found in (before, set_left_out))
        error = standard_error(
            [mean(some) for some in zip(*gains, strict=True)], [one.conversation for one in questions]
        )
        worst = " ".join(f"{_worst_fold(questions, some, n):+.3f}" for n, some in enumerate(gains))
        best = f"{mean([one[measure] for one in by_rewrite.values()]):.3f}" if rewritten else ""
        gain = mean([mean(some) for some in gains])
        cells = [f"{alone:.3f}", f"{alone + gain:.3f}", f"{gain:+.3f} ± {error:.3f}", worst, f"{by_others:.3f}", best]
        rows.append(f"| {collection.name} ({len(questions):,}) | {measure} | {' | '.join(cells)} |")
    return rows


def _values_of(
    questions: Sequence[Asked],
    shelf: CollectionShelf,
    queries: Queries,
    alone: Values,
    measures: dict[str, Measure],
) -> Values:
    """Return each measure for each question as it is searched; ``alone`` has those of the questions alone."""
    leaning = [asked for asked in questions if queries[asked.id].is_follow_up]
    return alone | values(leaning, lambda asked, limit: shelf.by_both(queries[asked.id], limit), measures)


def _worst_fold(questions: Sequence[Asked], gains: Sequence[float], grouping: int) -> float:
    """Return the smallest gain of a fold."""
    of_fold: dict[int, list[float]] = {}
    for asked, gain in zip(questions, gains, strict=True):
        of_fold.setdefault(fold_of(asked.conversation, grouping), []).append(gain)
    return min(mean(one) for one in of_fold.values())


def behind_another(collection: Collection, shelf: CollectionShelf, by_fold: Sequence[Queries]) -> list[str]:
    """Return the rows of standalone questions after an unrelated conversation.

    The mean over all groupings, with the standard error of the difference, and for each grouping the difference.
    """
    measures, questions = measures_of(collection), collection.questions
    alone = values(questions, lambda asked, limit: shelf.by_both(asked.text, limit), measures)
    behind = [_values_of(questions, shelf, queries, alone, measures) for queries in by_fold]
    leaning = mean([queries[asked.id].is_follow_up for queries in by_fold for asked in questions])
    rows = []
    for measure in measures:
        gains = [[one[asked.id][measure] - alone[asked.id][measure] for asked in questions] for one in behind]
        about = [min(asked.relevant) for asked in questions]
        error = standard_error([mean(some) for some in zip(*gains, strict=True)], about)
        before, gain = mean([one[measure] for one in alone.values()]), mean([mean(some) for some in gains])
        each = " ".join(f"{mean(some):+.3f}" for some in gains)
        cells = [f"{before:.3f}", f"{before + gain:.3f}", f"{gain:+.3f} ± {error:.3f}", each, f"{leaning:.1%}"]
        rows.append(f"| {collection.name} ({len(questions):,}) | {measure} | {' | '.join(cells)} |")
    return rows


def behind_conversations(collection: Collection, conversations: Sequence[tuple[Exchange, ...]]) -> Collection:
    """Return a collection whose questions follow a random, unrelated conversation."""
    chance = random.Random(1)
    some = chance.sample(collection.questions, min(MAX_ALONE, len(collection.questions)))
    return replace(collection, questions=[replace(one, exchanges=chance.choice(conversations)) for one in some])


def in_force(collection: Collection, shelf: CollectionShelf) -> list[str]:
    """Return the rows of the product with its own weights, which the set may have been used to learn."""
    measures, questions = measures_of(collection), [asked for asked in collection.questions if asked.exchanges]
    queries = {asked.id: shelf.retriever.follow_up(asked.text, asked.exchanges) for asked in questions}
    before = values(questions, lambda asked, limit: shelf.by_both(asked.text, limit), measures)
    after = _values_of(questions, shelf, queries, before, measures)
    leaning = mean([query.is_follow_up for query in queries.values()])
    rows = []
    for measure in measures:
        alone, ours = (mean([one[measure] for one in found.values()]) for found in (before, after))
        cells = f"{alone:.3f} | {ours:.3f} | {ours - alone:+.3f} | {leaning:.1%}"
        rows.append(f"| {collection.name} ({len(questions):,}) | {measure} | {cells} |")
    return rows


def spared(rows: Sequence[Row]) -> list[str]:
    """Return the rows of how many questions are decided without embedding their context, and what that changes.

    The mean over all groupings, each question with what was learned from the other folds.
    """
    ways = [shares_left_out(without_context(rows), grouping) for grouping in range(GROUPINGS)]
    lines = []
    for name in dict.fromkeys(row.collection for row in rows):
        of_set = [row for row in rows if row.collection == name]
        told = [(way.get(row.id, 1.0) < SURELY_ALONE, row.told) for way in ways for row in of_set]
        leaning = [mean([is_spared and share >= limit for is_spared, share in told]) for limit in (0.3, 0.4, MIN_SHARE)]
        shares = [mean([is_spared for is_spared, _ in told]), *leaning]
        lines.append(f"| {name} ({len(of_set):,}) | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    return lines


def print_what_is_learnt(
    talks: Sequence[Collection], behind: Sequence[Collection], shelves: dict[str, CollectionShelf]
) -> dict[str, Queries]:
    """Learn the weight of the context, and print the results of the folds and sets that were left out.

    Returns for each set the search queries of its questions, learned from the other folds of the first grouping.
    """
    rows = []
    for collection in [*talks, *behind]:
        say(f"Trying shares of the context on {collection.name} ...")
        rows += rows_of(collection.name, collection.questions, shelves[collection.name], alone=collection in behind)
    say("Learning ...")
    ways = [left_out(rows, grouping) for grouping in range(GROUPINGS)]
    others = set_left_out(rows)
    by_fold: dict[str, list[Queries]] = {}
    by_set: dict[str, Queries] = {}
    for one in [*talks, *behind]:
        told = partial(_queries, one, shelves[one.name])
        by_fold[one.name] = [told(queries) for queries in ways]
        by_set[one.name] = told(others)
    print("\n| follow-ups of | measure | last turn | held-out fold | gain | worst folds | held-out set | rewrite |")
    print("|---|---|---|---|---|---|---|---|")
    for collection in talks:
        name = collection.name
        print(*follow_ups(collection, shelves[name], by_fold[name], by_set[name]), sep="\n", flush=True)
    print("\n| set | measure | alone | after other exchanges | difference | for each grouping | treated as follow-up |")
    print("|---|---|---|---|---|---|---|")
    for collection in behind:
        print(*behind_another(collection, shelves[collection.name], by_fold[collection.name]), sep="\n", flush=True)
    print("\nLearnt from all of them, for rag_assistant/retrieval/follow_up.py:\n")
    print(table_of("weights", learn(rows)))
    print(table_of("weights_by_questions", learn(without_context(rows))))
    print("\n| set | context not embedded | a dependence of 0.3 | 0.4 | 0.5 |\n|---|---|---|---|---|")
    print(*spared(rows), sep="\n", flush=True)
    return {name: ways[0] for name, ways in by_fold.items()}


def _queries(collection: Collection, shelf: CollectionShelf, learnt: Queries) -> Queries:
    """Return each question's search query; if nothing was learned, the product's."""
    return {
        asked.id: learnt.get(f"{collection.name} {asked.id}") or shelf.retriever.follow_up(asked.text, asked.exchanges)
        for asked in collection.questions
    }
