"""What deploy/ hands out: as far as it can be checked without a container engine and without a machine of its own."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.cluster.proxy import DEPLOY
from rag_assistant.__main__ import program
from rag_assistant.files.s3 import S3Files
from rag_assistant.settings.schema import Settings
from tests.testkit.s3_server import PROGRAM, wait_for_port
from tests.testkit.server_process import free_port

PROJECT = DEPLOY.parent
UNITS = sorted(DEPLOY.glob("*.service"))
# What a process needs to end, beyond what the settings leave to clients and answers; see server/serve.py.
SPARE_SECONDS = 5
KEYS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
NOT_SETTINGS = {"PATH", "PYTHONDONTWRITEBYTECODE", "SETTINGS_FILE", *KEYS}


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def is_known(words: list[str]) -> bool:
    """Tell whether the program has a command with these options."""
    command = program.get_command(program.make_context("rag-assistant", ["--help"], resilient_parsing=True), words[0])
    return command is not None and command.make_context(words[0], words[1:]) is not None


def test_the_proxies_take_their_configuration() -> None:
    caddy = shutil.which("caddy", path=str(Path(sys.executable).parent))
    haproxy = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    commands = []
    if haproxy:
        commands.append([haproxy, "-c", "-f", str(DEPLOY / "haproxy.cfg")])
    if caddy:
        commands.append([caddy, "validate", "--config", str(DEPLOY / "Caddyfile"), "--adapter", "caddyfile"])
    if not commands:
        pytest.skip("neither HAProxy nor Caddy is installed")
    for command in commands:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr


def test_caddy_listens_on_this_machine_alone_unless_it_is_told_otherwise() -> None:
    caddy = shutil.which("caddy", path=str(Path(sys.executable).parent))
    if not caddy:
        pytest.skip("Caddy is not installed")
    words = [caddy, "adapt", "--config", str(DEPLOY / "Caddyfile"), "--adapter", "caddyfile"]
    adapted = json.loads(subprocess.check_output(words, stderr=subprocess.DEVNULL))
    assert [server["listen"] for server in adapted["apps"]["http"]["servers"].values()] == [["127.0.0.1:8080"]]


def unit_of_one_process() -> str:
    """Return the unit that docs/operating.md shows."""
    found = re.search(r"```ini\n(.*?)```", (PROJECT / "docs" / "operating.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        *((unit.name.replace("@", "@8001"), unit.read_text()) for unit in UNITS),
        ("rag-assistant.service", unit_of_one_process()),
    ],
)
def test_systemd_understands_the_units(name: str, unit: str, tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    here = tmp_path / name
    # It looks whether the program is there.
    here.write_text(unit.replace("/opt/rag-assistant/bin/rag-assistant", "/bin/true"))
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(here)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_one_process_is_confined_as_several_are() -> None:
    confined = {line for line in unit_of_one_process().splitlines() if re.match("NoNew|Protect|Private|Restrict", line)}
    assert len(confined) > 8
    assert [unit.name for unit in UNITS if not confined <= set(unit.read_text().splitlines())] == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_the_units_run_commands_and_set_settings_that_there_are(unit: Path) -> None:
    lines = [line.partition("=") for line in unit.read_text().splitlines() if "=" in line]
    words = next(shlex.split(value)[1:] for key, _, value in lines if key == "ExecStart")
    assert is_known(words)
    values = dict(pair.split("=", 1) for key, _, value in lines if key == "Environment" for pair in shlex.split(value))
    assert {name.lower() for name in values.keys() - NOT_SETTINGS} <= Settings.model_fields.keys()
    stop = next(int(value) for key, _, value in lines if key == "TimeoutStopSec")
    assert stop > needed_to_end(values)


def needed_to_end(values: dict[str, str]) -> float:
    """Return how long a process with these settings may take to end."""
    defaults = Settings()
    given = [values.get(name.upper(), getattr(defaults, name)) for name in ("drain_seconds", "last_answers_seconds")]
    return sum(map(float, given)) + SPARE_SECONDS


def test_the_common_environment_names_settings() -> None:
    named = re.findall(r"^(\w+)=", (DEPLOY / "common.env").read_text(), re.MULTILINE)
    assert {name.lower() for name in set(named) - KEYS} <= Settings.model_fields.keys()
    assert set(named) >= KEYS | {"DATABASE_URL", "FILES_URL"}


def test_the_services_of_the_compose_file_fit_together() -> None:
    whole = compose()
    services = whole["services"]
    assert [name for name in services if name.startswith(("web", "worker"))] == [
        *("web1", "web2", "web3", "worker1", "worker2")
    ]
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= services.keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in whole["volumes"] or (DEPLOY / source).exists(), volume
        if name.startswith(("web", "worker")):
            assert is_known(service["command"])
            assert {one.lower() for one in service["environment"].keys() - KEYS} <= Settings.model_fields.keys()
            grace = int(service["stop_grace_period"].removesuffix("s"))
            assert grace > needed_to_end(service["environment"])
    proxied = services["proxy"]["environment"]
    assert [proxied[f"WEB{number}"] for number in (1, 2, 3)] == [f"web{number}:8000" for number in (1, 2, 3)]
    address = services["proxy"]["networks"]["default"]["ipv4_address"]
    assert services["web1"]["environment"]["TRUSTED_PROXIES"] == f'["{address}"]'


def test_webs_and_workers_of_the_compose_file_keep_files_in_its_s3_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, secret, port = compose()["services"], "secret-456", free_port()
    given = {
        key: value.replace("${S3_SECRET:?set S3_SECRET}", secret)
        for service in (services["web1"], services["s3"])
        for key, value in service["environment"].items()
    }
    for key in KEYS:
        monkeypatch.setenv(key, given[key])
    (command,) = services["s3"]["command"]
    for there, here in (("/files", str(tmp_path)), (":8080", f"127.0.0.1:{port}"), ("rclone", str(PROGRAM))):
        command = command.replace(there, here)
    environment = {"RCLONE_AUTH_KEY": given["RCLONE_AUTH_KEY"]}
    server = subprocess.Popen([*services["s3"]["entrypoint"], command], env=environment)
    try:
        wait_for_port(port)
        address = given["S3_ENDPOINT_URL"].replace("s3:8080", f"127.0.0.1:{port}")
        files = S3Files(given["FILES_URL"], address, None, True, tmp_path)
        (tmp_path / "incoming").write_text("Geese hiss.")
        files.keep(tmp_path / "incoming", "0" * 32)
        assert files.open("0" * 32).read() == b"Geese hiss."
        assert [path.read_text() for path in tmp_path.rglob("0*")] == ["Geese hiss."]
    finally:
        server.kill()
        server.wait()


def test_the_image_is_made_of_what_there_is_and_runs_without_rights() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    kept = [line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    assert [name for name in kept if not list(PROJECT.glob(name))] == []
    assert text.index("USER 10001") < text.index("ENTRYPOINT")
    assert text.count("USER ") == 1
    subprocess.run([Path(sys.executable).with_name("hadolint"), DEPLOY / "Dockerfile"], check=True)
    environment = re.findall(r"(?:ENV |^    )([A-Z_]+)=", text, re.MULTILINE)
    assert {name.lower() for name in set(environment) - NOT_SETTINGS} <= Settings.model_fields.keys()


def test_the_image_compiles_what_a_start_loads_by_the_names_that_it_has() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    (imports,) = re.findall(r'-c "import (rag_assistant.*?)"', text)
    (folders,) = re.findall(r"compileall -q (.*)", text)
    assert [name for name in (*imports.split(", "), *folders.split()) if find_spec(name) is None] == []


@pytest.mark.parametrize("engine", ["docker", "podman", None])
def test_the_image_is_built_with_the_engine_that_is_installed(engine: str | None, tmp_path: Path) -> None:
    if engine:
        (tmp_path / engine).write_text('#!/bin/sh\necho "$(basename $0) $*"\n')
        (tmp_path / engine).chmod(0o755)
    for name in ("sh", "basename"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    make = shutil.which("make")
    assert make is not None
    ended = subprocess.run(
        [make, "-s", "image", "SHELL=/bin/sh"],
        cwd=PROJECT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if engine:
        assert (ended.returncode, ended.stdout) == (0, f"{engine} build -f deploy/Dockerfile -t rag-assistant .\n")
    else:
        assert ended.returncode != 0
        assert "needs docker or podman" in ended.stderr


def test_every_file_that_the_image_copies_or_names_is_there() -> None:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert {step for step, _ in steps} <= {
        *("FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"),
        *("ENTRYPOINT", "CMD"),
    }
    assert [value for step, value in steps if step == "FROM"][-1].startswith("python:")
    named = re.findall(r"-[rc] ([\w/.-]+\.txt)", text)
    assert named
    assert [name for name in named if not (PROJECT / name).exists()] == []
    words = json.loads(next(value for step, value in steps if step == "CMD"))
    assert is_known(words)
