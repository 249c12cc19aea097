"""Where our own files are, and where a person's are: in a checkout beside app.py, installed in two places.

A wheel carries templates, static files, migrations and the guide in ``_files`` (pyproject.toml puts them there), in the
same tree as in a checkout. What a person keeps then lies in the data folder of the platform.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED_FILES = PACKAGE / "_files"
IS_INSTALLED = INSTALLED_FILES.is_dir()

# The folder that holds templates/ and static/.
FILES = INSTALLED_FILES if IS_INSTALLED else PACKAGE.parent
GUIDE = FILES / "docs" / "guide"
GUIDE_NAMES = frozenset(path.name for path in GUIDE.glob("*.md"))
MIGRATIONS = FILES / "migrations"
SETTINGS_EXAMPLE = FILES / "settings.example.json"
SETTINGS_SCHEMA = FILES / "settings.schema.json"


def command_for_extra(name: str) -> str:
    """Return the command that installs an extra: another one in a checkout than where the wheel is installed."""
    return f"pip install 'rag-assistant[{name}]'" if IS_INSTALLED else f".venv/bin/pip install -e '.[{name}]'"


def home() -> Path:
    """Return the folder from which relative paths count: that of app.py, or the platform's data folder for us."""
    if not IS_INSTALLED:
        return FILES
    from platformdirs import user_data_path

    return user_data_path("rag-assistant", appauthor=False)
