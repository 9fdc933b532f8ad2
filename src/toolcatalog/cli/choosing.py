"""The tools of a build that a command is about: slugs, and whole toolkits, to the numbers of tool
versions in its store.
"""

from collections.abc import Iterator, Sequence

from toolcatalog import names, versions
from toolcatalog.errors import UsageError
from toolcatalog.store import Entry, Filters, Pins, Store

_SHOWN = 10  # faults told at once


def chosen(store: Store, slugs: Sequence[str], toolkits: Sequence[str], at: str = "") -> list[int]:
    """The numbers of tool versions: those named, in this order, and then those of the toolkits by
    slug; each once.

    A slug may name its version (`SLUG@V`); else it is the newest or, with `at`, the newest that is
    not newer than that. Raises UsageError, a sentence for each, where one is not there.
    """
    if at and not versions.is_version(at):
        raise UsageError(
            f"`{at}` is not a version: it needs eight digits, `_` and two digits, such as "
            "20251027_00."
        )
    faults = [*_unknown_toolkits(store, toolkits)]
    numbers: list[int] = []
    for name in slugs:
        slug, _, version = name.partition("@")
        entry = store.tool(slug)
        found = entry and (
            (version if version in entry.versions else None) if version else entry.at(at or None)
        )
        if entry and found:
            numbers.append(entry.number(found))
        else:
            faults.append(_missing(store, slug, version or at, entry))
    if faults:
        more = (
            [f"... and {len(faults) - _SHOWN:,} more like these."] if len(faults) > _SHOWN else []
        )
        raise UsageError("\n".join([*faults[:_SHOWN], *more]))
    if toolkits:
        found_there = store.matching(Filters(toolkits=toolkits), Pins(everywhere=at or None))
        numbers += store.page(found_there, "slug", False, 0, len(found_there.numbers)).tolist()
    return [*dict.fromkeys(numbers)]


def _unknown_toolkits(store: Store, toolkits: Sequence[str]) -> Iterator[str]:
    for toolkit in toolkits:
        if store.toolkit(toolkit) is None:
            near = names.nearest(toolkit, store.names_near("toolkit", toolkit, 500))
            yield f"There is no toolkit {toolkit}{_meant(near)}."


def _missing(store: Store, slug: str, version: str, entry: Entry | None) -> str:
    if entry:
        return f"{slug} has no version {version}: it has {', '.join(entry.versions)}."
    near = (
        names.nearest(slug, store.similar(slug, None))
        if names.fits(names.TOOL_SLUG, slug.upper())
        else []
    )
    return (
        f"There is no tool {slug}{_meant(near)}: `toolcatalog search` finds tools by what they do."
    )


def _meant(near: Sequence[str]) -> str:
    return f" (did you mean {near[0]}?)" if near else ""
