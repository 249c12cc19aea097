"""An exported file is read in a confined process, and comes out of it as it would come out of this one."""

import json
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from rag_assistant.conversations.exchange import files
from rag_assistant.conversations.exchange.files import read_confined
from rag_assistant.conversations.exchange.products import read_texts
from rag_assistant.records.archive import WholeConversation
from rag_assistant.records.errors import AssistantError, BodyTooLarge, ImportsBusy, InvalidRequest, MalformedBody
from tests.conversations.exchange import samples
from tests.testkit.samples import sample

LIMIT = 10_000_000


def read(
    content: bytes, folder: Path, *, max_bytes: int = LIMIT, seconds: float = 60.0
) -> tuple[list[WholeConversation], int]:
    with TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        with read_confined(file, max_bytes, seconds, folder) as export:
            return list(export.conversations), export.unreadable


def test_conversations_come_out_as_they_are(tmp_path: Path) -> None:
    text = json.dumps(samples.chatgpt()).encode()
    export = read_texts([text])
    assert read(text, tmp_path) == (list(export.conversations), export.unreadable)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "limits", "kind", "told"),
    sample(
        [
            (b"{", {}, MalformedBody, "The file is not JSON"),
            (b'[{"recipe": 1}]', {}, InvalidRequest, 'the fields "recipe"'),
            (b"[" + b" " * 100, {"max_bytes": 50}, BodyTooLarge, "the most allowed"),
            (b"[]", {"seconds": 0.01}, InvalidRequest, "took longer than 0.01 seconds"),
        ]
    ),
)
def test_what_is_wrong_is_told_from_there(
    content: bytes, limits: dict[str, float], kind: type[AssistantError], told: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=told):
        read(content, tmp_path, **limits)  # type: ignore[arg-type]


@pytest.mark.long
def test_a_file_that_takes_too_much_memory_harms_that_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MIN_MEMORY_MB", 100)
    (chat,) = samples.open_webui()
    hostile = json.dumps([chat | {"else": [{"n": [n]} for n in range(300_000)]}]).encode()
    with pytest.raises(InvalidRequest, match="memory"):
        read(hostile, tmp_path)


@pytest.mark.long
def test_one_file_is_imported_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WAIT_TIMEOUT_SECONDS", 0.01)
    with TemporaryFile() as file:
        file.write(json.dumps(samples.chatgpt()).encode())
        file.seek(0)
        with read_confined(file, LIMIT, 60.0, tmp_path) as export:
            with pytest.raises(ImportsBusy):
                read(b"[]", tmp_path)
            assert list(export.conversations)
    assert read(json.dumps(samples.chatgpt()).encode(), tmp_path)
