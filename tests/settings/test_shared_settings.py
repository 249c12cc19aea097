"""What is changed on the page of servers that share a database holds at each, with or without a settings.json."""

from pathlib import Path

import pytest

from rag_assistant.settings.live import LiveSettings, SharedValues


class Shared:
    """What servers share, in memory."""

    def __init__(self) -> None:
        self.values = SharedValues()

    def read(self) -> SharedValues:
        return self.values

    def write(self, changed: SharedValues) -> None:
        self.values = changed


@pytest.fixture
def servers(tmp_path: Path) -> tuple[LiveSettings, LiveSettings]:
    """Two servers, of which neither has the file that it names."""
    shared, found = Shared(), []
    for name in ("one", "other"):
        live = LiveSettings(tmp_path / name / "settings.json", {})
        live.share(shared)
        found.append(live)
    return found[0], found[1]


def test_without_a_file_a_change_holds_at_each_server(servers: tuple[LiveSettings, LiveSettings]) -> None:
    one, other = servers
    for turns in (7, 9):
        one.change({"max_history_turns": turns}, one.stamp())
        other.look()
        assert (one.current.max_history_turns, one.problem) == (turns, None)
        assert (other.current.max_history_turns, other.problem) == (turns, None)
        assert other.origins["max_history_turns"] == "page"


def test_a_file_that_goes_is_told_and_its_values_stay(servers: tuple[LiveSettings, LiveSettings]) -> None:
    one, other = servers
    other.path.parent.mkdir()
    other.path.write_text('{"max_history_turns": 3}')
    other.look()
    assert other.current.max_history_turns == 3
    other.path.unlink()
    one.change({"window_slack": 2}, one.stamp())
    other.look()
    other.look()
    assert other.current.max_history_turns == 3
    assert "settings.json is gone. The last good values stay in force." in (other.problem or "")
