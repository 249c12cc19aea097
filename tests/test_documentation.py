"""What is written for people agrees with the code.

``python -m tests.test_documentation`` writes .env.example, settings.schema.json, the tables of docs/settings.md and
docs/documents.md and the list of errors in docs/api.md anew.
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from flask import Flask
from pydantic import TypeAdapter

from rag_assistant import cli
from rag_assistant.records import Turn, errors
from rag_assistant.records.errors import AssistantError
from rag_assistant.records.views import turn_data
from rag_assistant.settings.live import open_settings
from rag_assistant.settings.schema import DOTTED, RARELY_CHANGED, SECRET, Settings, is_live
from rag_assistant.web import create_app
from rag_assistant.web.request_bodies import QueryBody
from tests.extraction.test_features import features_table
from tests.testkit.settings_schema import settings_schema

PROJECT = Path(__file__).resolve().parents[1]
DOCS = PROJECT / "docs"
README = PROJECT / "README.md"
API = DOCS / "api.md"
SETTINGS = DOCS / "settings.md"
ENV_EXAMPLE = PROJECT / ".env.example"
PAGES = [*sorted(PROJECT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
SOURCES = [
    path.as_posix()
    for folder in ("rag_assistant", "static", "templates", "tests", "bench", "migrations")
    for path in (PROJECT / folder).rglob("*.*")
] + [path.as_posix() for path in PROJECT.glob("*.py")]
MAX_README_WORDS = 900
# Without what draws the tables.
MAX_DOCS_WORDS = 28_000
# CONTRIBUTING.md leads to it.
MADE_BY_THE_READER = "rag_assistant/extraction/formats/subtitles.py"
FOR_PROGRAMS = ("/metrics", "/mcp", "/llms.txt")
A_TURN = Turn(
    id=1,
    conversation_id=1,
    number=1,
    status="completed",
    question="Why?",
    answer="Because.",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)
SCHEMA = PROJECT / "settings.schema.json"
# What the page explains once, and what is shorter in a table.
IN_A_TABLE = {
    r"a URL starting with http:// or https://, without credentials or query string": "a web address",
    r"a whole number, (\d+) or more": r"≥ \1",
    r"a whole number from (\d+) to (\d+)": r"\1-\2",
    r"a number of seconds, more than 0": "seconds, > 0",
    r"a number of seconds, (\d+) or more": r"seconds, ≥ \1",
    r",? or null for no limit": ", null: no limit",
    r",? or null": ", null",
    r"^one of ": "",
    "true or false": "true, false",
}
TABLES = {
    is_rare: re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
    for is_rare, name in ((False, "settings"), (True, "advanced settings"))
}


def settings_table(is_rare: bool) -> str:
    """Return the table of what people set, or of what hardly anyone changes, in Markdown, as the page says above it."""
    rows = ["| setting | default | allowed | what it does |", "|---|---|---|---|"]
    for name, field in sorted(Settings.model_fields.items(), key=lambda one: one[0] in DOTTED):
        if (name in RARELY_CHANGED) != is_rare:
            continue
        extra = field.json_schema_extra
        assert isinstance(extra, dict)
        waits = "" if is_live(name) else " ↻"
        allowed, told = str(extra["allowed"]), str(field.description).replace(" Never shown or logged.", "")
        for words, short in IN_A_TABLE.items():
            allowed = re.sub(words, short, allowed)
        spelled = f"`{DOTTED[name]}` (`{name}`)" if name in DOTTED else f"`{name}`"
        rows.append(f"| {spelled} | `{as_json(field.default)}` | {allowed} | {told}{waits} |")
    return "\n".join(rows) + "\n"


def env_example() -> str:
    """Return .env.example: every setting as a variable, commented out, with its default."""
    lines = [
        "# Copy this file to .env and take the # away from what you set. A variable beats settings.json.",
        "# Every variable is the setting of the same name; an empty one counts as not set. The file .env lies beside",
        "# app.py, or, once installed, in the platform's data folder, such as ~/.local/share/rag-assistant.",
        "",
        "# The settings file. A relative path counts from the folder in which .env lies.",
        "#SETTINGS_FILE=settings.json",
    ]
    for name, field in sorted(Settings.model_fields.items(), key=lambda one: one[0] in RARELY_CHANGED):
        default = field.default if isinstance(field.default, str) else as_json(field.default)
        value = "" if name in SECRET else default
        lines += ["", f"# {field.description}", f"#{name.upper()}={value}"]
    return "\n".join(lines) + "\n"


def as_json(value: object) -> str:
    return json.dumps(TypeAdapter(Any).dump_python(value, mode="json"), ensure_ascii=False)


def test_env_example_has_every_variable_with_its_default() -> None:
    assert ENV_EXAMPLE.read_text() == env_example()


def test_each_line_of_env_example_sets_what_holds_without_it(tmp_path: Path) -> None:
    lines = re.findall(r"^#([A-Z_]+)=(.*)$", ENV_EXAMPLE.read_text(), re.MULTILINE)
    variables = {name: value for name, value in lines if name != "SETTINGS_FILE"}
    live = open_settings(variables | {"SETTINGS_FILE": str(tmp_path / "none.json")})
    assert live.current == Settings()


def test_the_code_reads_no_other_variable() -> None:
    named = set(re.findall(r"^#([A-Z_]+)=", ENV_EXAMPLE.read_text(), re.MULTILINE))
    read = set()
    for path in [PROJECT / "app.py", *(PROJECT / "rag_assistant").rglob("*.py")]:
        read |= set(re.findall(r"""environ(?:ment)?(?:\.get\(|\[)["']([A-Z_]+)""", path.read_text()))
    assert read - {"AWS_REGION"} <= named  # Amazon's own, in the description of s3_region.


def test_the_settings_page_has_every_setting() -> None:
    for is_rare, table in TABLES.items():
        found = table.search(SETTINGS.read_text())
        assert found is not None
        assert found.group() == settings_table(is_rare)


def test_every_error_of_ours_is_among_them() -> None:
    kinds, found = [AssistantError], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        found.add(kind)
    assert {kind.__module__.rpartition(".")[0] for kind in found} == {errors.__name__}


def test_the_settings_in_the_readme_have_their_defaults() -> None:
    named = re.findall(r"^\| `([a-z_]+)` \| `(.*?)` \|", README.read_text(), re.MULTILINE)
    assert named
    for name, default in named:
        assert default == as_json(Settings.model_fields[name].default), name


def test_the_readme_is_read_in_minutes() -> None:
    assert len(README.read_text().split()) <= MAX_README_WORDS


# The templates of the pages that the docs lead to.
LED_TO = {
    "Account": "account.html",
    "Documents": "_documents.html",
    "People": "people.html",
    "Settings": "_settings*.html",
}


def test_where_the_docs_lead_on_a_page_there_is_such_a_thing() -> None:
    ways = [
        (page.name, *match.groups())
        for page in PAGES
        if page.name != "clients.md"  # It has the pages of others.
        for match in re.finditer(
            rf"\b({'|'.join(LED_TO)}), ([A-Z][a-z]+(?: [a-z]+)*)(?=\*\*| \||, (?:[A-Z]|then ))", page.read_text()
        )
    ]
    assert len(ways) >= 8
    shown = {name: "".join(path.read_text() for path in (PROJECT / "templates").glob(LED_TO[name])) for name in LED_TO}
    missing = [way for way in ways if f'_("{way[2]}")' not in shown[way[1]]]
    assert missing == []


def test_the_docs_stay_short() -> None:
    words = [word for page in DOCS.rglob("*.md") for word in page.read_text().split() if re.search(r"\w", word)]
    assert len(words) <= MAX_DOCS_WORDS, "Shorten something else in docs/ by as many words as you add."


@pytest.fixture
def made_app(tmp_path: Path) -> Flask:
    return create_app({"DATA_DIR": str(tmp_path), "SETTINGS_FILE": str(tmp_path / "none.json")})


def test_the_api_page_has_every_route(made_app: Flask) -> None:
    routes = {
        f"{method} {re.sub('<.*?>', 'ID', rule.rule)}"
        for rule in made_app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule.startswith(("/api/", "/v1/", "/openapi")) or rule.rule.endswith("z") or rule.rule in FOR_PROGRAMS
    }
    assert set(re.findall(r"^\| `([A-Z]+ /\S+)` \|", API.read_text(), re.MULTILINE)) == routes


def test_the_api_page_has_every_field_of_a_question() -> None:
    fields = set(QueryBody.model_fields)
    assert set(first_cells(API, "### Fields")) == fields


def test_the_api_page_explains_every_field_of_an_answer() -> None:
    fields = set(turn_data(A_TURN)) | {"error"}
    told = set(first_cells(API, "### Answer")) | set(re.findall(r'"(\w+)":', API.read_text()))
    assert fields - told == {"created_at", "finished_at"}  # Their names say it.


def test_the_api_page_has_every_command() -> None:
    assert set(first_cells(API, "## Command line")) == set(names_of(map(cli.command, cli.COMMANDS)))


def names_of(commands: Iterable[click.Command], before: str = "") -> Iterator[str]:
    """Yield the full names of commands; those of a group in its place."""
    for command in commands:
        if isinstance(command, click.Group):
            yield from names_of(command.commands.values(), f"{before}{command.name} ")
        else:
            yield f"{before}{command.name}"


def first_cells(page: Path, heading: str) -> list[str]:
    """Return what is named in the first cells of the tables below a heading, up to the next heading."""
    _, _, below = page.read_text().partition(f"\n{heading}\n")
    section = re.split(r"^#", below, maxsplit=1, flags=re.MULTILINE)[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_is_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)[^)]*\)", page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        name, _, heading = target.partition("#")
        there = page.parent / name if name else page
        assert there.exists(), target
        assert not heading or heading in anchors(there), target


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_every_page_is_listed_on_the_front_page(page: Path) -> None:
    front = DOCS / "README.md"
    assert page == front or f"]({page.relative_to(DOCS)})" in front.read_text()


def anchors(page: Path) -> set[str]:
    """Return the names by which the headings of a page are linked to."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    for name in re.findall(r"`([a-z0-9_./-]+\.(?:py|js|html|css))`", page.read_text()):
        assert name == MADE_BY_THE_READER or any(path.endswith(f"/{name}") for path in SOURCES), name


def test_the_layout_names_every_room() -> None:
    layout = (DOCS / "architecture.md").read_text().split("```")[1]
    named = set(re.findall(r"\w+", layout))
    package = PROJECT / "rag_assistant"
    rooms = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms - named == {"__init__"}


def test_the_names_in_the_architecture_are_those_of_the_code() -> None:
    code = "\n".join(path.read_text() for path in (PROJECT / "rag_assistant").rglob("*.py"))
    defined = set(re.findall(r"(?:class|def) (\w+)", code)) | set(Settings.model_fields)
    page = (DOCS / "architecture.md").read_text()
    named = re.findall(r"`([A-Z][A-Za-z]+(?:\.\w+)?|[a-z]+(?:_[a-z]+)+)`", page)
    assert {part for name in named for part in name.split(".")} <= defined


def test_the_guide_names_only_settings_that_exist() -> None:
    known = set(Settings.model_fields) | {name.upper() for name in Settings.model_fields} | {"history_trimmed"}
    for page in (DOCS / "guide").glob("*.md"):
        named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", page.read_text()))
        assert named <= known, page.name


def test_the_guide_names_only_commands_that_exist() -> None:
    known = set(names_of(map(cli.command, cli.COMMANDS)))
    for page in (DOCS / "guide").glob("*.md"):
        named = re.findall(r"(?:rag-assistant|app\.py) ((?:[a-z]+ ?)+)", page.read_text())
        assert {name.strip() for name in named} <= known, page.name
        assert "flask" not in page.read_text()


FEATURES = re.compile(r"(?<=<!-- features -->\n).*?(?=<!-- /features -->)", re.DOTALL)


def test_the_table_of_what_is_read_is_that_of_the_tests() -> None:
    page = next(page for page in PAGES if FEATURES.search(page.read_text()))
    assert FEATURES.findall(page.read_text()) == [features_table()]


if __name__ == "__main__":
    for page in filter(lambda one: FEATURES.search(one.read_text()), PAGES):
        page.write_text(FEATURES.sub(lambda _match: features_table(), page.read_text()))
    ENV_EXAMPLE.write_text(env_example())
    SCHEMA.write_text(json.dumps(settings_schema(), indent=2) + "\n")
    for is_rare, table in TABLES.items():
        SETTINGS.write_text(table.sub(settings_table(is_rare).replace("\\", "\\\\"), SETTINGS.read_text()))
