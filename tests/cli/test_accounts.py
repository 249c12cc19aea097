"""Accounts on the command line."""

from collections.abc import Iterator

import pytest

from tests.cli.shell import Shell
from tests.testkit.people import quick_passwords

PASSWORD = "four words in a row"


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with quick_passwords():
        yield


def add(shell: Shell, name: str, *options: str) -> None:
    made = shell("accounts", "add", name, *options, typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert made.exit_code == 0, made.output


def test_the_first_account_is_an_administrator_and_gets_what_is_there(shell: Shell) -> None:
    shell("ask", "Before?")
    made = shell("accounts", "add", "Ann", typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert "Ann can sign in (admin)." in made.output
    assert PASSWORD not in made.output
    add(shell, "Ben")
    assert shell("accounts", "list").stdout == "Ann  admin\nBen  member\n"


def test_accounts_are_changed_and_every_change_is_in_the_log(shell: Shell) -> None:
    add(shell, "Ann")
    link = shell("accounts", "add", "Ben", "--link")
    assert "/choose-password?link=" in link.stdout
    for words, told in (
        (("role", "Ben", "admin"), "Ben is now an administrator.\n"),
        (("role", "Ben", "member"), "Ben is now a member.\n"),
        (("disable", "Ben"), "Ben can no longer sign in.\n"),
        (("enable", "Ben"), "Ben can sign in again.\n"),
    ):
        assert shell("accounts", *words).stdout == told
    token = shell("accounts", "token", "Ben", "--name", "laptop", "--scope", "read", "--days", "3").stdout.strip()
    assert token.startswith("rag_")
    assert (
        "once, within two days: http://127.0.0.1:8000/choose-password?link=" in shell("accounts", "link", "Ben").stdout
    )
    for name, value in (("ALLOWED_HOSTS", '["assistant.example"]'), ("HOST", "0.0.0.0"), ("BASE_PATH", "/rag")):
        told = shell.under(**{name: value})("accounts", "link", "Ben").stdout
        path = "/rag" if name == "BASE_PATH" else ""
        assert f"Open this path on the server, once, within two days: {path}/choose-password?link=" in told
    assert shell("accounts", "delete", "Ben", "--give-to", "Ann", "--yes").stdout == "The account Ben was deleted.\n"
    log = shell("accounts", "log").stdout
    for done in (
        "created an account (admin): Ann", "created an account (member): Ben", "created a password link: Ben",
        "changed the role to admin: Ben", "disabled: Ben", "enabled: Ben", "made a token (read): Ben: laptop",
        "deleted, everything went to Ann: Ben",
    ):  # fmt: skip
        assert f"command line: {done}" in log
    assert token not in log


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("disable", "Ann"), "This is the last administrator who can sign in."),
        (("role", "Zoe", "admin"), 'There is no account "Zoe".'),
        (("add", "ANN", "--link"), 'There is already an account "ANN".'),
        (("add", " ", "--link"), "it must have 1 to 64 visible characters"),
        (("token", "Ann", "--name", "x", "--scope", "read", "--days", "0"), "The token's lifetime is 0 days"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(shell: Shell, words: tuple[str, ...], message: str) -> None:
    add(shell, "Ann")
    refused = shell("accounts", *words)
    assert refused.exit_code == 1
    assert message in refused.output


def test_deleting_an_account_asks_first_and_erases_what_is_theirs(shell: Shell) -> None:
    add(shell, "Ann")
    add(shell, "Ben")
    asked = shell("accounts", "delete", "Ben", typed="n\n")
    assert asked.exit_code == 1
    assert "erases all their conversations and documents" in asked.output
    assert shell("accounts", "delete", "Ben", typed="y\n").exit_code == 0
    assert shell("accounts", "list").stdout == "Ann  admin\n"


def test_a_weak_password_is_refused(shell: Shell) -> None:
    refused = shell("accounts", "add", "Ann", typed="short\nshort\n")
    assert refused.exit_code == 1
    assert "it must have 10 to 1000" in refused.output
    assert shell("accounts", "list").stdout == ""


def test_an_administrator_links_an_account_of_the_provider(shell: Shell) -> None:
    pytest.importorskip("authlib", reason="pip install -e '.[oidc]'")
    add(shell, "Ann", "--admin")
    refused = shell("accounts", "identity", "Ann", "248")
    assert (refused.exit_code, "oidc_issuer is not set" in refused.stderr) == (1, True)
    shell.environment |= {"OIDC_ISSUER": "https://login.example", "OIDC_CLIENT_ID": "assistant"}
    assert shell("accounts", "identity", "Ann", "248").stdout == "Ann can sign in with the provider.\n"
    assert "already linked to someone here" in shell("accounts", "identity", "Ann", "248").stderr
    assert "command line: linked an account of login.example: Ann: 248" in shell("accounts", "log").stdout
    assert shell("accounts", "identity", "Ann", "").exit_code == 1
