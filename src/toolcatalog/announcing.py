"""A comparison for those who were not there: as Markdown for a pull request, and as JSON for
programs. Pure.

Nothing that a catalog says can look like structure of the Markdown: it stands in code spans without
a backtick, on one line, cut where it is long, with a name in place of each character that cannot be
seen. The rest are words of our own.
"""

import html
from collections.abc import Iterator, Sequence
from typing import Any

from toolcatalog.comparing import Comparison, Entry
from toolcatalog.unseen import visible
from toolcatalog.wording import Change

LONGEST = 60_000  # characters: GitHub takes 65,536 in a comment
_FOLDED = 40  # lines; what is longer is folded by toolkit
_MOST_CHANGES = 30  # of an entry
_LONGEST_CODE = 200  # characters
_ROOM = 200  # characters kept for the last lines

_ONE = {"changed": "changed in place", "deprecation": "deprecation changed"}
_MANY = {
    **_ONE,
    "new version": "new versions",
    "version removed": "versions removed",
    "deprecation": "deprecations changed",
}


def summary(comparison: Comparison) -> str:
    """What differs, in numbers, on one line."""
    if not comparison.entries:
        return "No change."
    whats = [
        f"{many:,} {(_ONE if many == 1 else _MANY).get(what, what)}"
        for what, many in comparison.whats.items()
        if many
    ]
    kinds = [f"{many:,} {kind}" for kind, many in comparison.kinds.items() if many]
    return f"{', '.join(whats)}. Changes: {', '.join(kinds) or 'none'}."


def heading(entry: Entry) -> tuple[str, str]:
    """What an entry is of, and what happened to it."""
    name = entry.slug or (
        f"toolkit {entry.toolkit}"
        if entry.toolkit and entry.path.endswith("/toolkit.yaml")
        else entry.path
    )
    if entry.what == "new version":
        same = "" if entry.changes else ", without a change"
        return name, f"version {entry.version}" + (
            f", after {entry.before}{same}" if entry.before else " is new"
        )
    version = (
        f"version {entry.version} "
        if entry.version and entry.what not in ("added", "removed")
        else ""
    )
    return (
        name,
        f"{version}{entry.what.removeprefix('version ').replace('deprecation', 'has another deprecation')}",
    )


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown of at most `LONGEST` characters: the numbers first, then each
    toolkit, folded where it is much.
    """
    head = f"**{summary(comparison)}**\n\nFrom {_code(comparison.before)} to {_code(comparison.after)}.\n"
    is_long = sum(1 + len(entry.changes) for entry in comparison.entries) > _FOLDED
    found, room, left = [head], LONGEST - len(head) - _ROOM, 0
    for toolkit, entries in comparison.toolkits.items():
        begin, end = _frame(toolkit, entries, is_long)
        kept = [*_fitting(entries, room - len(begin) - len(end))]
        left += len(entries) - len(kept)
        if kept:
            found += [begin, *kept, end]
            room -= sum(map(len, (begin, *kept, end)))
    if left:
        found.append(f"\nAnd {left:,} more: run `toolcatalog diff` to see all.\n")
    return "".join(found)


def _fitting(entries: Sequence[Entry], room: int) -> Iterator[str]:
    """The first entries, as far as there is room."""
    for entry in entries:
        text = _entry(entry)
        room -= len(text)
        if room < 0:
            return
        yield text


def _frame(toolkit: str, entries: Sequence[Entry], is_long: bool) -> tuple[str, str]:
    """What stands before and behind the entries of a toolkit."""
    if not is_long:
        return (f"\n#### Toolkit {_code(toolkit)}\n\n" if toolkit else "\n#### Other files\n\n"), ""
    name = f"Toolkit <code>{html.escape(_plain(toolkit))}</code>" if toolkit else "Other files"
    numbers = summary(Comparison("", "", tuple(entries)))
    return f"\n<details><summary>{name}: {numbers}</summary>\n\n", "\n</details>\n"


def _entry(entry: Entry) -> str:
    name, what = heading(entry)
    why = f": {_code(entry.why)}" if entry.why else ""
    lines = [
        f"- {_code(name)} {what}{why}",
        *(f"  - {_change(change)}" for change in entry.changes[:_MOST_CHANGES]),
    ]
    if (more := len(entry.changes) - _MOST_CHANGES) > 0:
        lines.append(f"  - and {more:,} more")
    return "".join(f"{line}\n" for line in lines)


def _change(change: Change) -> str:
    """A change: its words are ours, and what stands in backquotes in it is the catalog's."""
    pieces = change.what.split("`")
    said = "".join(
        _code(piece) if place % 2 else _words(piece) for place, piece in enumerate(pieces)
    )
    return f"**{change.kind}** {_code(change.place)} {said}"


def _words(text: str) -> str:
    return "".join(
        char if char.isalnum() or char in " ,.:;()[]'-…" else f"&#{ord(char)};" for char in text
    )


def _code(text: str) -> str:
    return f"`{_plain(text)}`" if text else ""


def _plain(text: str) -> str:
    """A text without what could end a code span, or what cannot be seen."""
    return shown(text).replace("`", "'")


def shown(text: str, longest: int = _LONGEST_CODE) -> str:
    """A text on one line, with a name for each character that cannot be seen, and cut where it is
    long.
    """
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return visible(
        text
        if text.isprintable()
        else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    )


def values(comparison: Comparison) -> dict[str, Any]:
    """The comparison as values of JSON."""
    totals = {
        "entries": len(comparison.entries),
        "by_what": comparison.whats,
        "by_kind": comparison.kinds,
    }
    entries = [
        {
            "what": entry.what,
            "kind": entry.kind,
            "path": entry.path,
            "toolkit": entry.toolkit,
            "tool": entry.slug,
            "version": entry.version,
            "compared_with": entry.before,
            "why": entry.why,
            "changes": [change._asdict() for change in entry.changes],
        }
        for entry in comparison.entries
    ]
    return {
        "before": comparison.before,
        "after": comparison.after,
        "totals": totals,
        "entries": entries,
    }
