"""Which part of the past the model sees: messages in, messages out, in the OpenAI chat format.

Pure: importable without Flask, a database or a network, so that anyone can use the window without the rest.
"""

from rag_assistant.history.budget import count_message, estimate_tokens
from rag_assistant.history.fitting import FittedHistory, HistoryPolicy, HistoryReceipt, LeftOut, fit_history, notice_for
from rag_assistant.history.iterations import KeptIterations, keep_last_iterations
from rag_assistant.history.repair import repair_messages
from rag_assistant.history.turns import split_turns
from rag_assistant.history.window import check_history_limit, trim_history

__all__ = [
    "FittedHistory",
    "HistoryPolicy",
    "HistoryReceipt",
    "KeptIterations",
    "LeftOut",
    "check_history_limit",
    "count_message",
    "estimate_tokens",
    "fit_history",
    "keep_last_iterations",
    "notice_for",
    "repair_messages",
    "split_turns",
    "trim_history",
]
