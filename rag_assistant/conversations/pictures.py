"""Pictures attached to a question, and what a model without vision gets instead. Pure."""

import base64
import binascii
import re
from collections.abc import Sequence

from msgspec.structs import replace

from rag_assistant.records import DATA_URL, DataUrl, Message, PastTurn, pictures_in, text_in
from rag_assistant.records.errors import InvalidRequest

MAX_PICTURES = 4
MAX_PICTURE_BYTES = 5_000_000
# Their size in a request, in base64.
MAX_PICTURES_CHARS = MAX_PICTURES * (MAX_PICTURE_BYTES * 4 // 3 + 100)
MARKS = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff", "webp": b"RIFF"}
KINDS = "PNG, JPEG or WebP"
ALLOWED = f"a data URL of {KINDS} in base64, such as data:image/png;base64,..., of up to 5 MB"
NOT_TAKEN = (
    'Pictures are switched off for this model. If it accepts them, set "model_images" to true on the server; '
    "otherwise leave them out."
)
FORM = re.compile(DATA_URL)


def check_pictures(pictures: Sequence[DataUrl], *, taken: bool, field: str = "images") -> None:
    """Refuse links, too many, too large or invalid pictures, any if the model takes none. Raises InvalidRequest."""
    if not pictures:
        return
    if not taken:
        raise InvalidRequest(NOT_TAKEN, param=field)
    if len(pictures) > MAX_PICTURES:
        raise InvalidRequest(f"There are {len(pictures)} pictures; the limit is {MAX_PICTURES}.", param=field)
    for n, url in enumerate(pictures):
        kind, content = picture_in(url, f"{field}[{n}]")
        if len(content) > MAX_PICTURE_BYTES:
            megabytes = len(content) / 1_000_000
            raise InvalidRequest(f"{field}[{n}] has {megabytes:.1f} MB; the limit is 5 MB.", param=field)
        if not content.startswith(MARKS[kind]) or (kind == "webp" and content[8:12] != b"WEBP"):
            raise InvalidRequest(f"{field}[{n}] claims to be image/{kind}, but it is not.", param=field)


def picture_in(url: DataUrl, where: str) -> tuple[str, bytes]:
    """Return the type and the bytes of a picture. Raises InvalidRequest."""
    if not FORM.fullmatch(url):
        raise InvalidRequest(f'{where} is "{url[:60]}"; it must be {ALLOWED}.', param=where)
    head, _, content = url.partition(",")
    try:
        return head.removeprefix("data:image/").removesuffix(";base64"), base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise InvalidRequest(f"{where} is not base64; it must be {ALLOWED}.", param=where) from error


def without_pictures(turn: PastTurn) -> PastTurn:
    """Return a turn for a model without vision: it is told that there were pictures."""
    return replace(turn, messages=tuple(map(_told, turn.messages)))


def _told(message: Message) -> Message:
    if not (count := len(pictures_in(message))):
        return message
    return message | {"content": f"{text_in(message)}\n[{count} {'picture' if count == 1 else 'pictures'} not sent]"}
