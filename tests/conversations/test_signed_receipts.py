"""A file of receipts: whatever is changed in it is found."""

from pathlib import Path
from typing import Any

import pytest

from rag_assistant.conversations.exchange.export import Signer, check_receipts, signed_receipts
from rag_assistant.records.errors import InvalidReceipts


def receipts(count: int) -> list[dict[str, Any]]:
    request = {"model": "m", "messages": [{"role": "user", "content": "Q\u00e9"}]}
    return [
        {"conversation": 7, "turn": n, "version": 1, "receipt": {"request": request}, "answer": f"A {n}"}
        for n in range(1, count + 1)
    ]


def is_valid(lines: list[bytes]) -> bool:
    try:
        return bool(check_receipts(lines))
    except InvalidReceipts:
        return False


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path)


def test_every_flipped_bit_is_found(signer: Signer) -> None:
    whole = b"".join(signed_receipts(7, receipts(1), signer))
    assert is_valid(whole.splitlines(keepends=True))
    for n, byte in enumerate(whole):
        for bit in range(8):
            changed = bytes((*whole[:n], byte ^ (1 << bit), *whole[n + 1 :]))
            assert not is_valid(changed.splitlines(keepends=True)), (n, bit)


def test_what_is_left_out_swapped_added_or_cut_off_is_found(signer: Signer, tmp_path: Path) -> None:
    lines = list(signed_receipts(7, receipts(4), signer))
    other = list(signed_receipts(7, receipts(5), signer))
    assert is_valid(lines)
    assert check_receipts(lines).receipts == 4
    assert is_valid(list(signed_receipts(7, [], signer)))
    for wrong in (
        lines[1:],
        lines[:1] + lines[2:],
        [lines[1], lines[0], *lines[2:]],
        lines[:-1],
        [*lines, lines[-1]],
        [*lines[:-1], other[4], lines[-1]],
        [*lines[:-1], other[-1]],
        [*lines[:-1], lines[-1].rstrip()],
        [b"\xff\n"],
        [],
    ):
        assert not is_valid(wrong), wrong


def test_a_file_of_release_1_0_is_named(signer: Signer) -> None:
    seal = b'{"conversation":7,"hash":"00","key":"00","links":0,"signature":"00","signed_at":""}\n'
    with pytest.raises(InvalidReceipts, match=r"Release 1\.0 wrote and checks another format"):
        check_receipts([seal])
