"""The wheel: it holds everything that runs and nothing else, and it serves where nothing else of ours is."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from rag_assistant import __version__
from rag_assistant.retrieval.embeddings.minilm import EMBEDDING_MODEL, EMBEDDING_TOKENIZER
from tests.testkit.server_process import Launched, ServerProcess
from tests.testkit.stub_model import Reply, StubModel

PROJECT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
CARRIED = (
    *("templates", "static", "migrations", "docs", "settings.example.json", "settings.schema.json"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built of the files that the image is built of."""
    for module in ("hatchling", "hatch_requirements_txt"):
        pytest.importorskip(module, reason=f"{module} is not installed: pip install -r tests/requirements.txt")
    folder, tree = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("tree")
    lines = (PROJECT / "deploy/Dockerfile.dockerignore").read_text().splitlines()
    for path in (path for line in lines if line.startswith("!") for path in PROJECT.glob(line[1:])):
        copy = shutil.copytree if path.is_dir() else shutil.copy
        (tree / path.relative_to(PROJECT)).parent.mkdir(exist_ok=True)
        copy(path, tree / path.relative_to(PROJECT))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def files_of(path: Path) -> list[Path]:
    """Return a file, or the files below a folder that a person wrote."""
    found = [path] if path.is_file() else [inner for inner in path.rglob("*") if inner.is_file()]
    return [one for one in found if "__pycache__" not in one.parts]


def pinned(name: str) -> set[str]:
    """Return the requirements of a file as pip reads them."""
    lines = (line.partition("#")[0].strip() for line in (PROJECT / name).read_text().splitlines())
    return {str(Requirement(line)) for line in lines if line}


def test_the_wheel_holds_everything_that_runs_and_nothing_else(wheel: Path) -> None:
    code = {path.relative_to(PROJECT).as_posix() for path in files_of(PROJECT / "rag_assistant")}
    carried = {
        f"rag_assistant/_files/{path.relative_to(PROJECT).as_posix()}"
        for name in CARRIED
        for path in files_of(PROJECT / name)
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == code | carried


def test_the_wheel_depends_on_exactly_what_is_pinned(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = HeaderParser().parsestr(
        archive.read(f"rag_assistant-{__version__}.dist-info/METADATA").decode(),
    )
    needed = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    extra = {str(one).partition(";")[0] for one in needed if "extra ==" in str(one.marker)}
    assert {str(one) for one in needed if "extra ==" not in str(one.marker)} == pinned("requirements.txt")
    assert extra == {str(Requirement(line)) for lines in EXTRAS.values() for line in lines}
    assert (metadata["Version"], metadata["License-Expression"]) == (__version__, "MIT")


def test_what_helps_against_a_missing_model_names_the_versions_that_are_pinned() -> None:
    known = pinned("requirements.txt")
    for model in (EMBEDDING_MODEL, EMBEDDING_TOKENIZER):
        named = re.findall(r"[\w-]+==[\d.]+\d", model.remedy)
        assert named
        assert set(named) <= known


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """The folder of the programs of a virtual environment that has the wheel, without what nothing loads."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = tmp_path / "venv" / "bin" / "pip"
    subprocess.run([pip, "install", "--quiet", "-c", PROJECT / "constraints.txt", wheel], check=True)
    subprocess.run([pip, "uninstall", "--quiet", "--yes", "-r", PROJECT / "deploy/unused-packages.txt"], check=True)
    return pip.parent


@pytest.fixture
def server(installed: Path, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that was started in an empty folder by the installed program, with a stub model."""
    (tmp_path / "empty").mkdir()

    def launch(environment: dict[str, str], log: Path) -> Launched:
        with log.open("ab") as written:
            return subprocess.Popen(
                [installed / "rag-assistant"], cwd=tmp_path / "empty", env=environment, stdout=written, stderr=written,
                start_new_session=True,
            )  # fmt: skip

    model = StubModel(Reply("Seventeen geese."))
    own = {"DATA_DIR": "", "SETTINGS_FILE": "", "XDG_DATA_HOME": str(tmp_path / "share"), "PYTHONPATH": ""}
    made = ServerProcess(
        tmp_path, launch, **own, OPENAI_BASE_URL=model.url, OPENAI_MODEL="stub", QUERY_REWRITING="words"
    )
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()
    model.close()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_installed_copy_serves_in_an_empty_folder_and_keeps_what_was_said(
    server: ServerProcess, installed: Path, tmp_path: Path
) -> None:
    server.start("/readyz")
    server.wait_for_documents()
    assert server.call("GET", "/api/documents")[1]["documents"], "the guide came along"
    status, answer = server.call("POST", "/api/query", {"question": "How many?"})
    assert (status, answer["answer"]) == (200, "Seventeen geese.")
    server.kill()
    server.start("/readyz")
    _, page = server.call("GET", f"/api/conversations/{answer['conversation_id']}/turns")
    assert [turn["question"] for turn in page["turns"]] == ["How many?"]
    assert list((tmp_path / "empty").iterdir()) == []
    home = tmp_path / "share" / "rag-assistant"
    assert {"settings.json", "settings.schema.json", "data"} <= {path.name for path in home.iterdir()}
    assert f"Settings: {home}/settings.json\nData: {home}/data\n" in server.log.read_text()
    server.terminate()
    shown = subprocess.check_output([installed / "rag-assistant", "history", "list"], env=server.environment, text=True)
    assert "How many?" in shown
