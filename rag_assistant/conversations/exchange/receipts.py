"""The receipts of a conversation as a self-contained file: one receipt per line, and a signature at the end."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from rag_assistant.history.receipt_chain import canonical
from rag_assistant.runtime.signing import Signer


def signed_receipts(conversation_id: int, links: Iterable[dict[str, Any]], signer: Signer) -> Iterator[bytes]:
    """Yield the lines of the file."""
    count, last_hash = 0, ""
    for link in links:
        yield canonical(link) + b"\n"
        count, last_hash = count + 1, link["hash"]
    seal = {
        "conversation": conversation_id,
        "links": count,
        "hash": last_hash,
        "key": signer.public_key,
        "signed_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    yield canonical(seal | {"signature": signer.sign(canonical(seal))}) + b"\n"
