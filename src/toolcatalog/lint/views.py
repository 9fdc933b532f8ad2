"""Tool views: the parameters and texts of a tool with their locations, as lint rules read them.

Nearly no tool contains what the security rules search for. So each of them first searches all texts
of a tool, joined into one, for a few keywords, and visits single texts only if one occurs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from toolcatalog.catalog.model import ToolVersion
from toolcatalog.errors import Finding, Pointer
from toolcatalog.parameters import children

_PRINTABLE_ASCII = bytes(range(0x20, 0x7F))
_TEXT_KEYS = ("description", "title")
_VALUE_KEYS = ("examples", "default", "enum")
_RULES = ("format", "pattern")  # texts too, because models read them


class KeywordMatcher:
    """Short strings, of which each text that a rule reports contains at least one.

    An automaton searches for all at once: JSON Schema's `pattern` in jsonschema-rs, which is a
    dependency anyway, takes a hundredth of the time of `re`. `patterns` are regular expressions
    that count as keywords.
    """

    def __init__(self, *keywords: str, patterns: Iterable[str] = ()) -> None:
        self._validator = jsonschema_rs.Draft202012Validator(
            {"pattern": "|".join([*map(re.escape, keywords), *patterns])},
            pattern_options=jsonschema_rs.RegexOptions(),
        )

    def matches(self, text: str) -> bool:
        """Return whether the text contains one of the keywords."""
        return self._validator.is_valid(text)


Description = Mapping[str, Any]


class ParameterNode(NamedTuple):
    """One parameter description and its pointer from the file's root.

    `name` is empty for a value without a name: items, additional properties, a branch. `depth`
    counts the objects that contain the value; the arguments object is the first.
    """

    pointer: Pointer
    name: str
    description: Description
    depth: int


class LocatedText(NamedTuple):
    """One text of a file and its pointer from the file's root.

    If `at_key` is True, the text is the key at the pointer, not its value. `is_pattern` marks
    regular expressions.
    """

    pointer: Pointer
    at_key: bool
    value: str
    is_example: bool = False
    is_pattern: bool = False

    @property
    def is_name(self) -> bool:
        """Whether the text names the tool, a parameter, or something else in the file."""
        return (self.at_key and not self.is_example) or self.pointer in (("name",), ("title",))

    def make_finding(
        self, tool: ToolVersion, rule: str, message: str, help: str, expected: str = ""
    ) -> Finding:
        """Return a finding at this text."""
        return Finding(
            path=tool.path,
            pointer=self.pointer,
            at_key=self.at_key,
            rule=rule,
            message=message,
            expected=expected,
            help=help,
        )


class ToolView:
    """One version of a tool as rules read it. Each property is computed once, on first use."""

    def __init__(self, tool: ToolVersion) -> None:
        self.tool = tool

    @cached_property
    def inputs(self) -> Sequence[ParameterNode]:
        """The nodes of all input descriptions, including nested ones, parents before children."""
        return collect_nodes(self.tool.input_parameters, "input_parameters")

    @cached_property
    def outputs(self) -> Sequence[ParameterNode]:
        """The nodes of all output descriptions, including nested ones, parents before children."""
        return collect_nodes(self.tool.output_parameters, "output_parameters")

    @cached_property
    def texts(self) -> Sequence[LocatedText]:
        """All texts with their locations; parameters in the order of the file."""
        return [*_iter_texts(self)]

    @cached_property
    def _json(self) -> bytes:
        tool = self.tool
        reason = tool.deprecation.reason if tool.deprecation else ""
        parameters = [tool.input_parameters, tool.output_parameters]
        return orjson.dumps(
            [tool.name, tool.description, reason, tool.scopes, tool.tags, tool.source, *parameters]
        )

    @cached_property
    def json_text(self) -> str:
        """All texts in one string, as JSON."""
        return self._json.decode()

    @cached_property
    def normalized_text(self) -> str:
        """`json_text` in lower case, with each run of white space, also line ends, as one space."""
        text = self.json_text.lower()
        if "\\" in text:
            text = text.replace(r"\n", " ").replace(r"\t", " ").replace(r"\r", " ")
        return (
            " ".join(text.split())
            if "  " in text or any(map(str.isspace, self.non_ascii))
            else text
        )

    @cached_property
    def non_ascii(self) -> str:
        """All characters of the texts that are not printable ASCII.

        Characters below U+0020 are not included, because JSON escapes them.
        """
        remaining = self._json.translate(None, _PRINTABLE_ASCII)
        return remaining.decode() if remaining else ""


class FileView(ToolView):
    """A file other than a tool's, as rules for texts read it: all of its texts."""

    def __init__(self, path: str, value: Mapping[str, Any]) -> None:
        empty = {"name": "", "description": ""}
        super().__init__(ToolVersion.from_value(empty, path=path, slug="", toolkit="", version=""))
        self._value = value

    @cached_property
    def texts(self) -> Sequence[LocatedText]:
        """All texts with their locations."""
        return [*_iter_value_texts((), self._value, False)]

    @cached_property
    def _json(self) -> bytes:
        return orjson.dumps(self._value)


def collect_nodes(parameters: Mapping[str, Description], root: str) -> Sequence[ParameterNode]:
    """Return the nodes of all descriptions in a map of parameters, parents before children."""
    nodes: list[ParameterNode] = []
    for name, description in parameters.items():
        _add_nodes(nodes, ParameterNode((root, name), name, description, 1))
    return nodes


def _add_nodes(nodes: list[ParameterNode], node: ParameterNode) -> None:
    """Append a node and all nodes below it. Only properties of an object are one level deeper."""
    nodes.append(node)
    for steps, name, description in children(node.description):
        level = node.depth + (steps[0] == "properties")
        _add_nodes(nodes, ParameterNode((*node.pointer, *steps), name, description, level))


def _iter_texts(view: ToolView) -> Iterator[LocatedText]:
    tool = view.tool
    yield LocatedText(("name",), False, tool.name)
    yield LocatedText(("description",), False, tool.description)
    if tool.deprecation:
        yield LocatedText(("deprecation", "reason"), False, tool.deprecation.reason)
    for key, words in (("scopes", tool.scopes), ("tags", tool.tags)):
        yield from (LocatedText((key, index), False, word) for index, word in enumerate(words))
    if tool.source:
        yield LocatedText(("source", "path"), False, tool.source["path"])
    for nodes in (view.inputs, view.outputs):
        for node in nodes:
            if node.name:
                yield LocatedText(node.pointer, True, node.name)
            yield from _iter_description_texts(node.pointer, node.description)


def _iter_description_texts(pointer: Pointer, description: Description) -> Iterator[LocatedText]:
    for key in _TEXT_KEYS:
        if key in description:
            yield LocatedText((*pointer, key), False, description[key])
    for key in _RULES:
        if key in description:
            yield LocatedText((*pointer, key), False, description[key], is_pattern=key == "pattern")
    for key in _VALUE_KEYS:
        if key in description:
            yield from _iter_value_texts((*pointer, key), description[key], key == "examples")


def _iter_value_texts(pointer: Pointer, value: Any, is_example: bool) -> Iterator[LocatedText]:
    """Yield the strings in a value, including keys."""
    if isinstance(value, str):
        yield LocatedText(pointer, False, value, is_example)
        return
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        yield from (LocatedText((*pointer, key), True, key, is_example) for key in value)
        inner = value.items()
    elif isinstance(value, Sequence):
        inner = enumerate(value)
    for key, item in inner:
        yield from _iter_value_texts((*pointer, key), item, is_example)
