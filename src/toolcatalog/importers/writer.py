"""Write imported tools: new catalog files, without what the catalog would refuse.

Importers convert their input to `ImportedTool`s; this module converts these to a mapping of paths
to bytes. Each omission is reported as an `ImportNote`. Tools that the catalog already contains
unchanged are not written again.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcatalog import errors, names, versions
from toolcatalog.catalog import yaml_reader, yaml_writer
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.folder import MAX_FILE_SIZE
from toolcatalog.catalog.loader import Document, Location
from toolcatalog.catalog.model import ToolVersion
from toolcatalog.errors import UsageError
from toolcatalog.importers.existing import (
    UNDATED_VERSION,
    ExistingCatalog,
    ReadRecord,
    read_nothing,
)
from toolcatalog.importers.json_schema import Loss
from toolcatalog.importers.repairs import ContentRules, no_rules, repair

_TOOL_FIELDS = [*SCHEMAS["tool"]["properties"]]
_DEFAULT_CATALOG = {"title": "Tool catalog"}
_TOO_MANY_VALUES = f"have more than {yaml_reader.MAX_VALUES:,} values"
_MIN_COUNTED_SIZE = 1024 * 1024  # bytes; smaller documents get the limit of this size
# minimum average bytes per tool; typical tools take 2,000 or more
_BYTES_PER_TOOL = 512
# bytes of all files of one import, which stay in memory until all are accepted
_MAX_TOTAL_SIZE = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTool:
    """A tool to add: its slug, the value of its file, its version, its toolkit and its losses.

    `toolkit` contains the toolkit's `slug` and fields of toolkit.yaml, as far as they are known.
    """

    slug: str
    value: dict[str, Any]
    toolkit: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportNote:
    """A loss of an import, and its subject: the slug of a tool or the path of another file."""

    subject: str
    loss: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """The files to write, by their paths in the catalog, and notes on what they do not contain.

    `tools` counts all tool versions with a place in the catalog: those of `new` tools, the
    `updated` versions of existing tools whose content differs, and the `unchanged` ones, for which
    no file is written. `missing` are the catalog's tools that the source does not contain, in
    toolkits that it does. `extended` are the existing toolkits that get new tools.
    """

    files: Mapping[str, bytes]
    notes: tuple[ImportNote, ...]
    tools: int
    new: int
    updated: int
    unchanged: int
    missing: tuple[str, ...]
    extended: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """How tools are added to a catalog.

    `toolkit` is for tools that name none; `version` is for all tools. `read` and `today` describe
    the existing content and the version for changed tools, see `ExistingCatalog`; without them
    nothing is compared. `rules` are the rules that the files must pass.
    """

    toolkit: str = ""
    version: str = ""
    read: ReadRecord = read_nothing
    today: str = ""
    rules: ContentRules = field(default_factory=no_rules)


def build_files(
    tools: Iterable[ImportedTool],
    existing_paths: Collection[str],
    options: ImportOptions | None = None,
) -> ImportResult:
    """Build the files of new tools and new versions, for a catalog with files at `existing_paths`.

    A tool without a toolkit goes to the toolkit of the catalog whose slug its own slug begins with,
    or else to one named after its first word. Raises UsageError, with a sentence for each fault, if
    tools cannot be added to this catalog.
    """
    options = options or ImportOptions()
    errors.raise_all([*_option_faults(options.toolkit, options.version)])
    existing = ExistingCatalog.from_paths(existing_paths, options.read, options.today)
    builder = _ImportBuilder(options, existing, {**existing.toolkit_of_tool})
    for tool in tools:
        builder.add_tool(tool)
    errors.raise_all(builder.faults)
    written = len(builder.files)
    new_tools = [path for path in builder.files if path.split("/")[2] not in existing.versions]
    extended = {path.split("/")[1] for path in new_tools} & {*existing.toolkits}
    builder.add_other_files({*existing_paths})
    imported = {slug for slug, _ in builder.seen}
    return ImportResult(
        files=builder.files,
        notes=tuple(builder.notes),
        tools=written + len(builder.unchanged),
        new=len(new_tools),
        updated=written - len(new_tools),
        unchanged=len(builder.unchanged),
        missing=tuple(existing.find_missing_tools(imported, builder.toolkit_fields)),
        extended=tuple(sorted(extended)),
    )


def check_tool_count(tools: int, size: int) -> None:
    """Raise UsageError if a document of `size` bytes contains implausibly many tools."""
    limit = max(size, _MIN_COUNTED_SIZE) // _BYTES_PER_TOOL
    if tools > limit:
        raise UsageError(
            f"There are {tools:,} tools here, and a document of this size may bring "
            f"{limit:,}: import a part of them at a time."
        )


def _size_fault(value: dict[str, Any], data: bytes) -> str:
    """Return why the catalog would reject the file of a value for its size, or an empty string."""
    if len(data) > MAX_FILE_SIZE:
        return "be larger than 1 MiB"
    return _TOO_MANY_VALUES if yaml_reader.has_too_many_values(value) else ""


def _option_faults(toolkit: str, version: str) -> Iterator[str]:
    if toolkit and not names.is_valid(names.TOOLKIT_SLUG, toolkit):
        expected = f"lower-case letters, digits, `_` and `-`, at most {names.MAX_LENGTH}"
        yield f"`{toolkit}` is not a toolkit slug: it needs {expected}."
    if version and not versions.is_version(version):
        expected = "eight digits, `_` and two digits, such as 20251027_00"
        yield f"`{version}` is not a version: it needs {expected}."


@dataclass(slots=True)
class _ImportBuilder:
    """The files and notes of an import while it runs.

    `toolkit_of_tool` maps the slugs of all tools to their toolkits. `seen` maps the slug and the
    version of each imported tool to the digest of its content.
    """

    options: ImportOptions
    existing: ExistingCatalog
    toolkit_of_tool: dict[str, str]
    files: dict[str, bytes] = field(default_factory=dict)
    size: int = 0
    seen: dict[tuple[str, str], str] = field(default_factory=dict)
    unchanged: set[tuple[str, str]] = field(default_factory=set)
    toolkit_fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[ImportNote] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add_note(self, subject: str, *losses: Loss) -> None:
        self.notes.extend(ImportNote(subject=subject, loss=loss) for loss in losses)

    def add_tool(self, new: ImportedTool) -> None:
        """Add the file of one tool, or a note on why it is left out."""
        slug = new.slug if names.is_valid(names.TOOL_SLUG, new.slug) else new.slug.upper()
        toolkit = self.choose_toolkit(new, slug)
        if not (names.is_valid(names.TOOL_SLUG, slug) and toolkit):
            self.report_unusable_slug(new, slug)
            return
        version = self.choose_version(new, slug)
        value = self.repair_tool(new, slug, toolkit, version)
        if value is None:
            self.seen.setdefault((slug, version), "")
            return
        tool = ToolVersion.from_value(value, path="", slug=slug, toolkit=toolkit, version=version)
        if self.is_consistent(tool, value) and self.place_tool(tool, value):
            self.merge_toolkit_fields(slug, toolkit, new.toolkit)

    def report_unusable_slug(self, new: ImportedTool, slug: str) -> None:
        kind = (
            "which no toolkit can be guessed from"
            if names.is_valid(names.TOOL_SLUG, slug)
            else "which no tool can have"
        )
        self.add_note(new.slug, Loss((), f"a tool left out for its slug, {kind}"))

    def repair_tool(
        self, new: ImportedTool, slug: str, toolkit: str, version: str
    ) -> dict[str, Any] | None:
        """Return the value of a tool's file, or None, with a note, if there can be no such file."""
        # checked first, because validating a large value takes long
        if yaml_reader.has_too_many_values(new.value):
            kind = f"a tool left out: its file would {_TOO_MANY_VALUES}"
            self.add_note(slug, *new.losses, Loss((), kind))
            return None
        location = Location("tool", {"toolkit": toolkit, "tool": slug, "version": version})
        document = Document(slug, location, new.value, True)
        value, losses = repair(document, {"name": slug, "description": ""}, self.options.rules)
        if slug != new.slug:
            self.add_note(slug, Loss((), "a slug that is in capitals now", new.slug))
        self.add_note(slug, *new.losses, *losses)
        if value is None:
            self.add_note(slug, Loss((), "a tool left out: a rule refuses its texts"))
        return value

    def is_consistent(self, tool: ToolVersion, value: dict[str, Any]) -> bool:
        """Return whether a tool contradicts no other; record a fault if it does."""
        slug, toolkit, version = tool.slug, tool.toolkit, tool.version
        digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        if self.toolkit_of_tool.setdefault(slug, toolkit) != toolkit:
            self.faults.append(
                f"{slug} is a tool of `{self.toolkit_of_tool[slug]}` already and cannot be one of "
                f"`{toolkit}` too: rename one of the two."
            )
            return False
        if self.seen.setdefault((slug, version), digest) != digest:
            self.faults.append(
                f"{slug} occurs twice in version {version or UNDATED_VERSION}, with "
                "different definitions: "
                "remove one of the two."
            )
            return False
        return True

    def place_tool(self, tool: ToolVersion, value: dict[str, Any]) -> bool:
        """Add the file of a valid tool unless the catalog has it.

        Return whether the tool is in the catalog afterwards.
        """
        version, deprecation = self.existing.decide_placement(tool, tool.version)
        if not version:
            self.unchanged.add((tool.slug, tool.version))
            return True
        if deprecation is not None:
            fields = {**value, "deprecation": deprecation}
            value = {key: fields[key] for key in _TOOL_FIELDS if key in fields}
        data = yaml_writer.to_yaml(value)
        self.count_size(data)
        if fault := _size_fault(value, data):
            self.add_note(tool.slug, Loss((), f"a tool left out: its file would {fault}"))
            return False
        self.files[f"toolkits/{tool.toolkit}/{tool.slug}/{version}.yaml"] = data
        return True

    def count_size(self, data: bytes) -> None:
        """Add the size of a file. Raises UsageError if all files are too large together."""
        self.size += len(data)
        if self.size > _MAX_TOTAL_SIZE:
            raise UsageError(
                f"There are more than {_MAX_TOTAL_SIZE // 1024**2} MiB of files in this: import a "
                "part at a time."
            )

    def choose_toolkit(self, new: ImportedTool, slug: str) -> str:
        """Return the slug of a tool's toolkit, or an empty string if none can be determined."""
        stated = new.toolkit.get("slug")
        if isinstance(stated, str) and names.is_valid(names.TOOLKIT_SLUG, stated):
            return stated
        if stated is not None:
            kind = "a toolkit's slug that no toolkit can have"
            self.add_note(slug, Loss(("toolkit", "slug"), kind, str(stated)))
        if self.options.toolkit:
            return self.options.toolkit
        lower = slug.lower().replace("-", "_")
        matches = [
            toolkit
            for toolkit in self.existing.toolkits
            if lower.startswith(f"{toolkit.replace('-', '_')}_")
        ]
        if matches:
            return max(matches, key=lambda toolkit: (len(toolkit), toolkit))
        first = slug.lower().partition("_")[0]
        return first if names.is_valid(names.TOOLKIT_SLUG, first) else ""

    def choose_version(self, new: ImportedTool, slug: str) -> str:
        """Return the version that a tool comes with, or an empty string if it has none."""
        chosen = self.options.version
        stated = new.version if versions.is_version(new.version) else ""
        if new.version not in ("", chosen or stated or UNDATED_VERSION):
            kind = "`version` other than the one imported"
            self.add_note(slug, Loss(("version",), kind, new.version))
        return chosen or (stated if stated != UNDATED_VERSION else "")

    def merge_toolkit_fields(self, slug: str, toolkit: str, fields: Mapping[str, Any]) -> None:
        """Merge the fields that one tool gives for its toolkit; the first value is kept."""
        merged = self.toolkit_fields.setdefault(toolkit, {})
        for key, value in fields.items():
            if merged.setdefault(key, value) != value:
                kind = f"`{key}` of the toolkit other than the first"
                self.add_note(slug, Loss(("toolkit", key), kind))

    def add_other_files(self, existing_paths: Collection[str]) -> None:
        """Add the files of new toolkits, and of the catalog if it is new."""
        for slug in sorted(self.toolkit_fields):
            if f"toolkits/{slug}/toolkit.yaml" not in existing_paths:
                self.add_toolkit_file(slug)
        if "catalog.yaml" not in existing_paths:
            self.files["catalog.yaml"] = yaml_writer.to_yaml(_DEFAULT_CATALOG)

    def add_toolkit_file(self, toolkit: str) -> None:
        """Add the file of one toolkit."""
        fields = self.toolkit_fields[toolkit]
        value = {key: fields[key] for key in fields if key in SCHEMAS["toolkit"]["properties"]}
        name = toolkit.replace("_", " ").replace("-", " ").title().strip() or toolkit
        location = Location("toolkit", {"toolkit": toolkit})
        document = Document(f"toolkits/{toolkit}/toolkit.yaml", location, value, True)
        repaired, losses = repair(document, {"name": name}, self.options.rules)
        repaired = repaired or {"name": name}
        data = yaml_writer.to_yaml(repaired)
        if fault := _size_fault(repaired, data):
            data = yaml_writer.to_yaml({"name": name})
            losses = [Loss((), f"a toolkit's texts: its file would {fault}")]
        self.files[document.path] = data
        unknown = [Loss((key,), f"`{key}`") for key in fields if key not in (*value, "slug")]
        self.add_note(document.path, *unknown, *losses)
