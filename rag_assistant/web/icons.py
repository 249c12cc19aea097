"""Our own icons, in the colour of the text around them."""

from __future__ import annotations

from flask import Flask
from markupsafe import Markup, escape

# By their names, the paths of drawings in a square of 24.
DRAWINGS = {
    "attach": (
        "M19 11.5l-7.4 7.4a4.6 4.6 0 0 1-6.5-6.5l7.8-7.8a3.1 3.1 0 0 1 4.4 4.4l-7.8 7.8a1.5 1.5 0 0 1-2.2-2.2l7-7"
    ),
    "menu": "M4 7h16M4 12h16M4 17h16",
    "new": "M12 5v14M5 12h14",
    "search": "M11 4.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 0 1 0-13zM16 16l4 4",
    "documents": "M7 3.5h7l4 4v13H7zM14 3.5v4h4M10 12.5h5M10 16h5",
    "settings": "M4 8h9M17 8h3M4 16h3M11 16h9M15 6v4M9 14v4",
    "person": "M12 4a4 4 0 1 1 0 8a4 4 0 0 1 0-8zM4.5 20c.6-4 3.5-6 7.5-6s6.9 2 7.5 6",
    "trash": "M5 7h14M10 4h4M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
    "keyboard": "M3.5 7h17v10h-17zM7 10.5h.01M10.3 10.5h.01M13.6 10.5h.01M17 10.5h.01M8 13.8h8",
    "help": (
        "M12 3.5a8.5 8.5 0 1 1 0 17a8.5 8.5 0 0 1 0-17zM9.4 9.6a2.6 2.6 0 1 1 3.9 2.3c-.9.5-1.3 1-1.3 2M12 16.8h.01"
    ),
    "sidebar": "M4 5h16v14H4zM9.5 5v14",
    "more": "M6 12h.01M12 12h.01M18 12h.01",
    "pin": "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
    "branch": "M7 4v16M7 15c6 0 10-2 10-7M14 9l3-3 3 3",
    "close": "M6 6l12 12M18 6L6 18",
    "system": "M4 5h16v11H4zM9 20h6",
    "light": (
        "M12 8a4 4 0 1 1 0 8a4 4 0 0 1 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 "
        "17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4"
    ),
    "dark": "M19 14.5A7.5 7.5 0 0 1 9.5 5a7.5 7.5 0 1 0 9.5 9.5z",
    "copy": (
        "M10 8h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-8a2 2 0 0 1-2-2v-8a2 2 0 0 1 2-2zM16 8V6a2 2 0 0 0-2-2H6a2 2 "
        "0 0 0-2 2v8a2 2 0 0 0 2 2h2"
    ),
    "regenerate": "M19.8 9.8A8.2 8.2 0 1 0 20.2 13.5M20.2 4.5v5.3H15",
    "edit": "M16.2 4.8l3 3L9 18l-4.2 1.2L6 15zM14.2 6.8l3 3",
    "eye": (
        "M2.3 12S6 5.7 12 5.7 21.7 12 21.7 12 18 18.3 12 18.3 2.3 12 2.3 12zM12 9.2a2.8 2.8 0 1 1 0 5.6a2.8 "
        "2.8 0 0 1 0-5.6z"
    ),
    "up": "M4 11h3v9H4zM7 11l4-7.5c1.7 0 2.6 1.2 2.3 2.8L12.6 10H18a2 2 0 0 1 2 2.3l-1.2 6A2 2 0 0 1 16.8 20H7",
    "down": "M4 13h3V4H4zM7 13l4 7.5c1.7 0 2.6-1.2 2.3-2.8L12.6 14H18a2 2 0 0 0 2-2.3l-1.2-6A2 2 0 0 0 16.8 4H7",
    "previous": "M14.2 6l-6 6 6 6",
    "next": "M9.8 6l6 6-6 6",
}
_SVG = '<svg class="icon icon-{}" viewBox="0 0 24 24" aria-hidden="true"><path d="{}"/></svg>'
_ICONS = {name: _SVG.format(name, path) for name, path in DRAWINGS.items()}


def init_app(app: Flask) -> None:
    """Let templates draw icons."""
    app.add_template_global(icon)


def icon(name: str, label: str = "") -> Markup:
    """Return an icon, with a label for those who do not see it. In Python, since a page has a hundred of them."""
    said = f'<span class="visually-hidden">{escape(label)}</span>' if label else ""
    return Markup(_ICONS[name] + said)  # noqa: S704 - Our own drawing, and a label that is escaped.
