"""How often one may try: slower after each failure, and never so that the owner waits for an attacker."""

import tracemalloc

import pytest

from rag_assistant.accounts.passwords import (
    FREE_FOR_BOTH,
    FREE_FOR_ONE,
    FREE_SUCCESSES,
    MAX_WAIT_SECONDS,
    Throttle,
    network_of,
)
from rag_assistant.records.errors import TooManyAttempts


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> Throttle:
    return Throttle(clock)


def fail(throttle: Throttle, times: int, account: str = "ann", address: str = "192.0.2.1", known: bool = False) -> None:
    for _ in range(times):
        throttle.attempt(account, address, known_address=known)


def test_some_failures_are_free_and_then_each_takes_twice_as_long(throttle: Throttle, clock: Clock) -> None:
    fail(throttle, FREE_FOR_BOTH)
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        with pytest.raises(TooManyAttempts) as refused:
            throttle.attempt("ann", "192.0.2.1", known_address=False)
        assert refused.value.retry_after_seconds == pause
        clock.now += pause
        throttle.attempt("ann", "192.0.2.1", known_address=False)


def test_success_and_time_forget(throttle: Throttle, clock: Clock) -> None:
    fail(throttle, FREE_FOR_BOTH)
    throttle.succeeded("ann", "192.0.2.1", known_address=False)
    fail(throttle, FREE_FOR_BOTH)
    clock.now += 901
    fail(throttle, FREE_FOR_BOTH)


def test_an_account_is_slow_from_everywhere_but_where_its_owner_is_signed_in(throttle: Throttle) -> None:
    for n in range(FREE_FOR_ONE):
        throttle.attempt("ann", f"198.51.100.{n}", known_address=False)
    with pytest.raises(TooManyAttempts):
        throttle.attempt("ann", "203.0.113.7", known_address=False)
    throttle.attempt("ann", "203.0.113.7", known_address=True)
    throttle.attempt("ben", "203.0.113.7", known_address=False)


def test_an_address_that_tries_many_accounts_is_slow(throttle: Throttle) -> None:
    for n in range(FREE_FOR_ONE):
        throttle.attempt(f"person {n}", "192.0.2.1", known_address=False)
    with pytest.raises(TooManyAttempts):
        throttle.attempt("ann", "192.0.2.1", known_address=False)
    throttle.attempt("ann", "192.0.2.2", known_address=False)


def test_nobody_waits_longer_than_a_minute(throttle: Throttle, clock: Clock) -> None:
    for _ in range(200):
        clock.now += MAX_WAIT_SECONDS
        throttle.attempt("ann", "192.0.2.1", known_address=True)


def test_a_subscriber_with_many_ipv6_addresses_is_one() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") == "2001:db8::/64"
    assert network_of("192.0.2.1") == "192.0.2.1"
    assert network_of("no address") == "no address"


def test_long_names_are_not_kept(throttle: Throttle) -> None:
    tracemalloc.start()
    try:
        for n in range(FREE_FOR_ONE):
            throttle.attempt(f"{n}" + "a" * 480_000, "192.0.2.1", known_address=False)
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


def test_whoever_signs_in_again_and_again_waits_too(throttle: Throttle, clock: Clock) -> None:
    for _ in range(FREE_SUCCESSES):
        throttle.attempt("ann", "192.0.2.1", known_address=True)
        throttle.succeeded("ann", "192.0.2.1", known_address=True)
    with pytest.raises(TooManyAttempts):
        throttle.attempt("ann", "192.0.2.1", known_address=True)
    throttle.attempt("ann", "192.0.2.9", known_address=False)
    clock.now += 1
    throttle.attempt("ann", "192.0.2.1", known_address=True)
