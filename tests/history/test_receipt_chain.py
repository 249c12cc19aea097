"""Receipts as a chain: what is changed in a file of them is found, and what is erased cannot be guessed."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.conversations.exchange.export import signed_receipts
from rag_assistant.history.receipt_chain import check_chain, hash_of_link, hash_of_part, parts_of
from rag_assistant.records.errors import InvalidReceipts
from rag_assistant.runtime.signing import Signer, is_signed


def chain_of(count: int) -> list[dict[str, Any]]:
    links: list[dict[str, Any]] = []
    for n in range(1, count + 1):
        receipt = {
            "quotes": False,
            "request": {"model": "m", "messages": [{"role": "user", "content": f"Q\u00e9 {n}"}]},
        }
        parts = {
            name: {"salt": f"{n:02}{i:02}", "value": value}
            for i, (name, value) in enumerate(parts_of(receipt, f"A {n}").items())
        }
        link = {"conversation": 7, "position": n, "turn": n, "version": 1, "parts": parts}
        link["previous"] = links[-1]["hash"] if links else ""
        links.append(link | {"hash": hash_of_link(link)})
    return links


def is_valid(lines: list[bytes]) -> bool:
    try:
        seal = check_chain(lines)
    except InvalidReceipts:
        return False
    return is_signed(seal.signed, seal.signature, seal.key)


def lines_of(file: bytes) -> list[bytes]:
    return list(io.BytesIO(file))


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path)


def test_every_flipped_bit_is_found(signer: Signer) -> None:
    whole = b"".join(signed_receipts(7, chain_of(1), signer))
    assert is_valid(lines_of(whole))
    for n, byte in enumerate(whole):
        for bit in range(8):
            assert not is_valid(lines_of(bytes((*whole[:n], byte ^ (1 << bit), *whole[n + 1 :])))), (n, bit)


def test_what_is_left_out_swapped_added_or_cut_off_is_found(signer: Signer) -> None:
    lines = list(signed_receipts(7, chain_of(4), signer))
    other = list(signed_receipts(7, chain_of(5), signer))
    assert is_valid(lines)
    for wrong in (
        lines[:1] + lines[2:],
        [lines[1], lines[0], *lines[2:]],
        lines[1:],
        lines[:-1],
        [*lines[:3], lines[-1]],
        [*other[:5], lines[-1]],
        [*lines, lines[0]],
        [*lines, lines[-1]],
        [],
    ):
        assert not is_valid(wrong)


def test_another_key_does_not_sign_for_the_installation(signer: Signer, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    seal = check_chain(signed_receipts(7, chain_of(1), Signer(tmp_path / "other")))
    assert not is_signed(seal.signed, seal.signature, signer.public_key)


def test_a_key_is_made_once_and_for_its_owner_alone(signer: Signer, tmp_path: Path) -> None:
    assert list(tmp_path.iterdir()) == []
    assert signer.public_key == Signer(tmp_path).public_key
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_erased_part_leaves_the_chain_whole_and_cannot_be_guessed(signer: Signer) -> None:
    links = chain_of(2)
    part = links[0]["parts"]["answer"]
    links[0]["parts"]["answer"] = {"hash": hash_of_part(part)}
    lines = list(signed_receipts(7, links, signer))
    assert is_valid(lines)
    assert b"A 1" not in lines[0]
    assert check_chain(lines).erased == 1
    guesses = ({"salt": "", "value": "A 1"}, {"salt": json.loads(lines[0])["parts"]["quotes"]["salt"], "value": "A 1"})
    assert hash_of_part(part) not in map(hash_of_part, guesses)
