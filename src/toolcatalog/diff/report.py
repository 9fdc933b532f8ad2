"""Comparison reports: Markdown for a pull request and JSON for programs.

Text from the catalog cannot be mistaken for Markdown structure. It is in code spans without
backticks, on one line, truncated if long, with a name in place of each invisible character. All
other words come from this module.
"""

import html
from collections.abc import Iterator, Sequence
from typing import Any

from toolcatalog.diff.change import Change
from toolcatalog.diff.comparison import Comparison, Entry
from toolcatalog.textutils import escape_hidden

MAX_LENGTH = 60_000  # characters: GitHub takes 65,536 in a comment
_FOLD_ABOVE = 40  # lines; longer reports are folded by toolkit
_MAX_CHANGES = 30  # shown for an entry
_MAX_CODE_LENGTH = 200  # characters
_RESERVED = 200  # characters reserved for the last lines

_SINGULAR = {"changed": "changed in place", "deprecation": "deprecation changed"}
_PLURAL = {
    **_SINGULAR,
    "new version": "new versions",
    "version removed": "versions removed",
    "deprecation": "deprecations changed",
}


def format_summary(comparison: Comparison) -> str:
    """Return the differences in numbers, on one line."""
    if not comparison.entries:
        return "No change."
    statuses = [
        f"{count:,} {(_SINGULAR if count == 1 else _PLURAL).get(status, status)}"
        for status, count in comparison.status_counts.items()
        if count
    ]
    kinds = [f"{count:,} {kind}" for kind, count in comparison.kind_counts.items() if count]
    return f"{', '.join(statuses)}. Changes: {', '.join(kinds) or 'none'}."


def format_heading(entry: Entry) -> tuple[str, str]:
    """Return the name of an entry's subject, and what happened to it."""
    name = entry.slug or (
        f"toolkit {entry.toolkit}"
        if entry.toolkit and entry.path.endswith("/toolkit.yaml")
        else entry.path
    )
    if entry.status == "new version":
        same = "" if entry.changes else ", without a change"
        return name, f"version {entry.version}" + (
            f", after {entry.compared_with}{same}" if entry.compared_with else " is new"
        )
    version = (
        f"version {entry.version} "
        if entry.version and entry.status not in ("added", "removed")
        else ""
    )
    status = entry.status.removeprefix("version ")
    return name, version + status.replace("deprecation", "has another deprecation")


def render_markdown(comparison: Comparison) -> str:
    """Render the comparison as Markdown of at most `MAX_LENGTH` characters.

    The numbers come first, then each toolkit, folded if the report is long.
    """
    head = (
        f"**{format_summary(comparison)}**\n\nFrom {_code_span(comparison.old_title)} to"
        f" {_code_span(comparison.new_title)}.\n"
    )
    is_long = sum(1 + len(entry.changes) for entry in comparison.entries) > _FOLD_ABOVE
    parts, remaining, omitted_count = [head], MAX_LENGTH - len(head) - _RESERVED, 0
    for toolkit, entries in comparison.by_toolkit.items():
        opening, closing = _render_frame(toolkit, entries, is_long)
        fitting = [*_select_fitting(entries, remaining - len(opening) - len(closing))]
        omitted_count += len(entries) - len(fitting)
        if fitting:
            parts += [opening, *fitting, closing]
            remaining -= sum(map(len, (opening, *fitting, closing)))
    if omitted_count:
        parts.append(f"\nAnd {omitted_count:,} more: run `toolcatalog diff` to see all.\n")
    return "".join(parts)


def _select_fitting(entries: Sequence[Entry], remaining: int) -> Iterator[str]:
    """Yield the first entries that fit into `remaining` characters."""
    for entry in entries:
        text = _render_entry(entry)
        remaining -= len(text)
        if remaining < 0:
            return
        yield text


def _render_frame(toolkit: str, entries: Sequence[Entry], is_long: bool) -> tuple[str, str]:
    """Return the text before and after the entries of a toolkit."""
    if not is_long:
        return (
            f"\n#### Toolkit {_code_span(toolkit)}\n\n" if toolkit else "\n#### Other files\n\n"
        ), ""
    name = (
        f"Toolkit <code>{html.escape(_escape_code(toolkit))}</code>" if toolkit else "Other files"
    )
    numbers = format_summary(Comparison("", "", tuple(entries)))
    return f"\n<details><summary>{name}: {numbers}</summary>\n\n", "\n</details>\n"


def _render_entry(entry: Entry) -> str:
    name, action = format_heading(entry)
    reason = f": {_code_span(entry.reason)}" if entry.reason else ""
    lines = [
        f"- {_code_span(name)} {action}{reason}",
        *(f"  - {_render_change(change)}" for change in entry.changes[:_MAX_CHANGES]),
    ]
    if (omitted_count := len(entry.changes) - _MAX_CHANGES) > 0:
        lines.append(f"  - and {omitted_count:,} more")
    return "".join(f"{line}\n" for line in lines)


def _render_change(change: Change) -> str:
    """Render a change; its parts in backquotes come from the catalog."""
    pieces = change.text.split("`")
    text = "".join(
        _code_span(piece) if index % 2 else _escape_words(piece)
        for index, piece in enumerate(pieces)
    )
    return f"**{change.kind}** {_code_span(change.location)} {text}"


def _escape_words(text: str) -> str:
    return "".join(
        char if char.isalnum() or char in " ,.:;()[]'-…" else f"&#{ord(char)};" for char in text
    )


def _code_span(text: str) -> str:
    return f"`{_escape_code(text)}`" if text else ""


def _escape_code(text: str) -> str:
    """Return a text without characters that are invisible or could end a code span."""
    return display_text(text).replace("`", "'")


def display_text(text: str, max_length: int = _MAX_CODE_LENGTH) -> str:
    """Return a text on one line, with names for invisible characters, truncated if long."""
    text = text if len(text) <= max_length else f"{text[: max_length - 1]}…"
    return escape_hidden(
        text
        if text.isprintable()
        else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    )


def to_values(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    totals = {
        "entries": len(comparison.entries),
        "by_what": comparison.status_counts,
        "by_kind": comparison.kind_counts,
    }
    entries = [
        {
            "what": entry.status,
            "kind": entry.kind,
            "path": entry.path,
            "toolkit": entry.toolkit,
            "tool": entry.slug,
            "version": entry.version,
            "compared_with": entry.compared_with,
            "why": entry.reason,
            "changes": [
                {"kind": change.kind, "place": change.location, "what": change.text}
                for change in entry.changes
            ],
        }
        for entry in comparison.entries
    ]
    return {
        "before": comparison.old_title,
        "after": comparison.new_title,
        "totals": totals,
        "entries": entries,
    }
