"""Which part of the past the model sees: messages in, messages out, in the OpenAI chat format.

Pure: importable without Flask, a database or a network, so that anyone can use the window without the rest.
"""

from rag_assistant.history.budget import TOKENS_PER_ATTACHMENT, CountTokens, count_message, estimate_tokens
from rag_assistant.history.fitting import (
    OVERFLOW_CHOICES,
    FittedHistory,
    HistoryPolicy,
    HistoryStrategy,
    HistorySummary,
    OverflowChoice,
    checked_summary,
    fit_history,
)
from rag_assistant.history.receipt import UNANSWERED, LeftOut, LeftOutReason, hidden_until, left_out, notice_for
from rag_assistant.history.turns import length_of_system_block, repair_messages, split_turns
from rag_assistant.history.window import (
    TURNS_WORTH_READING,
    analyse_history,
    keep_last_iterations,
    trim_history,
    turns_in_window,
)
