"""The examples on the pages for people: what a program can read of them is as the code has it."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
import pytest
from flask import Flask

from rag_assistant.__main__ import program
from rag_assistant.extraction.formats import kinds
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.settings.live import open_settings
from rag_assistant.settings.schema import OBJECTS, Settings
from rag_assistant.web import create_app
from rag_assistant.web.errors import code_of, error_kinds
from rag_assistant.web.routing import Route
from tests.test_documentation import first_cells

PROJECT = Path(__file__).resolve().parents[1]
PAGES = [page for page in (*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")) if page.name != "CHANGELOG.md"]
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
OURS = re.compile(r"(?:\w+=\S+ )*(?:rag-assistant|(?:\.venv/bin/)?python app\.py|docker compose .* web1)(?= |$)(.*)")
# What the shell takes for itself: pipes, redirections, and the output of other commands.
SHELL = re.compile(r"\s*\\?\|.*|\s*\d?>.*|\$\(.*?\)")
# What other programs call their settings and commands, and a tool that a server might have.
FOREIGN = frozenset(
    "bash_source copy_headers create_issue fish_source flush_interval is_chat_model max_prepared_statements num_ctx "
    "open_webui pg_dump pg_restore pool_mode proxy_buffering reverse_proxy tmp_path zsh_source".split()
)


def blocks(language: str) -> list[str]:
    """Return the blocks of code in a language on all pages; those without one are commands, or what they print."""
    return [text for page in PAGES for found, text in BLOCK.findall(page.read_text()) if found == language]


def inline() -> Iterator[str]:
    """Yield what stands in the text as code."""
    for page in PAGES:
        yield from re.findall(r"`([^`\n]+)`", BLOCK.sub("", page.read_text()))


def commands() -> Iterator[str]:
    """Yield the lines of the blocks, continued ones as one, and what stands in the text as code."""
    for block in blocks(""):
        yield from (line.strip() for line in block.replace("\\\n", " ").splitlines())
    yield from inline()


def test_every_command_of_ours_is_one_with_its_options_and_arguments() -> None:
    found = [match[1] for line in commands() if (match := OURS.match(line))]
    assert len(found) > 30
    for words in found:
        parse(shlex.split(SHELL.sub("", words), comments=True))


def parse(words: list[str]) -> None:
    """Follow a command down its groups. Raises click.UsageError for what it does not take."""
    command: click.Command = program
    while True:
        _, rest, _ = command.make_parser(click.Context(command)).parse_args(words)
        if not isinstance(command, click.Group) or not rest:
            break
        inner = command.get_command(click.Context(command, resilient_parsing=True), rest[0])
        assert inner is not None, words
        command, words = inner, rest[1:]
    assert isinstance(command, click.Group) or not rest, words


def test_make_has_every_target_that_is_named() -> None:
    targets = set(re.findall(r"^([a-z][a-z -]*):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    named = {match[1] for line in commands() if (match := re.match(r"make ([a-z-]+)\b", line))}
    assert {"run", "test", "clients"} <= named
    assert named <= {name for line in targets for name in line.split()}


def test_every_extra_is_in_the_table_and_what_is_named_is_there() -> None:
    named = {
        match[1]
        for line in commands()
        if (match := re.search(r"pip install .*(?:rag-assistant|\.)\[([a-z0-9-]+)\]", line))
    }
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    assert "ocr" in named
    assert named <= extras
    assert set(first_cells(PROJECT / "docs" / "running.md", "## Extras")) == extras


def test_json_is_json_and_what_is_settings_is_accepted(tmp_path: Path) -> None:
    read = [json.loads(block) for block in blocks("json")]
    settings = [one for one in read if one.keys() <= {"$schema", *Settings.model_fields, *OBJECTS}]
    assert len(settings) > 5
    for n, values in enumerate(settings):
        file = tmp_path / f"settings-{n}.json"
        file.write_text(json.dumps(values))
        live = open_settings({"DATA_DIR": str(tmp_path), "SETTINGS_FILE": str(file)})
        assert live.problem is None, values
        assert live.current.model_fields_set >= values.keys() - {"$schema", *OBJECTS}


@pytest.fixture
def app(tmp_path: Path) -> Flask:
    return create_app({"DATA_DIR": str(tmp_path), "SETTINGS_FILE": str(tmp_path / "none.json")})


def test_every_request_with_curl_goes_to_a_route_that_takes_its_body(app: Flask) -> None:
    requests = [shlex.split(line) for line in commands() if line.startswith("curl ")]
    assert len(requests) > 2
    for words in requests:
        (address,) = (word for word in words if re.match(r"(https?://)?[\w.]+(:\d+)?/\w", word))
        body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
        path = "/" + re.sub(r"^https?://", "", address).partition("/")[2]
        route, _ = app.url_map.bind("localhost").match(path, method="GET" if body is None else "POST", return_rule=True)
        assert isinstance(route, Route)
        taken = route.operation.body
        assert body is None or (taken is not None and taken.model_validate(body))


def run(example: str) -> dict[str, Any]:
    """Run an example; return what it defines."""
    names: dict[str, Any] = {"messages": [{"role": "user", "content": "Why?"}]}
    exec(compile(dedent(example), "an example", "exec"), names)
    return names


def test_the_examples_in_python_run_and_the_reader_among_them_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "SUBTITLES", "application/x-subrip", raising=False)
    defined: dict[str, Any] = {}
    for example in blocks("python"):
        defined |= run(example)
    assert defined["fitted"].messages
    film = b"1\n00:00:01,000 --> 00:00:04,000\nSeventeen geese.\n\n2\n00:00:05,000 --> 00:00:06,000\nNo, 18.\n"
    assert defined["read_subtitles"](film).text == "Seventeen geese.\nNo, 18."
    with pytest.raises(ExtractionFailed, match="Nothing is said"):
        defined["read_subtitles"](b"1\n")


def test_every_name_of_a_setting_or_field_is_in_the_code() -> None:
    folders = ("rag_assistant", "templates", "static", "bench", "deploy")
    kept = (".py", ".html", ".js", ".json", ".toml")
    files = [file for folder in folders for file in (PROJECT / folder).rglob("*") if file.suffix in kept]
    words = set(re.findall(r"\w+", "\n".join(file.read_text() for file in [*files, PROJECT / "pyproject.toml"])))
    words |= {code_of(name) for _, name, _ in error_kinds()} | {inner for one in OBJECTS.values() for inner in one}
    named = {name for code in inline() for name in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", code)}
    assert {name for name in named - words - FOREIGN if not re.match(r"test_|rag_assistant_|process_", name)} == set()
