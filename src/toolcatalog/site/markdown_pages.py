"""Markdown pages of the site, and `llms.txt`.

No catalog text can look like structure of these files. A text of one line is placed within a line,
where Markdown starts no block, and `<` does not open a tag. Any other text is quoted in a fence
longer than any in it. Names and values are in code spans that none of their backticks can end, as
plain text or JSON. Invisible characters are replaced by their names, or escaped in values.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolcatalog.encoding import dump_json
from toolcatalog.parameters import CHILD_LABELS, LIMITS, children
from toolcatalog.snapshot.format import Tool, Toolkit
from toolcatalog.textutils import escape_hidden

_LINE_END = re.compile(r"\r\n?|\n")
_BACKTICKS = re.compile("`+")
_SPECIAL = re.compile(r"[\\`*\[\]<>&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|#+$")
_PLAIN_TEXT = re.compile(r"[ !#-\[\]-_a-~]*")  # in ASCII: without controls, quotes and backslashes
_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")  # a tag, a comment or an autolink
# in code, or after another backslash, a backslash before `<` does not escape it
_CODE_CHARS = frozenset("`\\")
_BLOCK_START = re.compile(
    r"[#>\[=|~+*_-]|`{3}|\d+[.)]|:"
)  # everything that may start a block, and a little more

_FACT_KEYS = frozenset((*LIMITS, "default", "enum", "examples", "additionalProperties"))

Lines = Iterator[str]


class ToolMarkdown(NamedTuple):
    """A tool as Markdown, without heading marks: name, overview, inputs and outputs."""

    name: str
    overview: str
    inputs: str
    outputs: str

    def render(self, heading_level: int) -> bytes:
        """Return the page as CommonMark in UTF-8; the tool's name is a heading of this level."""
        mark = "#" * heading_level
        head = f"{mark} {self.name}\n{self.overview}"
        text = f"{head}\n{mark}# Inputs\n\n{self.inputs}\n{mark}# Outputs\n\n{self.outputs}"
        return text.encode(errors="replace")


def to_markdown(tool: Tool, toolkit: Toolkit) -> ToolMarkdown:
    """Return the parts of a tool's Markdown page."""
    inputs = _parameter_lines(tool.input_parameters) if tool.input_parameters else ("None.",)
    outputs = (
        _parameter_lines(tool.output_parameters) if tool.output_parameters else ("Not described.",)
    )
    return ToolMarkdown(
        _escape_markdown(tool.name),
        *map(_join_lines, (_overview_lines(tool, toolkit), inputs, outputs)),
    )


def render_tool_markdown(tool: Tool, toolkit: Toolkit) -> bytes:
    """Render the Markdown page of a tool: CommonMark in UTF-8."""
    return to_markdown(tool, toolkit).render(1)


def render_llms_txt(
    about: Mapping[str, str], toolkits: Sequence[Toolkit], counts: Mapping[str, int]
) -> bytes:
    """Render `llms.txt`, as described by llmstxt.org, with links relative to the site.

    `counts` has the number of tools of each toolkit.
    """
    return _encode_lines(_llms_lines(about, toolkits, counts))


def render_llms_full_txt(toolkit: Toolkit, tools: Iterable[ToolMarkdown]) -> Iterator[bytes]:
    """Yield `llms-full.txt` of a toolkit in pieces: the toolkit, then the page of each tool.

    The headings of tools are one level deeper than on their own pages.
    """
    yield _encode_lines(_toolkit_lines(toolkit))
    for tool in tools:
        yield b"\n" + tool.render(2)


def _encode_lines(lines: Iterable[str]) -> bytes:
    return _join_lines(lines).encode(errors="replace")


def _join_lines(lines: Iterable[str]) -> str:
    return "\n".join([*lines, ""])


def _overview_lines(tool: Tool, toolkit: Toolkit) -> Lines:
    version, name = _name_span(tool.version), _escape_markdown(toolkit.name)
    yield from ("", f"{_name_span(tool.slug)}, version {version}, toolkit {name}", "")
    yield from _paragraph_lines(tool.description)
    yield from _fact_lines(tool)
    if tool.deprecation is not None:
        yield from ("", *_deprecation_lines(tool.deprecation))


def _fact_lines(tool: Tool) -> Lines:
    yield f"- Toolkit: {_name_span(tool.toolkit)}"
    yield f"- Authentication: {'none needed' if tool.no_auth else 'needed'}"
    for what, values in (
        ("Scopes", tool.scopes),
        ("Tags", tool.tags),
        ("All versions", tool.available_versions),
    ):
        if values:
            yield f"- {what}: {', '.join(map(_name_span, values))}"
    yield f"- API: {_name_span(f'GET /api/v3/tools/{tool.slug}')}"


def _deprecation_lines(deprecation: Mapping[str, str]) -> Lines:
    since = f" since {_escape_markdown(deprecation['since'])}" if deprecation.get("since") else ""
    sunset = (
        f", until {_escape_markdown(deprecation['sunset'])}" if deprecation.get("sunset") else ""
    )
    instead = (
        f" Use {_name_span(deprecation['replaced_by'])} instead."
        if deprecation.get("replaced_by")
        else ""
    )
    yield f"**Deprecated{since}{sunset}.**{instead}"
    if deprecation.get("reason"):
        yield from ("", *_paragraph_lines(f"Reason: {deprecation['reason']}"))


def _toolkit_lines(toolkit: Toolkit) -> Lines:
    yield from (f"# {_escape_markdown(toolkit.name)}", "")
    yield from _paragraph_lines(toolkit.description)
    yield f"- Toolkit: {_name_span(toolkit.slug)}"
    needed = "none needed" if toolkit.no_auth else "needed, unless a tool says otherwise"
    yield f"- Authentication: {needed}"
    if toolkit.categories:
        yield f"- Categories: {', '.join(map(_name_span, toolkit.categories))}"
    if toolkit.homepage:
        yield f"- Homepage: {_name_span(toolkit.homepage)}"
    if toolkit.versions:
        yield f"- Newest version: {_name_span(toolkit.versions[-1])}"


def _llms_lines(
    about: Mapping[str, str], toolkits: Sequence[Toolkit], counts: Mapping[str, int]
) -> Lines:
    total = sum(counts.values())
    yield from (f"# {_escape_markdown(about['title'])}", "")
    yield " ".join(
        (
            ">",
            *map(_escape_markdown, filter(None, [about.get("description")])),
            f"{total:,} tools in {len(toolkits):,} toolkits.",
        )
    )
    yield from (
        "",
        (
            "Every tool has a page `tools/SLUG/index.html`, and next to it the same as Markdown, "
            "`index.md`, and as JSON, `index.json`."
        ),
    )
    yield from (
        "",
        "## Toolkits",
        "",
        *(_toolkit_item(toolkit, counts.get(toolkit.slug, 0)) for toolkit in toolkits),
    )
    yield from ("", "## API", "")
    yield (
        "- [API reference](reference/index.html): `GET /api/v3/tools` lists and searches, "
        "`GET /api/v3/tools/SLUG` gives one tool"
    )
    yield (
        "- [Sessions](sessions/index.html): what an agent may use, and the meta tools that it is "
        "offered"
    )
    yield from ("", "## Optional", "")
    for name, path in (
        ("All tools", "tools/index.html"),
        ("Tags", "tags/index.html"),
        ("Scopes", "scopes/index.html"),
        ("Changes, as Atom", "feed.xml"),
    ):
        yield f"- [{name}]({path})"


def _toolkit_item(toolkit: Toolkit, tools: int) -> str:
    folder = f"toolkits/{toolkit.slug}"
    description = f" {_escape_markdown(toolkit.description)}" if toolkit.description else ""
    count = f"{tools:,} tool{'' if tools == 1 else 's'}"
    link = f"[{_escape_markdown(toolkit.name)}]({folder}/llms-full.txt)"
    return f"- {link}: {count} ([page]({folder}/index.html)).{description}"


def _parameter_lines(parameters: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, parameter in parameters.items():
        _add_parameter(lines, _name_span(name), parameter, "")
    return lines


def _add_parameter(lines: list[str], label: str, parameter: Mapping[str, Any], indent: str) -> None:
    """Append a list item for a parameter, with nested lists for what it contains.

    Lines are appended to one list: passing them up through generators takes twice as long.
    """
    first, *fenced = _text_lines(parameter.get("description", ""))
    colon = ":" if first or fenced else ""
    lines.append(f"{indent}- {label} ({_format_kinds(parameter)}){colon} {first}".rstrip())
    deeper = f"{indent}  "
    lines += [f"{deeper}{line}" if line else "" for line in fenced]
    if not _FACT_KEYS.isdisjoint(parameter):
        lines += [f"{deeper}- {fact}" for fact in _limit_lines(parameter)]
    for steps, name, inner in children(parameter):
        nested = _name_span(name) if steps[0] == "properties" else CHILD_LABELS[str(steps[0])]
        _add_parameter(lines, nested, inner, deeper)


def _format_kinds(parameter: Mapping[str, Any]) -> str:
    """Return the type of a parameter, and whether it is required and may be null."""
    kind = _escape_markdown(str(parameter["type"]))
    required = ", required" if parameter.get("required") is True else ""
    return f"{kind}{required}{', or null' if parameter.get('nullable') is True else ''}"


def _limit_lines(parameter: Mapping[str, Any]) -> Lines:
    limits = [f"{key} {_json_span(parameter[key])}" for key in LIMITS if key in parameter]
    if limits:
        yield f"limits: {', '.join(limits)}"
    if "default" in parameter:
        yield f"default: {_json_span(parameter['default'])}"
    for what, key in (("one of", "enum"), ("examples", "examples")):
        if parameter.get(key):
            yield f"{what}: {', '.join(map(_json_span, parameter[key]))}"
    if parameter.get("additionalProperties") is False:
        yield "no other properties"


def _paragraph_lines(text: str) -> Lines:
    """Yield a text as a block of its own and an empty line; nothing for an empty text."""
    first, *fenced = _text_lines(text, is_standalone=True)
    if first or fenced:
        yield from (fenced or [first])
        yield ""


def _text_lines(text: str, is_standalone: bool = False) -> list[str]:
    """Return a text as one line, or as an empty line and a fenced block with all its lines.

    A text that is not standalone follows other text on its line.
    """
    text = text.strip()
    if (
        not is_standalone and text.isascii() and text.isprintable() and "<" not in text
    ):  # the fast path for nearly all
        return [text]
    lines = [escape_hidden(line) for line in _LINE_END.split(text)]
    tagged = _TAG_START.search(lines[0]) and not _CODE_CHARS.isdisjoint(lines[0])
    if len(lines) > 1 or tagged or (is_standalone and _BLOCK_START.match(lines[0])):
        return ["", *_fenced_block(lines)]
    return [_TAG_START.sub(r"\\<", lines[0])]


def _fenced_block(lines: Sequence[str]) -> Lines:
    longest = max((len(run) for line in lines for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}text", *lines, fence)


def _escape_markdown(text: str) -> str:
    r"""Escape a plain text, such as a name, within a line; `#` at its end would end a heading."""
    if text.isascii() and text.isalnum():  # the fast path for type names
        return text
    return _SPECIAL.sub(
        lambda found: "".join(f"\\{one}" for one in found[0]), escape_hidden(" ".join(text.split()))
    )


def _json_span(value: Any) -> str:
    """Return a value as JSON in a code span, with invisible characters escaped."""
    if type(value) is str and value.isascii() and _PLAIN_TEXT.fullmatch(value):
        return f'`"{value}"`'
    if type(value) is int:
        return f"`{value}`"
    return _code_span(escape_hidden(dump_json(value).decode(), _json_escape))


def _name_span(name: str) -> str:
    """Return a name in a code span: as it is, or as JSON if a span cannot show it exactly."""
    if name.isascii() and name.isidentifier():  # the fast path for nearly all
        return f"`{name}`"
    return (
        _json_span(name)
        if not name.strip(" ") or name != " ".join(escape_hidden(name).split())
        else _code_span(name)
    )


def _code_span(text: str) -> str:
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(text))))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def _json_escape(code: str) -> str:
    """Return the JSON escapes of a character, given by its code point in hex."""
    return json.dumps(chr(int(code, 16)))[1:-1]
