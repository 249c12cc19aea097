"""Every package has an exact version, those that others bring included: what runs is what was tested."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parents[1]
OURS = (PROJECT / "requirements.txt", PROJECT / "tests" / "requirements.txt")
MODELS = PROJECT / "tests" / "requirements-models.txt"
EXTRAS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# What installs the others; it is the machine's own.
INSTALLERS = {"pip"}


def lines(path: Path) -> list[Requirement]:
    """Return what a file asks for."""
    asked = (re.sub(r"(^|\s)#.*", "", line).strip() for line in path.read_text().splitlines())
    return [Requirement(line) for line in asked if line]


def direct() -> list[Requirement]:
    """Return what the program, its extras and the tests ask for."""
    return [
        *(one for path in OURS for one in lines(path)),
        *(Requirement(line) for extra in EXTRAS.values() for line in extra),
    ]


def brought(asked: Requirement, known: set[str]) -> Iterator[str]:
    """Yield the names of what is installed along with a package that is here, itself included."""
    name = canonicalize_name(asked.name)
    of_extras = [{"extra": extra} for extra in ("", *asked.extras)]
    if name in known or not (asked.marker is None or any(asked.marker.evaluate(one) for one in of_extras)):
        return
    known.add(name)
    try:
        needed = requires(name) or []
    except PackageNotFoundError:
        return
    yield name
    for line in needed:
        one = Requirement(line)
        if one.marker is None or any(one.marker.evaluate(extra) for extra in of_extras):
            one.marker = None
            yield from brought(one, known)


def test_every_requirement_names_one_version() -> None:
    asked = [*direct(), *lines(MODELS), *lines(PROJECT / "constraints.txt")]
    assert len(asked) > 100
    assert [str(one) for one in asked if not re.fullmatch(r"==[^*,]+", str(one.specifier))] == []


def test_what_a_package_brings_has_one_version_too() -> None:
    pinned = {canonicalize_name(one.name) for one in (*direct(), *lines(PROJECT / "constraints.txt"))}
    known: set[str] = set()
    found = {name for one in direct() for name in brought(one, known)}
    assert len(found) > 50
    assert found - pinned - INSTALLERS == set()


def test_no_package_refuses_the_version_of_another() -> None:
    pinned = {canonicalize_name(one.name): one for one in (*lines(PROJECT / "constraints.txt"), *direct())}
    known: set[str] = set()
    conflicts = []
    for name in {name for one in direct() for name in brought(one, known)} & pinned.keys():
        for asked in map(Requirement, requires(name) or []):
            needed = pinned.get(canonicalize_name(asked.name))
            if needed is not None and (asked.marker is None or asked.marker.evaluate({"extra": ""})):
                (version,) = needed.specifier
                if not asked.specifier.contains(version.version, prereleases=True):
                    conflicts.append(f"{name} needs {asked}, and {needed} is pinned")
    assert conflicts == []
