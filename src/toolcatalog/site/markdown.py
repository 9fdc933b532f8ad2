"""Markdown rendering: catalog texts to safe HTML.

Texts are CommonMark without raw HTML. The resulting HTML then passes a sanitizer that knows nothing
of Markdown and allows only a short list of elements: two independent barriers, so that a mistake in
one is not a vulnerability. An image becomes its alternative text, because loading it would tell its
host who reads the page. A heading becomes a strong paragraph, so that it does not change the
outline of the page.

A text must not tell a model anything that a reader cannot see. So invisible characters are replaced
by their names (they could also reverse a line), and reference definitions are shown as written, as
are texts nested deeper than the parser's limit.

Most texts contain no Markdown and are only escaped. `_PLAIN` selects them: it may send a plain text
through the parser, but never skips the parser for a text with markup.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import nh3
from markdown_it import MarkdownIt

from toolcatalog.textutils import ALWAYS_HIDDEN, escape_hidden

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

INLINE_TAGS = frozenset(("em", "strong", "code", "a", "br"))
BLOCK_TAGS = INLINE_TAGS | {"p", "pre", "ul", "ol", "li", "blockquote"}
URL_SCHEMES = frozenset(("http", "https", "mailto"))
LINK_REL = "nofollow noreferrer"

# Texts beyond these limits are shown as written, because parsing would take too long: in the worst
# case the parser scans from each bracket to the end.
_MAX_MARKS = 5_000  # a manual of thirty thousand characters has some 3,000
_MAX_STEPS = 2_000_000  # brackets by characters
_MAX_NESTING = 20  # nested containers; the parser drops deeper ones
_MAX_CACHED_LENGTH = 500  # characters: texts that repeat are short

# Characters without meaning in Markdown; `_` inside a word; `&` that starts no entity.
_PLAIN_CHARS = rf"[^\\`*_\[<&\n\r{ALWAYS_HIDDEN}\u200c\u200d\ufe00-\ufe0f]++"
_PLAIN_RUN = rf"(?:{_PLAIN_CHARS}|(?<=[A-Za-z0-9])_(?=[A-Za-z0-9])|&(?= ))"
_PLAIN = re.compile(rf"{_PLAIN_RUN}*+")
# every line begins with a letter
_PLAIN_BLOCK = re.compile(rf"(?=[^\W\d_])(?:{_PLAIN_RUN}|(?<!\s)\n++(?=[^\W\d_]))*+")
_PARAGRAPH_BREAK = re.compile(r"\n\n+")
_MARKS = re.compile(r"[\n\r!$%&*+:<=>@\[\\\]^_`{}~#-]")  # characters where the parser stops


def render_inline(text: str) -> str:
    """Render a text within a line, such as the description of a parameter, to safe HTML.

    Paragraphs, lists and headings stay as written.
    """
    text = text.strip()
    return _escape(text) if _PLAIN.fullmatch(text) else _render_cached(_render_inline, text)


# names after the fence of a code block; other texts there are shown, because a model reads them
_LANGUAGES = frozenset(
    [
        "",
        "bash",
        "console",
        "css",
        "csv",
        "diff",
        "go",
        "graphql",
        "html",
        "http",
        "ini",
        "java",
        "javascript",
        "js",
        "json",
        "jsonc",
        "markdown",
        "md",
        "php",
        "powershell",
        "python",
        "py",
        "ruby",
        "rust",
        "sh",
        "shell",
        "sql",
        "text",
        "toml",
        "ts",
        "typescript",
        "xml",
        "yaml",
        "yml",
    ]
)


def render_block(text: str) -> str:
    """Render a block of text, such as the description of a tool, to safe HTML with `BLOCK_TAGS`.

    An empty text gives an empty result.
    """
    text = text.rstrip()
    if not _PLAIN_BLOCK.fullmatch(text):
        return _render_cached(_render_block, text)
    html = _escape(text)
    if "\n" in html:
        html = _PARAGRAPH_BREAK.sub("</p>\n<p>", html)
    return f"<p>{html}</p>"


def preload() -> None:
    """Load the Markdown libraries, once for all processes that are forked from this one."""
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
    for token in tokens:
        if token.type == "fence" and token.info.strip() not in _LANGUAGES:
            token.content = f"{token.info}\n{token.content}"
    return _sanitize(_load_parser().renderer.render(tokens, _load_parser().options, {}), BLOCK_TAGS)


def _is_too_complex(text: str) -> bool:
    return text.count("[") * len(text) > _MAX_STEPS or len(_MARKS.findall(text)) > _MAX_MARKS


def _replace_surrogates(text: str) -> str:
    """Return the text with U+FFFD for lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str) -> str:
    """Escape a text exactly as the sanitizer does."""
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\xa0", "&nbsp;")
    )


def _sanitize(html: str, tags: frozenset[str]) -> str:
    """Return the HTML with only the allowed elements.

    Hidden characters are replaced last: URLs are percent-encoded by then, so any left are in texts.
    """
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
def _load_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING}).disable(
        "reference"
    )
    # `_remove_unsafe_links` checks links; images may have any URL
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    parser.core.ruler.push("unlink", _remove_unsafe_links)
    rules = {"heading_open": "<p><strong>", "heading_close": "</strong></p>\n", "hr": ""}
    fixed = {name: lambda *_, html=html: html for name, html in rules.items()}
    renderers = parser.renderer.rules  # type: ignore[attr-defined]  # the HTML renderer has them
    renderers |= fixed
    renderers["image"] = lambda tokens, index, *_: _escape(_alt_text(tokens[index]))
    return parser


def _remove_unsafe_links(state: "StateCore") -> None:
    """Replace links by their text, unless they lead to the web or to mail."""
    kept = True
    for child in (child for token in state.tokens for child in token.children or ()):
        if child.type == "link_open":
            kept = str(child.attrs["href"]).partition(":")[0].lower() in URL_SCHEMES
        if child.type in ("link_open", "link_close") and not kept:
            child.type, child.content = "text", ""


def _alt_text(image: "Token") -> str:
    """Return the alternative text of an image, including that of images in it."""
    return "".join(
        _alt_text(child) if child.type == "image" else _token_text(child)
        for child in image.children or ()
    )


def _token_text(token: "Token") -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content
