"""Write the documentation as a site of plain files: ``python -m deploy.help_site FOLDER``.

The same pages that the program serves at /help; every address in them is relative.
"""

import posixpath
import shutil
import sys
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from rag_assistant.settings.package_files import FILES
from rag_assistant.web.assets import ALL_SHEETS, read_files
from rag_assistant.web.pages.handbook import FRONT, Handbook

ICON = "icon.svg"


def write_site(folder: Path) -> list[str]:
    """Write the site into a folder and return the names of its files."""
    handbook, static = Handbook(FILES), read_files(FILES / "static")
    template = Environment(loader=FileSystemLoader(FILES / "templates"), autoescape=True).get_template("help.html")
    for name in (ALL_SHEETS, ICON):
        _place(folder, name).write_bytes(static[name])
    for name in handbook.names:
        place = _place(folder, file_of(name))
        if not name.endswith(".md"):
            shutil.copyfile(handbook.root / name, place)
            continue
        here = partial(_from, file_of(name))
        html = template.render(
            page=handbook.page(name, lambda other, here=here: here(file_of(other))),  # type: ignore[misc]
            front=here(file_of(FRONT)) if name != FRONT else None,
            sheet=here(ALL_SHEETS),
            favicon=here(ICON),
            theme="system",
        )
        place.write_text(html, encoding="utf-8")
    return sorted(file_of(name) for name in handbook.names)


def file_of(name: str) -> str:
    """Return the file that a page or a picture becomes."""
    if name == FRONT:
        return "index.html"
    return name.removesuffix(".md") + ".html" if name.endswith(".md") else name


def _place(folder: Path, name: str) -> Path:
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _from(here: str, there: str) -> str:
    return posixpath.relpath(there, posixpath.dirname(here) or ".")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    print(f"{len(write_site(target))} files are in {target}; begin with {target / file_of(FRONT)}.")
