"""Where our own files and a person's files are: in a checkout beside app.py, in an installation in two places.

A wheel has templates, static files, migrations and the guide in ``_files`` (see pyproject.toml), in the same tree as a
checkout. A person's files are then in the platform's data folder.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED_FILES = PACKAGE / "_files"
IS_INSTALLED = INSTALLED_FILES.is_dir()

# The folder that holds templates/ and static/.
FILES = INSTALLED_FILES if IS_INSTALLED else PACKAGE.parent
GUIDE = FILES / "docs" / "guide"
# The origin of its pages in a library begins with this.
OF_GUIDE = "guide:"
MIGRATIONS = FILES / "migrations"
SETTINGS_EXAMPLE = FILES / "settings.example.json"
SETTINGS_SCHEMA = FILES / "settings.schema.json"


def command_for_extra(name: str) -> str:
    """Return the command that installs an extra, in a checkout or from the wheel."""
    return f"pip install 'rag-assistant[{name}]'" if IS_INSTALLED else f".venv/bin/pip install -e '.[{name}]'"


def home() -> Path:
    """Return the base of relative paths: the folder of app.py, or our platform data folder."""
    if not IS_INSTALLED:
        return FILES
    from platformdirs import user_data_path

    return user_data_path("rag-assistant", appauthor=False)
