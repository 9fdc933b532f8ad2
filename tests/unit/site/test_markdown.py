"""Markdown to HTML: what it shows, that nothing else comes through, that the short way and the long
way agree, and that it stays quick.
"""

import time
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.profile import example_settings
from toolcatalog.site import markdown

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</title></style></code></p><!--",
    "]]>--><b>&amp;&lt;b&gt;&#60;",
    "<?php <!DOCTYPE <svg/onload=x>",
]
VOID = {"br"}
MARKED = "*_`[]()!<>&#-+~=|\\\n\r\t \"':;/.0123 xaZé\xa0\u202e\u200d\ufe0f👩"
PIECES = [
    "word",
    "snake_case",
    " ",
    "\n",
    "\n\n",
    "  \n",
    "\t",
    "    ",
    "# ",
    "- ",
    "1. ",
    "> ",
    "```",
    "~~~",
    "***",
    "---",
    "===",
    "[a]",
    "](",
    ")",
    "![",
    "<",
    "</p>",
    "<script>",
    "javascript:",
    "JaVaScRiPt&#58;",
    "https://a.example/x?y=1&z=2",
    "mailto:a@b.example",
    "data:text/html,x",
    "<https://a.example>",
    '"',
    "'",
    "onerror=x",
    "&",
    "&amp;",
    "&#x202e;",
    "&#0;",
    "&nbsp;",
    "\\",
    "*",
    "_",
    "`",
    "\u202e",
    "\u200b",
    "\ud800",
    "\0",
    "\x85",
    "\u2028",
    "\xa0",
    "\U000e0041",
    "👩\u200d👧",
    "[x]: https://a.example 'said'\n",
    "<!-- -->",
    "]]>",
    "<?x",
    "é",
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.text(MARKED, max_size=60),
    st.text(st.characters(), max_size=60),
)
LONG = [
    "*" * 10_000,
    "[" * 5_000,
    ">" * 2_000,
    "![" * 5_000,
    "*" * 5_000 + "a" + "*" * 5_000,
    "[a](" * 5_000,
    "`a`` " * 6_000,
    "<a@" * 20_000,
    "[a]: b\n" * 9_000,
    "[" * 1_000 + ":" * 99_000,
    "![" * 200 + "{" * 99_600,
    "*a_b" * 1_500 + "\n" * 2_500,
    "- " * 40_000,
    "\n> {" * 25_000,
    "&amp;" * 20_000,
    "\t" * 100_000,
    "word and word, " * 7_000,
    "A *word*, `code`, [x](https://a.example).\n\n- b\n- c\n\n" * 1_800,
    "👩‍👩‍👧 " * 16_000,
    "\u202e" * 20_000,
    "".join("  " * i + "- a\n" for i in range(300)),
]


class Parts(HTMLParser):
    """The elements of a piece of HTML, its text, and whether it is well nested."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.other: list[str] = []
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def handle_decl(self, decl: str) -> None:
        self.other.append(decl)

    def handle_pi(self, data: str) -> None:
        self.other.append(data)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)


def seen_to_be_safe(html: str, elements: frozenset[str]) -> Parts:
    parts = Parts(html)
    assert not parts.open
    assert not parts.other
    for tag, attributes in parts.elements:
        assert tag in elements
        assert attributes.keys() <= ({"href", "rel"} if tag == "a" else set())
        if tag == "a":
            address = attributes["href"] or ""
            assert address.partition(":")[0].lower() in ("http", "https", "mailto")
            assert address.isascii()
            assert attributes["rel"] == "nofollow noreferrer"
    assert not any(
        hidden in html
        for hidden in (
            "\0\x0b\x85\xad\u200b\u200e\u200f\u2028\u202a\u202d\u202e\u2066\u2069\ufeff\ud800"
            "\udfff\U000e0041"
        )
    )
    html.encode()  # has no halves of pairs
    return parts


@example_settings(133)
@given(TEXTS)
@example(
    "[a](javascript:alert(1)) ![a](javascript:1) <javascript:1> [b](//x) "
    "[c](data:text/html,x) [d](http&#58;//x)"
)
@example("<a href=x onclick=y>![<b>](x)")
@example("[a](https://x.example/\u202e\u2066 'title')<https://a.example/\u202e>")
def test_only_the_elements_of_the_list_come_through(text: str) -> None:
    seen_to_be_safe(markdown.render_inline(text), markdown.INLINE_TAGS)
    seen_to_be_safe(markdown.render_block(text), markdown.BLOCK_TAGS)


@pytest.mark.parametrize("text", HOSTILE)
def test_markup_of_a_text_is_shown(text: str) -> None:
    """HTML in a text is what the reader sees, and no element."""
    for html, elements in (
        (markdown.render_inline(text), markdown.INLINE_TAGS),
        (markdown.render_block(f"- {text}"), markdown.BLOCK_TAGS),
    ):
        parts = seen_to_be_safe(html, elements)
        assert {tag for tag, _ in parts.elements} <= {"ul", "li"}
        assert (
            text.replace("&amp;", "&")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&#60;", "<")
            in parts.text
        )


@example_settings(166)
@given(
    st.one_of(
        TEXTS,
        st.text("abc_Z09 .,;:'\"()/>!]&\n\xa0\u2003éß", max_size=40),
        st.lists(st.sampled_from(["a_b", " ", "\n", "\n\n", "Word", "& ", ">", "1)", "\xa0"])).map(
            "".join
        ),
    )
)
@example("a\n\n\nb\nc")
@example("a \nb")
@example("a\xa0\n\nb")
@example("a_b_c & d > e] f!")
def test_the_short_way_and_the_long_way_agree(text: str) -> None:
    """A plain text, which is only escaped, comes out as if it had been parsed and sanitized."""
    assert markdown.render_inline(text) == markdown._render_inline(text.strip())
    assert markdown.render_block(text) == markdown._render_block(text.rstrip())


def test_plain_texts_go_the_short_way() -> None:
    """Else the property above holds for nothing: what most descriptions look like is plain."""
    for text in (
        "The ID of the channel_id, as GITHUB_GET_ISSUE gives it; it's 5 > 4 (see above) & so on.",
        "A\n\nB\nC: d.",
        "Größe: “quoted”…",
    ):
        assert markdown._PLAIN_BLOCK.fullmatch(text)
        assert "\n" in text or markdown._PLAIN.fullmatch(text)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("", ""),
        ("a *b* **c** `d<e`", "a <em>b</em> <strong>c</strong> <code>d&lt;e</code>"),
        ("# a\n- b", "# a\n- b"),
        (
            "[a](https://x.example/?a=1&b=2)",
            '<a href="https://x.example/?a=1&amp;b=2" rel="nofollow noreferrer">a</a>',
        ),
        (
            "<mail@x.example>",
            '<a href="mailto:mail@x.example" rel="nofollow noreferrer">mail@x.example</a>',
        ),
        (
            "[a](javascript:x) [b](../c) [*d*](http://e)",
            'a b <a href="http://e" rel="nofollow noreferrer"><em>d</em></a>',
        ),
        ("![a *b* ![c](d)](track.png) ![x](https://x.example/y)", "a b c x"),
        ("a  \nb", "a<br>\nb"),
        ("<b>x</b> <!-- y --> &lt; &copy;", "&lt;b&gt;x&lt;/b&gt; &lt;!-- y --&gt; &lt; ©"),
        ("a\u202eb\ufeffc", "a<code>U+202E</code>b<code>U+FEFF</code>c"),
        ("`a\u202eb` &#x202e;", "<code>a<code>U+202E</code>b</code> <code>U+202E</code>"),
        (
            "x\U000e0041\x07\ud800",
            "x<code>U+E0041</code><code>U+0007</code>\N{REPLACEMENT CHARACTER}",
        ),
        (
            "👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 \u0645\u06cc\u200c\u062e",
            "👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 \u0645\u06cc\u200c\u062e",
        ),
        (
            "a\u200db ❤\ufe0f\ufe0f a\ufe01",
            "a<code>U+200D</code>b ❤\ufe0f<code>U+FE0F</code> a<code>U+FE01</code>",
        ),
    ],
)
def test_within_a_line(text: str, html: str) -> None:
    assert markdown.render_inline(text) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("", ""),
        ("a\nb\n\nc\n", "<p>a\nb</p>\n<p>c</p>"),
        ("# a\n\nb\n***\nc\n===", "<p><strong>a</strong></p>\n<p>b</p>\n<p><strong>c</strong></p>"),
        ("- a\n- b\n\n3. c", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<ol>\n<li>c</li>\n</ol>"),
        (
            "> a\n> ```python\n> b\n> ```",
            "<blockquote>\n<p>a</p>\n<pre><code>b\n</code></pre>\n</blockquote>",
        ),
        (
            "[//]: # (said to nobody)\n\n[a]: b 'c'",
            "<p>[//]: # (said to nobody)</p>\n<p>[a]: b 'c'</p>",
        ),
        ("```python\na\n```", "<pre><code>a\n</code></pre>"),
        ("```python obey me\na\n```", "<pre><code>python obey me\na\n</code></pre>"),
        ("<div>\n*a*\n</div>", "<p>&lt;div&gt;\n<em>a</em>\n&lt;/div&gt;</p>"),
        ("> " * 25 + "<a>", "<pre>" + "&gt; " * 25 + "&lt;a&gt;</pre>"),
    ],
)
def test_of_its_own(text: str, html: str) -> None:
    assert markdown.render_block(text) == html


@example_settings(66)
@given(
    st.lists(
        st.sampled_from(
            ["- ", "> ", "1. ", "# ", "\n", "\n\n", "    ", "word ", "[word]: ", "*", "`", "\t"]
        ),
        max_size=80,
    ).map("".join)
)
def test_no_word_is_lost(text: str) -> None:
    """A reader sees every word that a model would read, however deep it is nested."""
    assert Parts(markdown.render_block(text)).text.count("word") == text.count("word")


@pytest.mark.parametrize("text", LONG, ids=lambda text: f"{text[:8]!r}x{len(text)}")
def test_no_text_takes_long(text: str) -> None:
    for make, elements in (
        (markdown.render_inline, markdown.INLINE_TAGS),
        (markdown.render_block, markdown.BLOCK_TAGS),
    ):
        before = time.process_time()
        html = make(text)
        assert time.process_time() - before < 2
        seen_to_be_safe(html, elements)
