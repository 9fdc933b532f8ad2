"""The YAML editor: change one value in a YAML file and keep everything else byte for byte.

The positions of values come from `catalog.yaml_reader.parse`, and only the characters of the value
are replaced. The result is parsed again and compared with the expected value. If they differ,
`UnsafeEdit` is raised and the file is not changed.

`pointer` leads to a value by keys and indexes, as in a Finding. Files are passed as bytes.
"""

import copy
import json
from collections.abc import Collection
from typing import Any

from toolcatalog.catalog import yaml_reader, yaml_writer
from toolcatalog.catalog.yaml_reader import Node
from toolcatalog.errors import Pointer

_BOM = "\ufeff"


class UnsafeEdit(Exception):
    """The change would affect other parts of the file.

    The message is a sentence that says why. The user must make the change by hand.
    """


def set_value(data: bytes, pointer: Pointer, value: Any, preceding: Collection[str] = ()) -> bytes:
    """Set a key of a mapping: replace its lines, or add new lines if the key is missing.

    A new key goes after the last key of `preceding` that exists, else after all keys. Comments
    within the replaced lines are removed. Raises UnsafeEdit.
    """
    file = _File(data)
    *outer, key = pointer
    parent = file.find_node(tuple(outer))
    if (
        not isinstance(key, str)
        or not parent.children
        or getattr(parent.event, "flow_style", False)
    ):
        raise UnsafeEdit("the mapping around the value is empty, or written in braces on one line")
    if key in parent.children:
        start, end = file.find_block(pointer)
        changed = file.lines[:start] + file.render_lines(pointer, value, start) + file.lines[end:]
    else:
        neighbor = next(
            (name for name in reversed([*parent.children]) if name in preceding),
            [*parent.children][-1],
        )
        start, end = file.find_block((*outer, neighbor))
        changed = (
            file.lines[:end]
            + file.render_lines((*outer, neighbor), {key: value}, None)
            + file.lines[end:]
        )
    return file.verify(changed, pointer, value)


def remove_key(data: bytes, pointer: Pointer) -> bytes:
    """Remove a key and its value, with the comments within, from a mapping.

    Returns `data` unchanged if there is no such key. Raises UnsafeEdit.
    """
    file = _File(data)
    if not file.contains(pointer):
        return data
    start, end = file.find_block(pointer)
    prefix = file.lines[start][: file.column(pointer)]
    return file.verify(
        file.lines[:start] + ([prefix] if prefix.strip() else []) + file.lines[end:],
        pointer,
        _REMOVED,
    )


_REMOVED: Any = object()


class _File:
    """The lines of a file, with their line endings, and the positions of its values."""

    def __init__(self, data: bytes) -> None:
        self.reading = yaml_reader.parse(data)
        if self.reading.root is None or self.reading.faults:
            raise UnsafeEdit(
                "the file is not sound YAML: fix what `toolcatalog check` says of it first"
            )
        self.root = self.reading.root
        text = data.decode()
        self.bom = _BOM if text.startswith(_BOM) else ""
        self.lines = text.removeprefix(_BOM).splitlines(keepends=True)
        self.newline = "\r\n" if self.lines[0].endswith("\r\n") else "\n"
        self.end_line = next(
            (number for number, line in enumerate(self.lines) if line.startswith("...")),
            len(self.lines),
        )

    def contains(self, pointer: Pointer) -> bool:
        mark: Node | None = self.root
        for step in pointer:
            mark = mark.children.get(step) if mark else None
        return mark is not None

    def find_node(self, pointer: Pointer) -> Node:
        mark = self.root
        for step in pointer:
            if step not in mark.children:
                raise UnsafeEdit("there is no such value in the file")
            mark = mark.children[step]
        return mark

    def column(self, pointer: Pointer) -> int:
        """Return the column, from 0, at which a key or an item of a list begins."""
        mark = self.find_node(pointer)
        position = (mark.key or mark.event).start_mark
        assert position is not None
        return position.column

    def find_block(self, pointer: Pointer) -> tuple[int, int]:
        """Return the first line of a key and its value, and the line after the last.

        Blank lines and comments that belong to the following key are not part of the block.
        """
        mark, column = self.find_node(pointer), self.column(pointer)
        if (
            mark.key is None
            or mark.key.start_mark is None
            or getattr(self.find_node(pointer[:-1]).event, "flow_style", False)
        ):
            raise UnsafeEdit("the value is not written as `key: value` on separate lines")
        start = mark.key.start_mark.line
        end, last = self.next_line(pointer), max(start, _last_line(mark))
        while end - 1 > last and _is_separator(self.lines[end - 1], column):
            end -= 1
        return start, end

    def next_line(self, pointer: Pointer) -> int:
        """Return the first line of the next value in the file."""
        while pointer:
            *outer, last = pointer
            siblings = self.find_node(tuple(outer)).children
            names = [*siblings]
            if (index := names.index(last) + 1) < len(names):
                position = (siblings[names[index]].key or siblings[names[index]].event).start_mark
                assert position is not None
                return position.line
            pointer = tuple(outer)
        return self.end_line

    def render_lines(self, neighbor: Pointer, value: Any, start: int | None) -> list[str]:
        """Return the lines of a key and its value, indented like the key `neighbor`.

        If `start` is a line number, they replace that key, and the text before it on its line is
        kept.
        """
        column = self.column(neighbor)
        new = {neighbor[-1]: value} if start is not None else value
        lines = [
            f"{' ' * column}{line}{self.newline}" if line else self.newline
            for line in yaml_writer.to_yaml(new).decode().split("\n")[:-1]
        ]
        if start is not None:
            lines[0] = self.lines[start][:column] + lines[0][column:]
        return lines

    def verify(self, lines: list[str], pointer: Pointer, value: Any) -> bytes:
        """Return the changed lines as bytes. Raises UnsafeEdit if more than the value changed."""
        text = "".join(line if line.endswith("\n") else line + self.newline for line in lines)
        if not self.lines[-1].endswith("\n"):
            text = text.removesuffix("\n").removesuffix("\r")
        changed = (self.bom + text).encode()
        result = yaml_reader.parse(changed)
        if result.faults or _canonical(result.value) != _canonical(
            _replace_at(self.reading.value, pointer, value)
        ):
            raise UnsafeEdit(
                "the file is written in a way in which the change would touch more than it should"
            )
        return changed


def _last_line(node: Node) -> int:
    """Return the last line that certainly belongs to a value.

    The end mark of a block scalar is the start of the next token, so its first line is returned.
    """
    while node.children:
        node = [*node.children.values()][-1]
    position = (
        node.event.end_mark
        if getattr(node.event, "style", "|") not in ("|", ">")
        else node.event.start_mark
    )
    assert position is not None
    return position.line


def _is_separator(line: str, column: int) -> bool:
    """Return whether a line is blank, or a comment that is not indented deeper than `column`."""
    stripped = line.strip()
    return not stripped or (
        stripped.startswith("#") and len(line) - len(line.lstrip(" ")) <= column
    )


def _replace_at(document: Any, pointer: Pointer, value: Any) -> Any:
    """Return a copy of the value with another value, or none, at the pointer."""
    changed = copy.deepcopy(document)
    parent = changed
    for step in pointer[:-1]:
        parent = parent[step]
    if value is _REMOVED:
        del parent[pointer[-1]]
    else:
        parent[pointer[-1]] = value
    return changed


def _canonical(value: Any) -> str:
    """Return JSON that distinguishes 1, 1.0 and true, and ignores the order of keys."""
    return json.dumps(value, sort_keys=True)
