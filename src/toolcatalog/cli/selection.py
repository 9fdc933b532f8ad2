"""Tool selection: slugs and toolkits of a command to tool versions of a build."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from toolcatalog import names, versions
from toolcatalog.errors import SnapshotError, UsageError, raise_all
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, Store, ToolEntry, VersionPins


def select_tool_ids(
    store: Store, slugs: Sequence[str], toolkits: Sequence[str], at_version: str = ""
) -> list[int]:
    """Return the ids of the selected tool versions, each once.

    Named tools come first, in this order, then those of the toolkits by slug. A slug may name its
    version (`SLUG@V`). Otherwise the version is the newest one that is not newer than `at_version`,
    if that is set. Raises UsageError with one line for each missing tool or toolkit.
    """
    if at_version and not versions.is_version(at_version):
        raise UsageError(
            f"`{at_version}` is not a version: it needs eight digits, `_` and two digits, such as "
            "20251027_00."
        )
    messages = [*find_unknown_toolkits(store, toolkits)]
    tool_ids: list[int] = []
    for name in slugs:
        slug, _, version = name.partition("@")
        entry = store.get_tool(slug)
        selected_version = _select_version(entry, version, at_version) if entry else None
        if entry and selected_version:
            tool_ids.append(entry.tool_id(selected_version))
        else:
            messages.append(_missing_tool_message(store, slug, version or at_version, entry))
    raise_all(messages)
    if toolkits:
        result = store.search(Filters(toolkits=toolkits), VersionPins(default=at_version or None))
        tool_ids += store.select_page(result, "slug", False, 0, result.total).tolist()
    return [*dict.fromkeys(tool_ids)]


def _select_version(entry: ToolEntry, version: str, at_version: str) -> str | None:
    if version:
        return version if version in entry.versions else None
    return entry.version_at(at_version or None)


def find_unknown_in_build(build: Path, toolkits: Sequence[str]) -> list[str]:
    """Return a message for each toolkit that a build does not have; none if it cannot be used."""
    try:
        return [*find_unknown_toolkits(open_build(build), toolkits)]
    except SnapshotError:  # reported by the commands that need the build
        return []


def find_unknown_toolkits(store: Store, toolkits: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each toolkit that a build does not have."""
    for toolkit in toolkits:
        if store.get_toolkit_versions(toolkit) is None:
            nearest = names.find_nearest(toolkit, store.nearby_names("toolkit", toolkit, 500))
            yield f"There is no toolkit {toolkit}{_did_you_mean(nearest)}."


def _missing_tool_message(store: Store, slug: str, version: str, entry: ToolEntry | None) -> str:
    if entry:
        return f"{slug} has no version {version}: it has {', '.join(entry.versions)}."
    nearest = (
        names.find_nearest(slug, store.similar_slugs(slug, None))
        if names.is_valid(names.TOOL_SLUG, slug.upper())
        else []
    )
    return (
        f"There is no tool {slug}{_did_you_mean(nearest)}: `toolcatalog search` finds tools by what"
        " they do."
    )


def _did_you_mean(matches: Sequence[str]) -> str:
    return f" (did you mean {matches[0]}?)" if matches else ""
