"""What is written for people agrees with the code.

``python -m tests.test_documentation`` writes .env.example and the settings table of README.md anew.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from rag_assistant.factory import create_app
from rag_assistant.settings.schema import SECRET, Settings, is_live

PROJECT = Path(__file__).resolve().parents[1]
README = PROJECT / "README.md"
ENV_EXAMPLE = PROJECT / ".env.example"
PAGES = [README, PROJECT / "CHANGELOG.md", *sorted((PROJECT / "docs").rglob("*.md"))]
TABLE = re.compile(r"(?<=<!-- settings -->\n).*?(?=<!-- /settings -->)", re.DOTALL)


def settings_table() -> str:
    """Return the table of all settings, in Markdown."""
    rows = ["| setting | default | allowed | what it does |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)
        allowed = str(extra["allowed"]).split(": ")[0]
        waits = "" if is_live(name) else " Takes effect at the next start."
        rows.append(f"| `{name}` | `{as_json(field.default)}` | {allowed} | {field.description}{waits} |")
    return "\n".join(rows) + "\n"


def env_example() -> str:
    """Return .env.example: every setting as a variable, commented out, with its default."""
    lines = [
        "# Copy this file to .env and take the # away from what you set. A variable beats settings.json.",
        "# Every variable is the setting of the same name; an empty one counts as not set.",
        "",
        "# The settings file. A relative path counts from the folder of app.py.",
        "#SETTINGS_FILE=settings.json",
    ]
    for name, field in Settings.model_fields.items():
        default = field.default if isinstance(field.default, str) else as_json(field.default)
        value = "" if name in SECRET else default
        lines += ["", f"# {field.description}", f"#{name.upper()}={value}"]
    return "\n".join(lines) + "\n"


def as_json(value: object) -> str:
    return TypeAdapter(Any).dump_json(value).decode().replace(",", ", ").replace(":", ": ")


def test_env_example_has_every_variable_with_its_default() -> None:
    assert ENV_EXAMPLE.read_text() == env_example()


def test_the_code_reads_no_other_variable() -> None:
    named = set(re.findall(r"^#([A-Z_]+)=", ENV_EXAMPLE.read_text(), re.MULTILINE))
    read = set()
    for path in [PROJECT / "app.py", *(PROJECT / "rag_assistant").rglob("*.py")]:
        read |= set(re.findall(r"""environ(?:ment)?(?:\.get\(|\[)["']([A-Z_]+)""", path.read_text()))
    assert read <= named


def test_the_readme_has_every_setting() -> None:
    found = TABLE.search(README.read_text())
    assert found is not None
    assert found.group() == settings_table()


def test_the_readme_has_every_route_of_the_api(tmp_path: Path) -> None:
    app = create_app({"DATA_DIR": str(tmp_path), "SETTINGS_FILE": str(tmp_path / "none.json")})
    routes = {
        f"{method} {re.sub('<.*?>', 'ID', rule.rule)}"
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule.startswith("/api/") or rule.rule.endswith("z")
    }
    assert set(re.findall(r"^\| `([A-Z]+ /\S+)` \|", README.read_text(), re.MULTILINE)) == routes


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_is_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def test_the_guide_names_only_settings_that_exist() -> None:
    known = set(Settings.model_fields) | {name.upper() for name in Settings.model_fields} | {"history_trimmed"}
    for page in (PROJECT / "docs" / "guide").glob("*.md"):
        named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", page.read_text()))
        assert named <= known, page.name


if __name__ == "__main__":
    ENV_EXAMPLE.write_text(env_example())
    README.write_text(TABLE.sub(settings_table().replace("\\", "\\\\"), README.read_text()))
