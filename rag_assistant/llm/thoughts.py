"""Separate a model's reasoning from its answer if both come as one text, in tags at its start. Pure."""

import re

# As in chat templates; such tags later in an answer are part of it.
TAGS = {
    "<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]", "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
    "<|channel>thought": "<channel|>",
}  # fmt: skip
# What a template writes in front of an answer, and behind it.
STARTS = ("<|start|>assistant", "<|channel|>final<|message|>")
END = re.compile(r"<\|(?:im_end|end|return|call|eot_id|eom_id|endoftext|end_of_text)\|>\s{0,20}")
MAY_BEGIN_END = re.compile(r"<(?:\|[a-z_]{0,12}\|?)?\Z")
MAX_END_CHARS, MAX_ENDS = 40, 8
CLOSING = "</think>"
# Models whose template opens the tag in the prompt, so that they only write its end.
OPENED_IN_PROMPT = re.compile(r"\b(?:r1|qwq|reasoner)\b|thinking", re.I)


class ThoughtFilter:
    """Takes the text of an answer in pieces, and returns those that aren't reasoning.

    If it ``is_opened``, reasoning comes first, up to the closing tag; if that never comes, there was none.
    ``is_closed_only`` is set once a closing tag came without an opening one.
    """

    def __init__(self, is_opened: bool = False) -> None:
        self.is_opened = is_opened
        self.is_closed_only = False
        self.chars = 0
        self._closing: str | None = None
        self._held, self._recent, self._end = "", "", ""
        self._is_answer = self._has_parted = False

    def feed(self, text: str) -> str:
        """Return what is known to be part of the answer; possible reasoning or tags are held back."""
        if self._is_answer:
            self._recent = (self._recent + text)[-len(text) - len(CLOSING) :]
            self.is_closed_only = self.is_closed_only or CLOSING in self._recent
            return self._without_end(text)
        self._held += text
        while True:
            begun = self._held.lstrip()
            if self._closing is None and (tag := next(filter(begun.startswith, TAGS), None)):
                self._closing, self._held, self.is_opened = TAGS[tag], begun[len(tag) :], False
            elif self._closing is None and (start := next(filter(begun.startswith, STARTS), None)):
                self._held = begun[len(start) :]
                continue
            closing = self._closing or (CLOSING if self.is_opened else None)
            if closing is None:
                return "" if any(tag.startswith(begun) for tag in (*TAGS, *STARTS)) else self._begin_answer()
            end = self._held.find(closing, -len(text) - len(closing))
            if end < 0:
                if self._closing is not None:
                    self.chars += max(0, len(self._held) - len(closing))
                    self._held = self._held[-len(closing) :]
                return ""
            self.chars += end
            self.is_closed_only = self.is_closed_only or self.is_opened
            self._closing, self.is_opened, self._held = None, False, self._held[end + len(closing) :]
            self._has_parted = True

    def rest(self) -> str:
        """Return held text that turned out to be part of the answer, without the tokens that end it."""
        shown = "" if self._is_answer else self._begin_answer()
        return shown + (self._end if END.sub("", self._end) else "")

    def _begin_answer(self) -> str:
        """Return held text that turned out to be part of the answer; all that follows is, too."""
        held = "" if self._closing is not None else self._held
        self._held, self._is_answer = "", True
        return self.feed(held.lstrip() if self._has_parted else held)

    def _without_end(self, text: str) -> str:
        """Return a text without what may be tokens that end the answer, which are held back."""
        text = self._end + text
        end = len(text)
        if "<" in text[-MAX_END_CHARS:] and (begun := MAY_BEGIN_END.search(text, max(0, end - MAX_END_CHARS))):
            end = begun.start()
        for _ in range(MAX_ENDS):
            start = text.rfind("<", max(0, end - MAX_END_CHARS), end)
            if start < 0 or not END.fullmatch(text, start, end):
                break
            end = start
        self._end = text[end:]
        return text[:end]
