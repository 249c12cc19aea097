"""The sentences of some passages that are nearest to a question: what a very small model can still make use of.

Given whole passages, the built-in model answered 15 of 24 questions about the guide with the right fact; given their
five nearest sentences, 23 (docs/benchmarks.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from rag_assistant.retrieval.embeddings.minilm import Vectors

# A line break, or a blank behind the end of a sentence; Chinese and Japanese put no blank there.
BREAK = re.compile("\\n+|(?<=[.!?])\\s+|(?<=[\u3002\uff01\uff1f])")
MAX_SENTENCES = 60


def nearest_sentences(
    question: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Vectors], limit: int
) -> list[str]:
    """Return up to ``limit`` sentences of the texts, those nearest to the question, in the order of the texts.

    Headings are left away: they say what a text is about, not what it says.
    """
    sentences = [sentence for text in texts for sentence in sentences_of(text)][:MAX_SENTENCES]
    if len(sentences) <= limit:
        return sentences
    question_vector, *vectors = embed([question, *sentences])
    nearest = np.argsort([-float(vector @ question_vector) for vector in vectors], kind="stable")[:limit]
    return [sentences[index] for index in sorted(nearest)]


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a Markdown text, without its headings."""
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("#")]
    return [sentence.strip() for sentence in BREAK.split("\n".join(lines)) if sentence.strip()]
