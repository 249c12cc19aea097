"""Passwords are kept as argon2id, and those that are guessed soon are refused."""

import threading

import pytest
from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import VerifyMismatchError

from rag_assistant.accounts import passwords
from rag_assistant.accounts.passwords import check_password, hash_password, is_password
from rag_assistant.records.errors import InvalidRequest, PasswordsBusy


def test_a_password_is_known_again_and_its_hash_says_nothing_of_it() -> None:
    made = hash_password("correct horse battery")
    assert made.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert is_password(made, "correct horse battery")
    assert not is_password(made, "correct horse batterY")
    assert hash_password("correct horse battery") != made


@pytest.mark.long
def test_a_name_that_nobody_has_costs_as_much_as_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def fails(_: PasswordHasher, password_hash: str, _password: str) -> bool:
        compared.append(extract_parameters(password_hash))
        raise VerifyMismatchError

    monkeypatch.setattr(PasswordHasher, "verify", fails)
    assert not is_password(hash_password("correct horse battery"), "wrong")
    assert not is_password(None, "wrong")
    wrong, nobody = compared
    assert nobody == wrong


@pytest.mark.parametrize(
    ("password", "reason"),
    [
        ("short", "has 5 characters; it must have 10 to 1000"),
        ("x" * 1001, "has 1001 characters"),
        ("aaaaaaaaaaab", r"has too few different characters \(2\); it must have 5"),
        ("ann1234567", "must not contain the account name"),
    ],
)
def test_a_password_that_is_guessed_soon_is_refused(password: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        check_password(password, "Ann")


def test_who_waits_for_a_hash_too_long_or_behind_too_many_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "WAIT_SECONDS", 0.0)
    with passwords._turn(), passwords._turn(), pytest.raises(PasswordsBusy):
        passwords.is_password(None, "guess")
    monkeypatch.setattr(passwords, "_queue", threading.BoundedSemaphore(1))
    with passwords._turn(), pytest.raises(PasswordsBusy):
        passwords.hash_password("a few words in a row")
    assert not passwords.is_password(None, "guess")
