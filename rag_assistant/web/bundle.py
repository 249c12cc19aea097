"""Scripts as one: each module in a function of its own, those that it imports before it.

A browser asks for one file instead of sixty, which is most of the work of a first view for it and for us. Our modules
import names and export declarations, import in no circle and export nothing that is assigned anew; that much
of ECMAScript's modules is read here, and everything else is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import dirname, join, normpath

IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)
STATEMENT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundle(modules: Mapping[str, str], entry: str) -> str:
    """Return one script that does what ``entry`` does, and exports all modules by their names.

    ``modules`` are texts by their paths. Raises KeyError for a module that is not there, ValueError for a statement
    that is not understood and for a circle.
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
    """Return the path of a module that another one names relative to itself."""
    return normpath(join(dirname(importer), imported))


def as_function(name: str, text: str) -> str:
    """Return a module as a function that is called once, and whose result is what it exports."""
    exported = ", ".join(match[1] for match in EXPORT.findall(text))
    text = IMPORT.sub(lambda found: f'const {{{found[1]}}} = modules["{resolve(name, found[2])}"];', text)
    text = EXPORT.sub(r"\1 \2", text)
    if left := STATEMENT.search(text):
        raise ValueError(f"{name}: this cannot be bundled: {left[0]}")
    return f'modules["{name}"] = (() => {{\n{text}\nreturn {{ {exported} }};\n}})();'
