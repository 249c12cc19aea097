"""Open images: PNG, JPEG, TIFF and WebP. Their text is read by text recognition (text_recognition.py)."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rag_assistant.extraction.formats.kinds import IMAGES
from rag_assistant.extraction.formats.markup import pages_of
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

FORMATS = [kind.removeprefix("image/") for kind in IMAGES]
# A page of A4 at 600 dots per inch has 35 million pixels; 80 million take 240 MB.
MAX_IMAGE_PIXELS = 80_000_000
MAX_IMAGES_IN_FILE = 2_000
# Images have no reliable paper size: the long side is treated as that of A4, in points.
LONG_SIDE_POINTS = 842.0


def read_image(content: bytes, media_type: str) -> ExtractedText:
    """Return no text, and the number of pages to recognise: a TIFF may have many. Raises ExtractionFailed.

    Without the image library it counts as one page.
    """
    try:
        with _opened(BytesIO(content)) as image:
            count = min(int(getattr(image, "n_frames", 1)), MAX_IMAGES_IN_FILE)
            if media_type != "image/tiff":
                count = 1  # Animation frames in a PNG or WebP aren't pages.
    except ModuleNotFoundError:
        count = 1
    return replace(pages_of([""] * count, media_type), scans=tuple(range(1, count + 1)))


def image_page(path: Path, number: int) -> Any:
    """Return an image in a file, counted from 1, upright and in RGB. Raises ExtractionFailed."""
    from PIL import Image, ImageOps

    with _opened(path) as image:
        try:
            image.seek(number - 1)
        except EOFError as error:
            raise ExtractionFailed(f"There is no page {number} in this image.") from error
        _refuse_too_large(image)
        # Transparent areas appear as white paper.
        upright = ImageOps.exif_transpose(image).convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright).convert("RGB")


def points_per_pixel(width: int, height: int) -> float:
    """Return the size of an image's pixel on its assumed page."""
    return LONG_SIDE_POINTS / max(width, height, 1)


@contextmanager
def _opened(file: Path | BytesIO) -> Iterator[Any]:
    """Open an image, and turn the library's errors into a sentence. Raises ExtractionFailed."""
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # The limit is ours, with our own message.
    try:
        with Image.open(file, formats=FORMATS) as image:
            _refuse_too_large(image)
            yield image
    except (ExtractionFailed, MemoryError):
        raise
    except UnidentifiedImageError as error:
        raise ExtractionFailed("This image is damaged and cannot be opened.") from error
    except Exception as error:
        # Pillow raises anything: SyntaxError, struct.error, ValueError, OSError for a truncated file.
        raise ExtractionFailed("This image is damaged and cannot be read.") from error


def _refuse_too_large(image: Any) -> None:
    width, height = image.size
    if width * height > MAX_IMAGE_PIXELS:
        raise ExtractionFailed(
            f"This image has {width} x {height} pixels; the limit is {MAX_IMAGE_PIXELS:,}. Make it smaller and add it "
            "again."
        )
