"""Let the built-in model rewrite follow-up questions of mtrag, and search with what it wrote."""

from __future__ import annotations

import json
import urllib.request

from bench.retrieval import sets
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.measures import mean, recall_at_5
from bench.retrieval.sets import Asked
from bench.retrieval.shelf import names_of, shelf_of
from rag_assistant.llm.builtin import BuiltinModel
from rag_assistant.llm.endpoint import Endpoint

QUESTIONS = 40
ANSWER_CHARACTERS = 300
INSTRUCTION = (
    "Rewrite the last question so that it can be understood without the conversation. Write only the question."
)


def main() -> None:
    """Print R@5 of the last turn, of the model's rewrite, of ours and of a person's rewrite."""
    collection = sets.mtrag()
    some = [asked for asked in collection.questions if asked.exchanges][:QUESTIONS]
    model = BuiltinModel()
    try:
        endpoint = model.endpoint()
        rewrites = {asked.id: rewrite(endpoint, asked) for asked in some}
    finally:
        model.child.close()
    with shelf_of(collection, CachedMiniLM(1)) as shelf:
        ways = {
            "last turn": {asked.id: shelf.by_both(asked.text) for asked in some},
            "the built-in model's rewrite": {asked.id: shelf.by_both(rewrites[asked.id]) for asked in some},
            "ours": {asked.id: shelf.by_both(shelf.retriever.follow_up(asked.text, asked.exchanges)) for asked in some},
            "a person's rewrite": {asked.id: shelf.by_both(asked.rewrite) for asked in some},
        }
    for way, found in ways.items():
        print(f"{way}: {mean([recall_at_5(names_of(found[asked.id]), asked.relevant) for asked in some]):.3f}")


def rewrite(endpoint: Endpoint, asked: Asked) -> str:
    """Return what the model makes of a question, from the last exchange."""
    question, answer = asked.exchanges[-1]
    talk = f"Question: {question}\nAnswer: {answer[:ANSWER_CHARACTERS]}\nLast question: {asked.text}"
    body = {
        "model": endpoint.model,
        "messages": [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": talk}],
        "max_tokens": 40,
        "temperature": 0,
    }
    request = urllib.request.Request(
        f"{endpoint.base_url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {endpoint.api_key}"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer_of_model:
        text: str = json.load(answer_of_model)["choices"][0]["message"]["content"]
    return text.strip() or asked.text


if __name__ == "__main__":
    main()
