r"""Text that a catalog says, perhaps with Markdown in it, to HTML that is safe inside an element; never for an attribute. Pure.

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

from toolcatalog.unseen import NEVER, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

INLINE = frozenset(("em", "strong", "code", "a", "br"))
BLOCK = INLINE | {"p", "pre", "ul", "ol", "li", "blockquote"}
SCHEMES = frozenset(("http", "https", "mailto"))
REL = "nofollow noreferrer"

# What goes beyond is shown as written, because the parser would take long: it goes on from each
# bracket to the end, in the worst case.
_MOST_MARKS = 5_000  # a manual of thirty thousand characters has some 3,000
_MOST_STEPS = 2_000_000  # brackets by characters
_DEEPEST = 20  # containers within one another; what is deeper the parser leaves out
_LONGEST_KEPT = 500  # characters of a text that is remembered: what comes again is short

# A run of characters that mean nothing to Markdown; `_` inside a word; `&` that begins no entity.
_RUN = rf"(?:[^\\`*_\[<&\n\r{NEVER}\u200c\u200d\ufe00-\ufe0f]++|(?<=[A-Za-z0-9])_(?=[A-Za-z0-9])|&(?= ))"
_PLAIN = re.compile(rf"{_RUN}*+")
# every line begins with a letter
_PLAIN_BLOCK = re.compile(rf"(?=[^\W\d_])(?:{_RUN}|(?<!\s)\n++(?=[^\W\d_]))*+")
_BREAK = re.compile(r"\n\n+")
_MARKS = re.compile(r"[\n\r!$%&*+:<=>@\[\\\]^_`{}~#-]")  # where the parser stops


def inline(text: str) -> Markup:
    """A text within a line, such as the description of a parameter; what would be a paragraph, list
    or heading stays as written.
    """
    text = text.strip()
    return Markup(_escaped(text) if _PLAIN.fullmatch(text) else _remembered(_inline, text))  # noqa: S704 - escaped, or sanitized


def block(text: str) -> Markup:
    """A text of its own, such as the description of a tool: paragraphs and whatever else `BLOCK`
    lists. Empty where there is no text.
    """
    text = text.rstrip()
    if not _PLAIN_BLOCK.fullmatch(text):
        return Markup(_remembered(_block, text))  # noqa: S704 - sanitized
    return Markup("<p>" + _BREAK.sub("</p>\n<p>", _escaped(text)) + "</p>")  # noqa: S704 - escaped


def prepare() -> None:
    """Load what texts with Markdown need, once for all the processes that are begun from this one."""
    block("*")


def _remembered(make: Callable[[str], str], text: str) -> str:
    return _kept(make, text) if len(text) <= _LONGEST_KEPT else make(text)


@lru_cache(maxsize=4096)
def _kept(make: Callable[[str], str], text: str) -> str:
    return make(text)


def _inline(text: str) -> str:
    text = _whole(text)
    return (
        _named(_escaped(text)) if _is_heavy(text) else _clean(_parser().renderInline(text), INLINE)
    )


def _block(text: str) -> str:
    text = _whole(text)
    tokens = [] if _is_heavy(text) else _parser().parse(text)
    if (text and not tokens) or any(token.level >= _DEEPEST - 1 for token in tokens):
        return _named(f"<pre>{_escaped(text)}</pre>")
    return _clean(_parser().renderer.render(tokens, _parser().options, {}), BLOCK)


def _is_heavy(text: str) -> bool:
    return text.count("[") * len(text) > _MOST_STEPS or len(_MARKS.findall(text)) > _MOST_MARKS


def _whole(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which have no UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(text: str) -> str:
    """Exactly as the sanitizer writes a text."""
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\xa0", "&nbsp;")
    )


def _clean(html: str, tags: frozenset[str]) -> str:
    """What the list lets through. Names come last: addresses are percent-encoded, so whatever is
    hidden stands in a text.
    """
    import nh3  # noqa: PLC0415 - a build that has no page to make does without

    return _named(
        nh3.clean(
            html,
            tags=set(tags),
            attributes={"*": set(), "a": {"href"}},
            url_schemes=set(SCHEMES),
            link_rel=REL,
        ).strip()
    )


def _named(html: str) -> str:
    return visible(html, "<code>U+{}</code>".format)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - likewise

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST}).disable("reference")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005 - `_unlink` asks: images may have any address
    parser.core.ruler.push("unlink", _unlink)
    rules = {"heading_open": "<p><strong>", "heading_close": "</strong></p>\n", "hr": ""}
    parser.renderer.rules |= {name: lambda *_, html=html: html for name, html in rules.items()}  # type: ignore[attr-defined]  # of HTML
    parser.renderer.rules["image"] = lambda tokens, index, *_: _escaped(_alternative(tokens[index]))  # type: ignore[attr-defined]  # likewise
    return parser


def _unlink(state: "StateCore") -> None:
    """Leave of a link that leads elsewhere than to the web or to mail only its text."""
    kept = True
    for child in (child for token in state.tokens for child in token.children or ()):
        if child.type == "link_open":
            kept = str(child.attrs["href"]).partition(":")[0].lower() in SCHEMES
        if child.type in ("link_open", "link_close") and not kept:
            child.type, child.content = "text", ""


def _alternative(image: "Token") -> str:
    """The words of an image's alternative text; images in it count by theirs."""
    return "".join(
        _alternative(child) if child.type == "image" else _words(child)
        for child in image.children or ()
    )


def _words(token: "Token") -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content
