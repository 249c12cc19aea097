"""Tell text from what a wrong encoding, or a font that doesn't name its letters, makes of it. Pure."""

import re
import unicodedata

WORD = re.compile(r"[^\W\d_]{4,}")
# In languages in Latin letters, these are 50 to 70 % of the letters of prose; in exchanged ones about 30 %.
COMMON, MIN_COMMON = frozenset("etaoinsr"), 0.4
ALPHABETS = frozenset("LATIN CYRILLIC GREEK ARABIC HEBREW THAI ARMENIAN GEORGIAN DEVANAGARI".split())
MAX_MIXED = 0.2
# What is judged, and what is enough for a judgement.
MAX_CHARS, MIN_LETTERS, MIN_WORDS = 20_000, 200, 5
# Symbols and numbers beyond ASCII, and control characters, are rare in any text.
MAX_SYMBOLS, MAX_CONTROL = 0.1, 0.02


def is_no_language(text: str) -> bool:
    """Return whether a text's letters are distributed as in no language, or its words mix alphabets."""
    words = WORD.findall(text[:MAX_CHARS])
    letters = [one for one in unicodedata.normalize("NFD", "".join(words).lower()) if "a" <= one <= "z"]
    if len(letters) >= MIN_LETTERS and sum(one in COMMON for one in letters) < MIN_COMMON * len(letters):
        return True
    mixed = sum(len({unicodedata.name(one, "").split(" ")[0] for one in word} & ALPHABETS) > 1 for word in words)
    return len(words) >= MIN_WORDS and mixed > MAX_MIXED * len(words)


def is_misread(text: str) -> bool:
    """Return whether a text can't be what was meant: it is no language, or has symbols in place of letters."""
    start = text[:MAX_CHARS]
    symbols = sum(unicodedata.category(one)[0] in "SN" for one in start if one > "\x7f")
    controls = sum(one < " " and not one.isspace() for one in start)
    return symbols > MAX_SYMBOLS * len(start) or controls > MAX_CONTROL * len(start) or is_no_language(text)
