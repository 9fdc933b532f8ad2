"""Records to Markdown, for programs and models that read the site: the twins of its pages, and
`llms.txt`. Pure.

Nothing that a catalog says can look like structure of this file. A text of one line stands within a
line, where Markdown begins no block, and `<` does not open a tag; any other text is quoted in a
fence longer than any in it. Values and names are JSON or plain in code spans that no backtick of
theirs can end. Characters that cannot be seen are named, or escaped where they are part of a value.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolcatalog.parameters import CHILD_LABELS, LIMITS, children
from toolcatalog.snapshot import Tool, Toolkit, dump
from toolcatalog.unseen import visible

_LINE_END = re.compile(r"\r\n?|\n")
_TICKS = re.compile("`+")
_SPECIAL = re.compile(r"[\\`*\[\]<>&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|#+$")
_OPENING = re.compile(r"<(?=[A-Za-z/!?])")  # a tag, a comment, an address
# within code, or behind another backslash, a backslash before `<` escapes nothing
_QUIET = frozenset("`\\")
_BLOCK = re.compile(r"[#>\[=|~+*_-]|`{3}|\d+[.)]|:")  # what a block may begin with, and then some

Lines = Iterator[str]


class Twin(NamedTuple):
    """A tool as Markdown, without its headings' marks: name, all that is said of it as a whole,
    inputs and outputs.
    """

    name: str
    about: str
    inputs: str
    outputs: str

    def text(self, level: int) -> bytes:
        """CommonMark in UTF-8; the tool is a heading of this level."""
        mark = "#" * level
        text = f"{mark} {self.name}\n{self.about}\n{mark}# Inputs\n\n{self.inputs}\n{mark}# Outputs\n\n{self.outputs}"
        return text.encode(errors="replace")


def twin(tool: Tool, toolkit: Toolkit) -> Twin:
    """The twin of a tool's page."""
    inputs = _parameters(tool.input_parameters, "") if tool.input_parameters else ("None.",)
    outputs = (
        _parameters(tool.output_parameters, "") if tool.output_parameters else ("Not described.",)
    )
    return Twin(_plain(tool.name), *map(_text, (_about(tool, toolkit), inputs, outputs)))


def tool_markdown(tool: Tool, toolkit: Toolkit) -> bytes:
    """The twin of a tool's page: CommonMark in UTF-8."""
    return twin(tool, toolkit).text(1)


def llms(about: Mapping[str, str], toolkits: Sequence[Toolkit], counts: Mapping[str, int]) -> bytes:
    """`llms.txt`, as llmstxt.org describes it: what there is, with links relative to the site;
    `counts` are the tools of each toolkit.
    """
    return _file(_llms(about, toolkits, counts))


def llms_full(toolkit: Toolkit, tools: Iterable[Twin]) -> Iterator[bytes]:
    """`llms-full.txt` of a toolkit piece by piece: the toolkit, and then each tool as in its twin,
    one heading deeper.
    """
    yield _file(_toolkit(toolkit))
    for tool in tools:
        yield b"\n" + tool.text(2)


def _file(lines: Iterable[str]) -> bytes:
    return _text(lines).encode(errors="replace")


def _text(lines: Iterable[str]) -> str:
    return "".join([f"{line}\n" for line in lines])


def _about(tool: Tool, toolkit: Toolkit) -> Lines:
    yield from (
        "",
        f"{_code(tool.slug)}, version {_code(tool.version)}, toolkit {_plain(toolkit.name)}",
        "",
    )
    yield from _paragraph(tool.description)
    yield from _facts(tool)
    if tool.deprecation is not None:
        yield from ("", *_deprecation(tool.deprecation))


def _facts(tool: Tool) -> Lines:
    yield f"- Toolkit: {_code(tool.toolkit)}"
    yield f"- Authentication: {'none needed' if tool.no_auth else 'needed'}"
    for what, values in (
        ("Scopes", tool.scopes),
        ("Tags", tool.tags),
        ("All versions", tool.available_versions),
    ):
        if values:
            yield f"- {what}: {', '.join(map(_code, values))}"
    yield f"- API: {_code(f'GET /api/v3/tools/{tool.slug}')}"


def _deprecation(said: Mapping[str, str]) -> Lines:
    since = f" since {_plain(said['since'])}" if said.get("since") else ""
    sunset = f", until {_plain(said['sunset'])}" if said.get("sunset") else ""
    instead = f" Use {_code(said['replaced_by'])} instead." if said.get("replaced_by") else ""
    yield f"**Deprecated{since}{sunset}.**{instead}"
    if said.get("reason"):
        yield from ("", *_paragraph(f"Reason: {said['reason']}"))


def _toolkit(toolkit: Toolkit) -> Lines:
    yield from (f"# {_plain(toolkit.name)}", "")
    yield from _paragraph(toolkit.description)
    yield f"- Toolkit: {_code(toolkit.slug)}"
    yield f"- Authentication: {'none needed' if toolkit.no_auth else 'needed, unless a tool says otherwise'}"
    if toolkit.categories:
        yield f"- Categories: {', '.join(map(_code, toolkit.categories))}"
    if toolkit.homepage:
        yield f"- Homepage: {_code(toolkit.homepage)}"
    if toolkit.versions:
        yield f"- Newest version: {_code(toolkit.versions[-1])}"


def _llms(
    about: Mapping[str, str], toolkits: Sequence[Toolkit], counts: Mapping[str, int]
) -> Lines:
    total = sum(counts.values())
    yield from (f"# {_plain(about['title'])}", "")
    yield " ".join(
        (
            ">",
            *map(_plain, filter(None, [about.get("description")])),
            f"{total:,} tools in {len(toolkits):,} toolkits.",
        )
    )
    yield from (
        "",
        (
            "Every tool has a page `tools/SLUG/index.html`, and beside it the same as Markdown, "
            "`index.md`, and as JSON, `index.json`."
        ),
    )
    yield from (
        "",
        "## Toolkits",
        "",
        *(_listed(toolkit, counts.get(toolkit.slug, 0)) for toolkit in toolkits),
    )
    yield from ("", "## API", "")
    yield "- [API reference](reference/index.html): `GET /api/v3/tools` lists and searches, `GET /api/v3/tools/SLUG` gives one tool"
    yield "- [Sessions](sessions/index.html): what an agent may use, and the meta tools that it is offered"
    yield from ("", "## Optional", "")
    for name, path in (
        ("All tools", "tools/index.html"),
        ("Tags", "tags/index.html"),
        ("Scopes", "scopes/index.html"),
        ("Changes, as Atom", "feed.xml"),
    ):
        yield f"- [{name}]({path})"


def _listed(toolkit: Toolkit, tools: int) -> str:
    folder = f"toolkits/{toolkit.slug}"
    said = f" {_plain(toolkit.description)}" if toolkit.description else ""
    many = f"{tools:,} tool{'' if tools == 1 else 's'}"
    return f"- [{_plain(toolkit.name)}]({folder}/llms-full.txt): {many} ([page]({folder}/index.html)).{said}"


def _parameters(described: Mapping[str, Any], indent: str) -> Lines:
    for name, it in described.items():
        yield from _described(_code(name), it, indent)


def _described(what: str, it: Mapping[str, Any], indent: str) -> Lines:
    """An item of a list, and what belongs to it in lists below it."""
    kinds = [
        _plain(str(it["type"])),
        *(
            word
            for word, key in (("required", "required"), ("or null", "nullable"))
            if it.get(key) is True
        ),
    ]
    first, *fenced = _said(it.get("description", ""))
    yield f"{indent}- {what} ({', '.join(kinds)}){':' if first or fenced else ''} {first}".rstrip()
    deeper = f"{indent}  "
    yield from (f"{deeper}{line}" if line else "" for line in fenced)
    yield from (f"{deeper}- {fact}" for fact in _said_of(it))
    yield from _parameters(it.get("properties", {}), deeper)
    for steps, _, description in children(it):
        if steps[0] != "properties":
            yield from _described(CHILD_LABELS[str(steps[0])], description, deeper)


def _said_of(it: Mapping[str, Any]) -> Lines:
    limits = [f"{key} {_value(it[key])}" for key in LIMITS if key in it]
    if limits:
        yield f"limits: {', '.join(limits)}"
    if "default" in it:
        yield f"default: {_value(it['default'])}"
    for what, key in (("one of", "enum"), ("examples", "examples")):
        if it.get(key):
            yield f"{what}: {', '.join(map(_value, it[key]))}"
    if it.get("additionalProperties") is False:
        yield "no other properties"


def _paragraph(text: str) -> Lines:
    """A text of its own, and an empty line; nothing where there is none."""
    first, *fenced = _said(text, alone=True)
    if first or fenced:
        yield from (fenced or [first])
        yield ""


def _said(text: str, alone: bool = False) -> list[str]:
    """A text as a line, behind others unless it stands alone; or as an empty line and a fence with
    all its lines.
    """
    text = text.strip()
    if not alone and text.isascii() and text.isprintable() and "<" not in text:  # so are nearly all
        return [text]
    lines = [visible(line) for line in _LINE_END.split(text)]
    tagged = _OPENING.search(lines[0]) and not _QUIET.isdisjoint(lines[0])
    if len(lines) > 1 or tagged or (alone and _BLOCK.match(lines[0])):
        return ["", *_fenced(lines)]
    return [_OPENING.sub(r"\\<", lines[0])]


def _fenced(lines: Sequence[str]) -> Lines:
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}text", *lines, fence)


def _plain(text: str) -> str:
    r"""A name or the like, which is not Markdown, within a line; `#` at its end would end a heading."""
    if text.isascii() and text.isalnum():  # so are types
        return text
    return _SPECIAL.sub(
        lambda found: "".join(f"\\{one}" for one in found[0]), visible(" ".join(text.split()))
    )


def _value(value: Any) -> str:
    """A value as JSON in a code span, with escapes for what cannot be seen."""
    return _span(visible(dump(value).decode(), _escape))


def _code(name: str) -> str:
    """A name in a code span: as it is, or as JSON where it has something that a span cannot show."""
    if name.isascii() and name.isidentifier():  # so are nearly all
        return f"`{name}`"
    return (
        _value(name)
        if not name.strip(" ") or name != " ".join(visible(name).split())
        else _span(name)
    )


def _span(text: str) -> str:
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(map(len, _TICKS.findall(text))))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def _escape(code: str) -> str:
    """A character of a JSON text as its escape, or its two; `code` is its code point in hex."""
    return json.dumps(chr(int(code, 16)))[1:-1]
