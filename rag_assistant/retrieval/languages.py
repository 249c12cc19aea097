"""The language of words, by its most common words (languages.json), which are in nearly every sentence. Pure."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pkgutil import get_data

from msgspec.json import decode as from_json

# Fewer common words prove nothing: "in" and "die" exist in several languages.
MIN_COMMON_WORDS = 2

WORDS = from_json(get_data(str(__package__), "languages.json") or b"")
# The Unicode ranges of scripts, by their starts; other scripts have no name here.
STARTS, NAMES = [int(start, 16) for start in WORDS["scripts"]], list(WORDS["scripts"].values())
# By script. The first one is assumed if nothing indicates another.
COMMON_WORDS: dict[str, dict[str, str]] = WORDS["common_words"]
# Words that ask how much, and what is measured so: "how high" says nothing about the subject. Both are left out
# if the second follows the first; the last ones ask by themselves.
ASKING_HOW, MEASURES, ASKING_ALONE = (
    frozenset(WORDS[kind].split()) for kind in ("asking_how", "measures", "asking_alone")
)
USUAL_LANGUAGE = {script: next(iter(languages)) for script, languages in COMMON_WORDS.items()}
SCRIPT_OF_LANGUAGE = {language: script for script, languages in COMMON_WORDS.items() for language in languages}

COMMON_WORDS_OF = {one: words.split() for some in COMMON_WORDS.values() for one, words in some.items()}
# In these a word may be part of another: Urlaub, Jahresurlaub.
COMPOUNDING = frozenset("german dutch swedish danish norwegian finnish".split())
_LANGUAGES_OF: dict[str, list[str]] = defaultdict(list)
for _languages in COMMON_WORDS.values():
    for _language, _words in _languages.items():
        for _word in _words.split():
            _LANGUAGES_OF[_word].append(_language)


def language_of(
    words: Iterable[str], among: Collection[str] = SCRIPT_OF_LANGUAGE, min_common: int = MIN_COMMON_WORDS
) -> str:
    """Return which language lower-case words are in, ``""`` if unclear. One counts once, and less if many have it."""
    scores: dict[str, float] = defaultdict(float)
    common: dict[str, int] = defaultdict(int)
    for word in _LANGUAGES_OF.keys() & words:
        languages = _LANGUAGES_OF[word]
        for language in languages:
            scores[language] += 1 / len(languages)
            common[language] += 1
    ranked = sorted(((score, one) for one, score in scores.items() if one in among), reverse=True)
    (best, language), (second, _) = [*ranked, (0.0, ""), (0.0, "")][:2]
    return language if best > second and common[language] >= min_common else ""


def without_asking(words: Sequence[str]) -> list[str]:
    """Return the words of a question without those that only ask, in any language, and its common words."""
    common = set(COMMON_WORDS_OF.get(language_of(words), ()))
    telling = [
        word
        for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False)
        if not (word in ASKING_HOW and after in MEASURES) and not (word in MEASURES and before in ASKING_HOW)
    ]
    return [word for word in telling if word not in ASKING_ALONE and word not in common]


def script_of(word: str) -> str:
    """Return the script of a word's first letter, ``""`` for one without a language in the table."""
    return "latin" if word.isascii() else NAMES[bisect_right(STARTS, ord(word[0])) - 1]
