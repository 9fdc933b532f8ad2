"""The YAML writer: JSON values to YAML text for people.

What comes out is read back by `catalog.yaml_reader.read` as the very value that went in. It is also safe with
readers of other YAML versions: each string that one of them would take for a number, a date or a
boolean is quoted. Block style in the order of the keys, short lists on one line, text of several
lines as it is, no anchors, no folded lines. What it cannot write it refuses, see `emit`.
"""

import json
import re
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_MAX_INLINE_LENGTH = 100  # characters of a list that stands on one line
_TAGS = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}
_SEPARATOR = re.compile("[\u2028\u2029]")  # a line end for YAML, nothing special for an editor
_BLOCK = re.compile(r"\S[^\n]*\n")


class _Dumper(yaml.CSafeDumper):
    """PyYAML's writer, which quotes what YAML 1.1 would type; of JSON's literals that one leaves
    out only numbers like `1e5`.
    """


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z"),
    [*"-0123456789"],
)


def to_yaml(value: Any) -> bytes:
    """The YAML text, as UTF-8, of a JSON value whose keys are all strings.

    Raises ValueError for what no file can hold: a number that is not finite, a whole number beyond
    64 bits, half of a surrogate pair. How deep a file may nest is the reader's affair.
    """
    text: str = yaml.serialize(_make_node(value), Dumper=_Dumper, allow_unicode=True, width=-1)
    # a marker that only a further document would need
    return (text[: -len("...\n")] if text.endswith("\n...\n") else text).encode()


def _make_node(value: Any) -> Node:
    """Made anew for each value, also for one that stands in several places, so that none is written
    as an alias.
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
    text.encode()  # UnicodeEncodeError is a ValueError
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
