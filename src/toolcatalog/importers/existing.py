"""Existing tools: what the catalog already contains, and the version a change is written to.

A tool with the same content as in the catalog is left alone. A changed tool gets a new version: the
one it comes with, otherwise one of the current day. Published versions never change.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from toolcatalog import parameters, versions
from toolcatalog.catalog.model import Deprecation, Toolkit, ToolVersion
from toolcatalog.catalog.schema import Record
from toolcatalog.errors import UsageError
from toolcatalog.versions import is_version

UNDATED_VERSION = "00000000_00"  # the version of tools that come without one

ReadRecord = Callable[[str], Record | None]


def read_nothing(_: str) -> None:
    """Read no file; for catalogs of which only the paths are known."""


class Placement(NamedTuple):
    """The version under which a tool is added to the catalog, and the `deprecation` it keeps.

    `version` is empty if the catalog already has the same content.
    """

    version: str
    deprecation: dict[str, str] | None = None


@dataclass(slots=True)
class ExistingCatalog:
    """The state of a catalog before an import.

    `toolkit_of_tool` maps tools to their toolkits, `toolkits` are all toolkits, `used_toolkits`
    those that have tools. `read` returns the record of the file at a path, or None. `today` is a
    version of the current day, or empty.
    """

    read: ReadRecord
    today: str
    toolkit_of_tool: dict[str, str]
    toolkits: set[str]
    used_toolkits: set[str]
    versions: dict[str, list[str]]
    no_auth: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def from_paths(cls, paths: Collection[str], read: ReadRecord, today: str) -> "ExistingCatalog":
        """Return the state of a catalog whose files have these paths."""
        toolkit_of_tool, versions, toolkits = {}, defaultdict(list), set()
        for path in sorted(paths):
            match path.split("/"):
                case ["toolkits", toolkit, tool, file]:
                    toolkit_of_tool[tool] = toolkit
                    toolkits.add(toolkit)
                    if file.endswith(".yaml") and is_version(file.removesuffix(".yaml")):
                        versions[tool].append(file.removesuffix(".yaml"))
                case ["toolkits", toolkit, _]:
                    toolkits.add(toolkit)
                case ["meta_tools", tool, _]:
                    toolkit_of_tool[tool] = "meta_tools"
        used_toolkits = {*toolkit_of_tool.values()}
        return cls(read, today, toolkit_of_tool, toolkits, used_toolkits, dict(versions))

    def decide_placement(self, new: ToolVersion, version: str) -> Placement:
        """Return where a valid tool goes; `version` is the version it comes with, or empty.

        The tool is compared with that version if the catalog has it, otherwise with the newest one.
        Raises UsageError if no version is left.
        """
        existing = self.versions.get(new.slug, [])
        newest = existing[-1] if existing else ""
        compared = version if version in existing else newest
        path = f"toolkits/{new.toolkit}/{new.slug}/{compared}.yaml"
        old = self.read(path) if compared else None
        if not isinstance(old, ToolVersion):
            return Placement(version or self.choose_version(new, existing))
        if _has_same_deprecation(old, new) and self.canonical_content(
            old
        ) == self.canonical_content(new):
            return Placement("")
        deprecation = (
            old.deprecation if not new.deprecation or _has_same_deprecation(old, new) else None
        )
        return Placement(
            version or self.choose_version(new, existing),
            {key: text for key, text in asdict(deprecation).items() if text}
            if deprecation
            else None,
        )

    def choose_version(self, new: ToolVersion, existing: list[str]) -> str:
        """Choose a version for a tool that comes without one.

        `existing` are the tool's versions in the catalog, oldest first. Raises UsageError if no
        version can follow the newest of them.
        """
        if not self.today or not (existing or new.toolkit in self.used_toolkits):
            return UNDATED_VERSION
        following = versions.next_version(
            existing[-1] if existing else None, self.today.partition("_")[0]
        )
        if following is None:
            raise UsageError(
                f"{new.slug} has version {existing[-1]} already, and there is none after it: "
                "remove that one."
            )
        return following

    def canonical_content(self, tool: ToolVersion) -> str:
        """Return a tool's content as canonical JSON, in the form in which it is served.

        The deprecation is left out.
        """
        content = (
            [tool.name, tool.description, tool.scopes, tool.tags, self.needs_no_auth(tool)],
            parameters.to_served_inputs(tool.input_parameters),
            parameters.to_served_outputs(tool.output_parameters),
        )
        return json.dumps(content, sort_keys=True)

    def needs_no_auth(self, tool: ToolVersion) -> bool:
        """Return whether a tool needs no authentication; its toolkit provides the default."""
        if tool.no_auth is None and tool.toolkit not in self.no_auth:
            toolkit = self.read(f"toolkits/{tool.toolkit}/toolkit.yaml")
            self.no_auth[tool.toolkit] = isinstance(toolkit, Toolkit) and toolkit.no_auth
        return self.no_auth[tool.toolkit] if tool.no_auth is None else tool.no_auth

    def find_missing_tools(self, imported: Collection[str], toolkits: Collection[str]) -> list[str]:
        """Return the slugs of tools in these toolkits that the source does not contain.

        Tools that are already deprecated are left out.
        """
        missing = sorted(
            slug
            for slug, toolkit in self.toolkit_of_tool.items()
            if toolkit in toolkits and slug not in imported
        )
        return [slug for slug in missing if not self.is_deprecated(slug)]

    def is_deprecated(self, slug: str) -> bool:
        """Return whether the newest version of a tool is deprecated."""
        version = self.versions.get(slug, [UNDATED_VERSION])[-1]
        newest = self.read(f"toolkits/{self.toolkit_of_tool[slug]}/{slug}/{version}.yaml")
        return isinstance(newest, ToolVersion) and newest.deprecation is not None


def _has_same_deprecation(old: ToolVersion, new: ToolVersion) -> bool:
    """Return whether the new version adds nothing to the old version's deprecation.

    That is the case if it has no deprecation, or an empty one and the old one is deprecated.
    """
    if new.deprecation in (None, Deprecation()):
        return new.deprecation is None or old.deprecation is not None
    return new.deprecation == old.deprecation
