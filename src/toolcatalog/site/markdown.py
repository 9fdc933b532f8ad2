"""Markdown rendering: catalog texts to safe HTML.

CommonMark without raw HTML. Of what that makes, only a short list of elements is let through by a sanitizer that knows nothing of
Markdown: two gates, so that a slip in one lets nothing in. An image becomes its alternative text, because whoever serves an image
learns who reads; a heading becomes a strong paragraph, so that the outline of a page stays its own.

Nothing may say to a model what no reader sees. A character that cannot be seen is named instead (it could turn a line around, too),
definitions of references stand there as written, and so does a text that is nested deeper than the parser goes.

Most texts have no Markdown in them. They are escaped and no more; what tells them apart, `_PLAIN`, may send a plain text the long way,
never a marked one the short way.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from toolcatalog.textutils import ALWAYS_HIDDEN, escape_hidden

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

INLINE_TAGS = frozenset(("em", "strong", "code", "a", "br"))
BLOCK_TAGS = INLINE_TAGS | {"p", "pre", "ul", "ol", "li", "blockquote"}
URL_SCHEMES = frozenset(("http", "https", "mailto"))
LINK_REL = "nofollow noreferrer"

# What goes beyond is shown as written, because the parser would take long: it goes on from each
# bracket to the end, in the worst case.
_MAX_MARKS = 5_000  # a manual of thirty thousand characters has some 3,000
_MAX_STEPS = 2_000_000  # brackets by characters
_MAX_NESTING = 20  # containers within one another; what is deeper the parser leaves out
_MAX_CACHED_LENGTH = 500  # characters of a text that is remembered: what comes again is short

# A run of characters that mean nothing to Markdown; `_` inside a word; `&` that begins no entity.
_PLAIN_RUN = rf"(?:[^\\`*_\[<&\n\r{ALWAYS_HIDDEN}\u200c\u200d\ufe00-\ufe0f]++|(?<=[A-Za-z0-9])_(?=[A-Za-z0-9])|&(?= ))"
_PLAIN = re.compile(rf"{_PLAIN_RUN}*+")
# every line begins with a letter
_PLAIN_BLOCK = re.compile(rf"(?=[^\W\d_])(?:{_PLAIN_RUN}|(?<!\s)\n++(?=[^\W\d_]))*+")
_PARAGRAPH_BREAK = re.compile(r"\n\n+")
_MARKS = re.compile(r"[\n\r!$%&*+:<=>@\[\\\]^_`{}~#-]")  # where the parser stops


def render_inline(text: str) -> Markup:
    """A text within a line, such as the description of a parameter; what would be a paragraph, list
    or heading stays as written.
    """
    text = text.strip()
    return Markup(_escape(text) if _PLAIN.fullmatch(text) else _render_cached(_render_inline, text))  # noqa: S704 - escaped, or sanitized


def render_block(text: str) -> Markup:
    """A text of its own, such as the description of a tool: paragraphs and whatever else `BLOCK`
    lists. Empty where there is no text.
    """
    text = text.rstrip()
    if not _PLAIN_BLOCK.fullmatch(text):
        return Markup(_render_cached(_render_block, text))  # noqa: S704 - sanitized
    return Markup("<p>" + _PARAGRAPH_BREAK.sub("</p>\n<p>", _escape(text)) + "</p>")  # noqa: S704 - escaped


def preload() -> None:
    """Load what texts with Markdown need, once for all the processes that are begun from this one."""
    render_block("*")


def _render_cached(make: Callable[[str], str], text: str) -> str:
    return _cached(make, text) if len(text) <= _MAX_CACHED_LENGTH else make(text)


@lru_cache(maxsize=4096)
def _cached(make: Callable[[str], str], text: str) -> str:
    return make(text)


def _render_inline(text: str) -> str:
    text = _replace_surrogates(text)
    return (
        _escape_hidden(_escape(text))
        if _is_too_complex(text)
        else _sanitize(_load_parser().renderInline(text), INLINE_TAGS)
    )


def _render_block(text: str) -> str:
    text = _replace_surrogates(text)
    tokens = [] if _is_too_complex(text) else _load_parser().parse(text)
    if (text and not tokens) or any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return _escape_hidden(f"<pre>{_escape(text)}</pre>")
    return _sanitize(_load_parser().renderer.render(tokens, _load_parser().options, {}), BLOCK_TAGS)


def _is_too_complex(text: str) -> bool:
    return text.count("[") * len(text) > _MAX_STEPS or len(_MARKS.findall(text)) > _MAX_MARKS


def _replace_surrogates(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which have no UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str) -> str:
    """Exactly as the sanitizer writes a text."""
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\xa0", "&nbsp;")
    )


def _sanitize(html: str, tags: frozenset[str]) -> str:
    """What the list lets through. Names come last: addresses are percent-encoded, so whatever is
    hidden stands in a text.
    """
    import nh3  # noqa: PLC0415 - a build that has no page to make does without

    return _escape_hidden(
        nh3.clean(
            html,
            tags=set(tags),
            attributes={"*": set(), "a": {"href"}},
            url_schemes=set(URL_SCHEMES),
            link_rel=LINK_REL,
        ).strip()
    )


def _escape_hidden(html: str) -> str:
    return escape_hidden(html, "<code>U+{}</code>".format)


@cache
def _load_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - likewise

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING}).disable(
        "reference"
    )
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005 - `_unlink` asks: images may have any address
    parser.core.ruler.push("unlink", _remove_unsafe_links)
    rules = {"heading_open": "<p><strong>", "heading_close": "</strong></p>\n", "hr": ""}
    parser.renderer.rules |= {name: lambda *_, html=html: html for name, html in rules.items()}  # type: ignore[attr-defined]  # of HTML
    parser.renderer.rules["image"] = lambda tokens, index, *_: _escape(_alt_text(tokens[index]))  # type: ignore[attr-defined]  # likewise
    return parser


def _remove_unsafe_links(state: "StateCore") -> None:
    """Leave of a link that leads elsewhere than to the web or to mail only its text."""
    kept = True
    for child in (child for token in state.tokens for child in token.children or ()):
        if child.type == "link_open":
            kept = str(child.attrs["href"]).partition(":")[0].lower() in URL_SCHEMES
        if child.type in ("link_open", "link_close") and not kept:
            child.type, child.content = "text", ""


def _alt_text(image: "Token") -> str:
    """The words of an image's alternative text; images in it count by theirs."""
    return "".join(
        _alt_text(child) if child.type == "image" else _token_text(child)
        for child in image.children or ()
    )


def _token_text(token: "Token") -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content
