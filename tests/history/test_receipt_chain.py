"""Receipts as a chain: what is changed in a file of them is found, and what is erased cannot be guessed."""

import io
import json
import random
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.conversations.exchange.export import signed_receipts
from rag_assistant.history.receipt_chain import canonical, check_chain, hash_of_link, hash_of_part, parts_of
from rag_assistant.records.errors import InvalidReceipts
from rag_assistant.runtime.signing import Signer, is_signed

ERASED_AT = "2026-11-28T12:00:00+00:00"


def chain_of(count: int) -> list[dict[str, Any]]:
    links: list[dict[str, Any]] = []
    for n in range(1, count + 1):
        receipt = {
            "quotes": False,
            "request": {"model": "m", "messages": [{"role": "user", "content": f"Q\u00e9 {n}"}]},
        }
        parts = {
            name: {"salt": f"{n:016}{i:016}", "value": value}
            for i, (name, value) in enumerate(parts_of(receipt, f"A {n}").items())
        }
        link = {"conversation": 7, "position": n, "turn": n, "version": 1, "parts": parts}
        link["previous"] = links[-1]["hash"] if links else ""
        links.append(link | {"hash": hash_of_link(link)})
    return links


def erased(part: dict[str, Any]) -> dict[str, Any]:
    return {"hash": hash_of_part(part), "erased_at": ERASED_AT}


def of_release_1_0(links: list[dict[str, Any]], signer: Signer) -> list[bytes]:
    """Return a file as release 1.0 wrote it."""
    seal = {"conversation": 7, "links": len(links), "hash": links[-1]["hash"], "key": signer.public_key}
    seal["signed_at"] = ERASED_AT
    sealed = seal | {"signature": signer.sign(canonical(seal))}
    return [canonical(line) + b"\n" for line in (*links, sealed)]


def is_valid(lines: list[bytes]) -> bool:
    try:
        seal, _ = check_chain(lines)
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
    seal, _ = check_chain(signed_receipts(7, chain_of(1), Signer(tmp_path / "other")))
    assert not is_signed(seal.signed, seal.signature, signer.public_key)


def test_a_key_is_made_once_and_for_its_owner_alone(signer: Signer, tmp_path: Path) -> None:
    assert list(tmp_path.iterdir()) == []
    assert signer.public_key == Signer(tmp_path).public_key
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_erased_part_leaves_the_chain_whole_and_cannot_be_guessed(signer: Signer) -> None:
    links = chain_of(2)
    part = links[0]["parts"]["answer"]
    links[0]["parts"]["answer"] = erased(part)
    links[1]["parts"]["answer"] = {"hash": hash_of_part(links[1]["parts"]["answer"])}
    lines = list(signed_receipts(7, links, signer))
    assert is_valid(lines)
    assert b"A 1" not in lines[0]
    assert check_chain(lines)[1] == {ERASED_AT: 1, "": 1}
    salt = json.loads(lines[0])["parts"]["quotes"]["salt"]
    guesses = ({"salt": "0" * 32, "value": "A 1"}, {"salt": salt, "value": "A 1"})
    assert hash_of_part(part) not in map(hash_of_part, guesses)


def test_only_the_owner_can_erase_a_part_or_date_it(signer: Signer) -> None:
    lines = list(signed_receipts(7, chain_of(1), signer))
    link = json.loads(lines[0])
    link["parts"]["answer"] = erased(link["parts"]["answer"])
    assert not is_valid([canonical(link) + b"\n", lines[1]])
    links = chain_of(1)
    links[0]["parts"]["answer"] = erased(links[0]["parts"]["answer"])
    lines = list(signed_receipts(7, links, signer))
    assert is_valid(lines)
    for time in ("2020-01-01T00:00:00+00:00", ""):
        assert not is_valid([lines[0].replace(ERASED_AT.encode(), time.encode()), lines[1]])


def test_a_file_of_release_1_0_verifies_as_such_and_no_newer_one_can_pass_as_one(signer: Signer) -> None:
    links = chain_of(2)
    links[0]["parts"]["answer"] = {"hash": hash_of_part(links[0]["parts"]["answer"])}
    lines = of_release_1_0(links, signer)
    assert is_valid(lines)
    assert not check_chain(lines)[0].lines
    links[0]["parts"]["answer"]["erased_at"] = ERASED_AT
    assert not is_valid([canonical(links[0]) + b"\n", *lines[1:]])
    seal = json.loads(list(signed_receipts(7, chain_of(2), signer))[-1])
    for older in ({name: value for name, value in seal.items() if name != "lines"}, seal | {"lines": ""}):
        assert not is_valid([*(canonical(link) + b"\n" for link in chain_of(2)), canonical(older) + b"\n"])


def test_a_thousand_mutations_of_a_file_are_found_in_both_formats(signer: Signer) -> None:
    rng, lie = random.Random(58), "The opposite."

    def parts(part: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what a forger makes of a part, with the hash that a careless verifier computes."""
        salt, text, own = part["salt"], canonical(part["value"]).decode(), {"hash": hash_of_part(part)}
        moved = [(salt + text[:cut], text[cut:]) for cut in range(1, len(text))]
        moved += [(salt[:cut], salt[cut:] + text) for cut in range(len(salt))]
        return [
            *(
                own | more
                for more in ({"value": lie}, part, part | {"value": lie}, {"salt": salt}, {"erased_at": "now"})
            ),
            *(part | more for more in ({"hash": ""}, {"hash": None}, {"note": lie}, {"salt": salt.upper() + " "})),
            *({"salt": salt, "value": json.loads(text)} for salt, text in moved if is_json(text)),
            {"hash": [own["hash"]]},
            {"hash": own["hash"].upper()},
            {"salt": salt},
        ]

    def values(value: Any) -> list[Any]:
        return [None, True, -0.0, 1.0, 1, 10**30, "", lie, [], {}, [value], {"value": value}, f"{value} ", "\ud800"]

    def mutated(lines: list[bytes]) -> list[bytes]:
        """Return a file in which one thing is another; its hashes may be those of the changed file."""
        n = rng.randrange(len(lines))
        line, entry = lines[n], json.loads(lines[n])
        place, kind = rng.randrange(len(line)), rng.randrange(6)
        if kind == 0:
            other = rng.choice((b"", b"0", b" ", b"\\u0041", line[place : place + 1] * 2))
            return [*lines[:n], line[:place] + other + line[place + 1 :], *lines[n + 1 :]]
        if kind == 1:
            spellings = [(b"\\u00e9", b"e\\u0301"), (b"\\u00e9", b"\\u00E9"), (b"\\u00e9", b"\xc3\xa9")]
            spellings += [(b":1,", other) for other in (b":1.0,", b":1e0,", b":01,", b":-0,", b":true,", b":NaN,")]
            spellings += [(b'"turn"', b'"turn":1,"turn"'), (b'"key"', b'"key":"","key"'), (b"{", b'{"a":1,')]
            return [*lines[:n], line.replace(*rng.choice(spellings), rng.choice((1, 9))), *lines[n + 1 :]]
        holder = entry
        if kind in (2, 3) and "parts" in entry:
            name = rng.choice(list(entry["parts"]))
            entry["parts"][name] = rng.choice(parts(entry["parts"][name]))
        else:
            while (inner := [value for value in holder.values() if isinstance(value, dict)]) and rng.random() < 0.7:
                holder = rng.choice(inner)
            name = rng.choice([*holder, "unknown"])
            holder[name] = rng.choice(values(holder.get(name)))
            if rng.random() < 0.2:
                del holder[name]
        with suppress(Exception):
            entry["hash"] = hash_of_link(entry) if rng.random() < 0.5 else entry["hash"]
        forged = [
            *lines[:n],
            json.dumps(entry, sort_keys=True, separators=(",", ":")).encode() + b"\n",
            *lines[n + 1 :],
        ]
        seal = json.loads(lines[-1])
        if "lines" in seal and n < len(lines) - 1 and rng.random() < 0.5:
            forged[-1] = canonical(seal | {"lines": sha256(b"".join(forged[:-1])).hexdigest()}) + b"\n"
        return forged

    for lines in (list(signed_receipts(7, chain_of(3), signer)), of_release_1_0(chain_of(3), signer)):
        assert is_valid(lines)
        forgeries = [forged for forged in (mutated(lines) for _ in range(1200)) if forged != lines]
        assert len(forgeries) >= 1000
        assert [forged for forged in forgeries if is_valid(forged)] == []


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
