"""Tool selection: slugs and toolkits of a command to tool versions of a build."""

from collections.abc import Iterator, Sequence

from toolcatalog import names, versions
from toolcatalog.errors import UsageError
from toolcatalog.store.store import Filters, Store, ToolEntry, VersionPins

_MAX_ERRORS = 10  # faults told at once


def select_tool_ids(
    store: Store, slugs: Sequence[str], toolkits: Sequence[str], at_version: str = ""
) -> list[int]:
    """The numbers of tool versions: those named, in this order, and then those of the toolkits by
    slug; each once.

    A slug may name its version (`SLUG@V`); else it is the newest or, with `at`, the newest that is
    not newer than that. Raises UsageError, a sentence for each, where one is not there.
    """
    if at_version and not versions.is_version(at_version):
        raise UsageError(
            f"`{at_version}` is not a version: it needs eight digits, `_` and two digits, such as "
            "20251027_00."
        )
    faults = [*_unknown_toolkit_messages(store, toolkits)]
    numbers: list[int] = []
    for name in slugs:
        slug, _, version = name.partition("@")
        entry = store.get_tool(slug)
        found = entry and (
            (version if version in entry.versions else None)
            if version
            else entry.version_at(at_version or None)
        )
        if entry and found:
            numbers.append(entry.tool_id(found))
        else:
            faults.append(_missing_tool_message(store, slug, version or at_version, entry))
    if faults:
        more = (
            [f"... and {len(faults) - _MAX_ERRORS:,} more like these."]
            if len(faults) > _MAX_ERRORS
            else []
        )
        raise UsageError("\n".join([*faults[:_MAX_ERRORS], *more]))
    if toolkits:
        found_there = store.search(
            Filters(toolkits=toolkits), VersionPins(default=at_version or None)
        )
        numbers += store.select_page(
            found_there, "slug", False, 0, len(found_there.tool_ids)
        ).tolist()
    return [*dict.fromkeys(numbers)]


def _unknown_toolkit_messages(store: Store, toolkits: Sequence[str]) -> Iterator[str]:
    for toolkit in toolkits:
        if store.get_toolkit_versions(toolkit) is None:
            near = names.find_nearest(toolkit, store.nearby_names("toolkit", toolkit, 500))
            yield f"There is no toolkit {toolkit}{_did_you_mean(near)}."


def _missing_tool_message(store: Store, slug: str, version: str, entry: ToolEntry | None) -> str:
    if entry:
        return f"{slug} has no version {version}: it has {', '.join(entry.versions)}."
    near = (
        names.find_nearest(slug, store.similar_slugs(slug, None))
        if names.is_valid(names.TOOL_SLUG, slug.upper())
        else []
    )
    return f"There is no tool {slug}{_did_you_mean(near)}: `toolcatalog search` finds tools by what they do."


def _did_you_mean(matches: Sequence[str]) -> str:
    return f" (did you mean {matches[0]}?)" if matches else ""
