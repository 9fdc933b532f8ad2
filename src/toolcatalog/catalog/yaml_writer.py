"""The YAML writer: JSON values to YAML text for people.

`catalog.yaml_reader.parse` reads the output back as the same value. It is also safe with readers of
other YAML versions: every string that one of them would read as a number, date or boolean is
quoted. The style is block style in key order, with short lists on one line, multi-line strings as
literal blocks, and no anchors or folded lines. Values that cannot be written raise ValueError; see
`to_yaml`.
"""

import json
import re
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_MAX_INLINE_LENGTH = 100  # characters of a list on one line
_TAGS = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}
_SEPARATOR = re.compile("[\u2028\u2029]")  # line ends in YAML, but not in editors
_BLOCK = re.compile(r"\S[^\n]*\n")


class _Dumper(yaml.CSafeDumper):
    """PyYAML's dumper, which quotes strings that YAML 1.1 would convert.

    Among JSON literals, YAML 1.1 misses only numbers such as `1e5`; a resolver below adds those.
    """


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z"),
    [*"-0123456789"],
)


def to_yaml(value: Any) -> bytes:
    """Return a JSON value, whose keys are all strings, as YAML text in UTF-8.

    Raises ValueError for a number that is not finite, an integer beyond 64 bits, and half of a
    surrogate pair. The nesting depth is not limited here but by the reader.
    """
    text: str = yaml.serialize(_make_node(value), Dumper=_Dumper, allow_unicode=True, width=-1)
    # the end marker is needed only before another document
    return (text[: -len("...\n")] if text.endswith("\n...\n") else text).encode()


def _make_node(value: Any) -> Node:
    """Return a new node for a value.

    Nodes are never reused, even for a value that occurs twice, so that none is written as an alias.
    """
    if isinstance(value, dict):
        return MappingNode(
            _tag("map"),
            [(_make_text(key), _make_node(inner)) for key, inner in value.items()],
            flow_style=not value,
        )
    if isinstance(value, list):
        nodes = [_make_node(inner) for inner in value]
        return SequenceNode(_tag("seq"), nodes, flow_style=_is_short(nodes))
    return _make_text(value) if isinstance(value, str) else _make_literal(value)


def _make_literal(value: Any) -> ScalarNode:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is beyond 64 bits")
    return ScalarNode(_tag(_TAGS[type(value)]), json.dumps(value, allow_nan=False))


def _make_text(text: str) -> ScalarNode:
    text.encode()  # raises UnicodeEncodeError, a ValueError, for half of a surrogate pair
    style = (
        '"'
        if _SEPARATOR.search(text)
        else ("|" if _BLOCK.match(text) else ('"' if "\n" in text else None))
    )
    return ScalarNode(_tag("str"), text, style=style)


def _is_short(nodes: list[Node]) -> bool:
    lengths = [
        len(node.value) + 2 for node in nodes if isinstance(node, ScalarNode) and node.style is None
    ]
    return len(lengths) == len(nodes) and sum(lengths) <= _MAX_INLINE_LENGTH


def _tag(name: str) -> str:
    return f"tag:yaml.org,2002:{name}"
