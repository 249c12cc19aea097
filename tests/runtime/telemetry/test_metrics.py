"""What Prometheus reads: every figure is named in one place, and the dashboard asks for nothing else."""

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from rag_assistant.runtime.telemetry.metrics import GAUGES, Levels, Metrics

PROJECT = Path(__file__).resolve().parents[3]
DASHBOARD = PROJECT / "deploy" / "grafana-dashboard.json"


def samples(metrics: Metrics, levels: Levels | None = None) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values of every sample, by the values of its labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(metrics.exposition(levels or {}).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def used(metrics: Metrics) -> None:
    """Use every figure, so that it is shown."""
    metrics.turns.labels("completed", "").inc()
    metrics.trims.labels("turn_limit").inc()
    metrics.count_request("model", {"in": 7}, 0.5)
    metrics.steps.labels("search").observe(0.1)
    metrics.refusals.labels("NotFound").inc()


LEVELS: Levels = {
    "running_answers": 2,
    "max_running_answers": 500,
    "part": {("model", "ready"): 1},
    "jobs": {"now": 1},
    "documents": {"ready": 9},
    "indexed_chunks": 40,
    "stored_bytes": {"trash": 7},
    "disk_free_bytes": 10,
    "disk_bytes": 100,
    "backup_age_seconds": 60,
}


def test_two_applications_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.refusals.labels("NotFound").inc()
    assert samples(one)["rag_assistant_refusals_total"] == {("NotFound",): 1}
    assert "rag_assistant_refusals_total" not in samples(other)


def test_models_beyond_the_first_twenty_share_one_label() -> None:
    metrics = Metrics()
    for n in range(30):
        metrics.count_request(f"model-{n}", {"in": 1, "out": 2}, 0.5)
    metrics.count_request("model-0", {"in": 1, "out": 2}, 0.5)
    found = samples(metrics)
    requests = found["rag_assistant_model_requests_total"]
    assert (len(requests), requests[("model-0",)], requests[("other",)]) == (21, 2, 10)
    assert found["rag_assistant_model_cost_total"][("other",)] == 5
    assert len(found["rag_assistant_tokens_total"]) == 42


def test_how_things_stand_is_shown_beside_what_was_counted() -> None:
    found = samples(Metrics(), LEVELS)
    assert found["rag_assistant_running_answers"] == {(): 2}
    assert found["rag_assistant_part"] == {("model", "ready"): 1}
    assert found["rag_assistant_documents"] == {("ready",): 9}
    assert LEVELS.keys() == GAUGES.keys()


def test_the_dashboard_and_the_docs_name_every_figure_and_no_other() -> None:
    metrics = Metrics()
    used(metrics)
    shown = {name for name in samples(metrics, LEVELS) if not name.endswith("_created")}
    dashboard = json.loads(DASHBOARD.read_text())
    queries = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    asked = set(re.findall(r"\b(?:rag_assistant|process)_\w+", queries))
    assert asked <= shown
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown if name.startswith("rag_assistant_")}
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked} >= families
    told = set(re.findall(r"^\| `(rag_assistant_\w+)", (PROJECT / "docs" / "operating.md").read_text(), re.MULTILINE))
    assert told == families


def test_every_panel_has_a_place_and_a_source() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert all(panel["datasource"]["uid"] == "${source}" and panel["gridPos"] for panel in dashboard["panels"])
