"""Scripts and style sheets: cached forever by browsers, since any change gives all of them a new address.

The style sheets are combined into one file, and so are the scripts, per language with its texts. They are read once, at
the start, so that the content matches its version. A language's scripts are built on request, from the current catalog.
Pages and the API are never compressed: where secrets and a stranger's input share a response, its length would reveal
them (BREACH).
"""

import gzip
import json
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from posixpath import dirname, join, normpath

from flask import Flask, Response, abort, request, url_for

from rag_assistant.web.i18n.catalogs import catalog_path, script_texts
from rag_assistant.web.i18n.languages import ENGLISH, TRANSLATED
from rag_assistant.web.routing import PUBLIC

IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)
STATEMENT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundle(modules: Mapping[str, str], entry: str) -> str:
    """Return one script that does what ``entry`` does, and exports all modules by name.

    ``modules`` are texts by path. Raises KeyError for a missing module, ValueError for an unsupported statement and for
    a cycle.
    """
    ordered: dict[str, str] = {}

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"{name} imports itself by way of {', '.join(importers)}.")
        if name not in ordered:
            for _, imported in IMPORT.findall(modules[name]):
                add(resolve(name, imported), (*importers, name))
            ordered[name] = as_function(name, modules[name])

    add(entry, ())
    return "\n".join(["const modules = {};", *ordered.values(), "export { modules };", ""])


def resolve(importer: str, imported: str) -> str:
    """Return the path of a module that another one imports relative to itself."""
    return normpath(join(dirname(importer), imported))


def as_function(name: str, text: str) -> str:
    """Return a module as a function that is called once, and returns its exports."""
    exported = ", ".join(match[1] for match in EXPORT.findall(text))
    text = IMPORT.sub(lambda match: f'const {{{match[1]}}} = modules["{resolve(name, match[2])}"];', text)
    text = EXPORT.sub(r"\1 \2", text)
    if left := STATEMENT.search(text):
        raise ValueError(f"{name}: this cannot be bundled: {left[0]}")
    return f'modules["{name}"] = (() => {{\n{text}\nreturn {{ {exported} }};\n}})();'


KEPT_FOR_GOOD = "public, max-age=31536000, immutable"
# A page from before an update requests old files; what it gets instead must not be cached.
NOT_KEPT = "no-cache"
VERSION_LENGTH = 12
# The order is that of the cascade.
SHEETS = (
    "base frame sidebar transcript answers sources composer window receipt ratings documents document uploads grids "
    "settings account help".split()
)
ALL_SHEETS = "all.css"
ALL_SCRIPTS = "all.js"
ENTRY = "main.js"
# The module whose content depends on the language.
TEXTS = "lib/texts.js"
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def init_app(app: Flask) -> None:
    """Serve the static files under their version, and let templates refer to them."""
    folder = Path(app.static_folder or "")
    files, modules = read_files(folder), read_modules(folder)
    translated = {scripts_for(language.code): language for language in TRANSLATED}
    current = version_of(files | {name: catalog_path(spoken).read_bytes() for name, spoken in translated.items()})

    @cache
    def content_of(filename: str) -> bytes:
        return files[filename] if filename in files else scripts_in(translated[filename].code, modules)

    @cache
    def compressed(filename: str) -> bytes:
        return gzip.compress(content_of(filename), mtime=0)

    @app.get("/static/v-<version>/<path:filename>", policy=PUBLIC)
    def versioned_static(version: str, filename: str) -> Response:
        if filename not in files and filename not in translated:
            abort(404)
        takes_gzip = request.accept_encodings.quality("gzip") > 0
        content = compressed(filename) if takes_gzip else content_of(filename)
        response = Response(content, content_type=MEDIA_TYPES[Path(filename).suffix])
        response.vary.add("Accept-Encoding")
        if takes_gzip:
            response.content_encoding = "gzip"
        response.headers["Cache-Control"] = KEPT_FOR_GOOD if version == current else NOT_KEPT
        if version != current:
            response.add_etag()
            response.make_conditional(request)
        return response

    @app.template_global()
    def static_url(filename: str) -> str:
        return url_for("versioned_static", version=current, filename=filename)

    @app.template_global()
    def scripts_url(code: str) -> str:
        return static_url(scripts_for(code))


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the content served in English, by file name in the address."""
    pictures = {path.name: path.read_bytes() for path in sorted(folder.glob("*.svg"))}
    sheets = "".join((folder / f"{name}.css").read_text() for name in SHEETS)
    return pictures | {ALL_SHEETS: sheets.encode(), ALL_SCRIPTS: scripts_in(ENGLISH.code, read_modules(folder))}


def read_modules(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder / "js").as_posix(): path.read_text() for path in (folder / "js").rglob("*.js")}


def scripts_for(code: str) -> str:
    """Return the file name of a language's scripts."""
    return ALL_SCRIPTS if code == ENGLISH.code else f"all.{code}.js"


def scripts_in(code: str, modules: Mapping[str, str]) -> bytes:
    """Return all scripts as one, with the texts of a language."""
    texts = f"export const texts = {json.dumps(script_texts(code))};"
    return bundle({**modules, TEXTS: texts}, ENTRY).encode()


def version_of(files: Mapping[str, bytes]) -> str:
    """Return a hash of all files."""
    digest = sha256()
    for name, content in files.items():
        digest.update(name.encode() + b"\0" + sha256(content).digest())
    return digest.hexdigest()[:VERSION_LENGTH]
