"""Scripts and style sheets: made small, and kept by browsers for good, since a change of any gives all a new address.

The sheets go out as one, scripts without their comments.

The version stands in the path, so that a module's imports carry it along. Pages and the API are never compressed: where
secrets and what a stranger chose stand in one answer, its length would tell of them (BREACH).
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import rjsmin
from flask import Flask, Response, abort, request, url_for
from flask_compress import Compress
from werkzeug.security import safe_join

KEPT_FOR_GOOD = "public, max-age=31536000, immutable"
# A page of before an update asks for the files of before it; what it gets instead is not to be kept.
NOT_KEPT = "no-cache"
VERSION_LENGTH = 12
# The order is that of the cascade.
SHEETS = (
    "base frame sidebar transcript answers sources composer window receipt documents document uploads settings".split()
)
ALL_SHEETS = "all.css"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def init_app(app: Flask) -> None:
    """Serve the static files under their version, and let templates address them so."""
    folder = Path(app.static_folder or "")
    current = version_of(folder)
    modules = [f"js/{path.name}" for path in sorted((folder / "js").glob("*.js"))]
    app.config.update(
        COMPRESS_REGISTER=False,
        COMPRESS_MIMETYPES=["text/javascript", "text/css"],
        COMPRESS_ALGORITHM=["br", "gzip"],
        COMPRESS_BR_LEVEL=5,
    )
    compress = Compress(app)

    @app.get("/static/v-<version>/<path:filename>")
    @compress.compressed()
    def versioned_static(version: str, filename: str) -> Response:
        content = content_of(folder, filename)
        if content is None:
            abort(404)
        # Whole: the files are small, and a response that is streamed is compressed less well.
        response = Response(content, content_type=MEDIA_TYPES[Path(filename).suffix])
        response.headers["Cache-Control"] = KEPT_FOR_GOOD if version == current else NOT_KEPT
        if version != current:
            response.add_etag()
            response.make_conditional(request)
        return response

    @app.template_global()
    def static_url(filename: str) -> str:
        return url_for("versioned_static", version=current, filename=filename)

    @app.template_global()
    def script_modules() -> list[str]:
        """Return every module, so that a page can ask for all at once instead of finding one behind the other."""
        return modules


def content_of(folder: Path, filename: str) -> str | bytes | None:
    """Return what goes over the wire for a file of the folder, ``None`` where there is none that is served."""
    if filename == ALL_SHEETS:
        return "".join((folder / f"{name}.css").read_text() for name in SHEETS)
    path = Path(safe_join(str(folder), filename) or folder)
    if path.suffix not in MEDIA_TYPES or not path.is_file():
        return None
    return rjsmin.jsmin(path.read_text()) if path.suffix == ".js" else path.read_bytes()


def version_of(folder: Path) -> str:
    """Return a text that is another one whenever any file in the folder is."""
    known = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        known.update(str(path.relative_to(folder)).encode() + b"\0" + sha256(path.read_bytes()).digest())
    return known.hexdigest()[:VERSION_LENGTH]
