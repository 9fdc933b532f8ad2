"""Write imported tools: new catalog files, without what the catalog would reject.

Importers convert their input to `ImportedTool`s; this module converts these to a mapping of paths
to bytes. `catalog.schema` decides what is rejected, so that its rules are not repeated here. Only
the value that a finding names is left out, and each omission is reported as an `ImportNote`. Tools
that the catalog already contains unchanged are not written again.
"""

import copy
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcatalog import errors, names, versions
from toolcatalog.catalog import schema, yaml_reader, yaml_writer
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.folder import MAX_FILE_SIZE
from toolcatalog.catalog.loader import Document, Location
from toolcatalog.catalog.model import ToolVersion
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Pointer, UsageError
from toolcatalog.importers.existing import (
    UNDATED_VERSION,
    ExistingCatalog,
    ReadRecord,
    read_nothing,
)
from toolcatalog.importers.json_schema import Loss
from toolcatalog.importers.to_parameters import is_storable


def drop_refused(
    document: Document, required: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Loss]]:
    """Return the value of a document without what the catalog rejects, and the losses.

    `required` gives the fields that must be present, with values to use if they are missing.
    """
    said = document.value
    held = {key: inner for key, inner in said.items() if is_storable(inner, 2)}
    losses = [Loss((key,), f"`{key}` that no file can hold") for key in said if key not in held]
    losses += [
        Loss((key,), f"no `{key}` in the source: made up", str(required[key]))
        for key in required
        if key not in held
    ]
    findings = _refused_values(document, value := {**required, **held})
    # most values are valid, and a copy costs as much as the whole validation
    value = copy.deepcopy(value) if findings else value
    while findings:
        findings = (
            _merge_list_items(findings) if len(findings) > MAX_FINDINGS_PER_FILE else findings
        )
        # An example may be rejected because of an invalid description: remove that first.
        urgent = [pointer for pointer in findings if not {"examples", "default"} & {*pointer[-2:]}]
        for pointer in sorted(urgent or findings, reverse=True):
            losses.append(_loss(pointer, findings[pointer]))
            _remove_value(value, pointer)
        findings = _refused_values(document, value := {**required, **value})
    return value, losses


def _refused_values(document: Document, value: dict[str, Any]) -> dict[Pointer, Finding]:
    """Return the findings of a document by the pointers of whole values.

    For example, an example is kept or removed as a whole.
    """
    _, findings = schema.validate(Document(document.path, document.location, value, True))
    return {_value_pointer(finding.pointer): finding for finding in findings}


def _merge_list_items(findings: dict[Pointer, Finding]) -> dict[Pointer, Finding]:
    """Return the findings with each list in place of its items.

    Removing thousands of items one by one would take hours.
    """
    return {
        pointer[:-1] if isinstance(pointer[-1], int) else pointer: finding
        for pointer, finding in findings.items()
    }


def _value_pointer(pointer: Pointer) -> Pointer:
    """Return the pointer up to the first value that is not a description."""
    end = 2
    while end < len(pointer):
        if pointer[end] in ("properties", "anyOf", "oneOf"):
            end += 2
        elif pointer[end] in ("items", "additionalProperties"):
            end += 1
        else:
            return pointer[: end + (2 if pointer[end] in ("examples", "enum") else 1)]
    return pointer


def _loss(pointer: Pointer, finding: Finding) -> Loss:
    *outer, last = pointer
    if isinstance(last, int):
        what = f"a value in `{outer[-1]}`"
    else:
        what = "a parameter" if outer[-1:] == ["properties"] or len(outer) == 1 else f"`{last}`"
    return Loss(pointer, f"{what} that the catalog refuses", finding.message)


def _remove_value(value: Any, pointer: Pointer) -> None:
    """Remove the value at `pointer`, and the list that this leaves empty."""
    *outer, last = pointer
    around: Any = value
    for step in outer:
        around = around[step]
    if isinstance(around, list) and isinstance(last, int):
        del around[last]
        if not around:
            _remove_value(value, tuple(outer))
    else:
        around.pop(last, None)


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
    toolkits that it does.
    """

    files: Mapping[str, bytes]
    notes: tuple[ImportNote, ...]
    tools: int
    new: int
    updated: int
    unchanged: int
    missing: tuple[str, ...]


def build_files(
    tools: Iterable[ImportedTool],
    existing_paths: Collection[str],
    toolkit: str = "",
    version: str = "",
    read: ReadRecord = read_nothing,
    today: str = "",
) -> ImportResult:
    """Build the files of new tools and new versions, for a catalog with files at `existing_paths`.

    `toolkit` is for tools that name none; `version` is for all tools. A tool without a toolkit goes
    to the toolkit of the catalog whose slug its own slug begins with, or else to one named after
    its first word. `read` and `today` describe the existing content and the version for changed
    tools, see `ExistingCatalog`; without them nothing is compared. Raises UsageError, with a
    sentence for each fault, if tools cannot be added to this catalog.
    """
    errors.raise_all([*_option_faults(toolkit, version)])
    there = {*existing_paths}
    standing = ExistingCatalog.from_paths(there, read, today)
    work = _ImportBuilder(
        toolkit, version, standing, {*standing.toolkits}, {**standing.toolkit_of_tool}
    )
    for addition in tools:
        work.add_tool(addition)
    errors.raise_all(work.faults)
    written, renewed = (
        len(work.files),
        sum(path.split("/")[2] in standing.versions for path in work.files),
    )
    for slug in sorted(work.toolkit_fields):
        if f"toolkits/{slug}/toolkit.yaml" not in there:
            work.add_toolkit_file(slug)
    if "catalog.yaml" not in there:
        work.files["catalog.yaml"] = yaml_writer.to_yaml(_DEFAULT_CATALOG)
    return ImportResult(
        files=work.files,
        notes=tuple(work.notes),
        tools=written + len(work.unchanged),
        new=written - renewed,
        updated=renewed,
        unchanged=len(work.unchanged),
        missing=tuple(
            standing.find_missing_tools({slug for slug, _ in work.seen}, work.toolkit_fields)
        ),
    )


def check_tool_count(tools: int, size: int) -> None:
    """Raise UsageError if a document of `size` bytes contains implausibly many tools."""
    most = max(size, _MIN_COUNTED_SIZE) // _BYTES_PER_TOOL
    if tools > most:
        raise UsageError(
            f"There are {tools:,} tools here, and a document of this size may bring "
            f"{most:,}: import a part of them at a time."
        )


def _size_fault(value: dict[str, Any], data: bytes) -> str:
    """Return why the catalog would reject the file of a value for its size, or an empty string."""
    if len(data) > MAX_FILE_SIZE:
        return "be larger than 1 MiB"
    return _TOO_MANY_VALUES if yaml_reader.has_too_many_values(value) else ""


def _option_faults(toolkit: str, version: str) -> Iterator[str]:
    if toolkit and not names.is_valid(names.TOOLKIT_SLUG, toolkit):
        yield f"`{toolkit}` is not a toolkit slug: it needs lower-case letters, digits, `_` and `-`, at most {names.MAX_LENGTH}."
    if version and not versions.is_version(version):
        yield f"`{version}` is not a version: it needs eight digits, `_` and two digits, such as 20251027_00."


@dataclass(slots=True)
class _ImportBuilder:
    """The files and notes of an import while it runs.

    `toolkit_of_tool` maps the slugs of all tools to their toolkits.
    """

    toolkit: str
    version: str
    existing: ExistingCatalog
    toolkits_seen: set[str]
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

    def add_fault(self, sentence: str) -> None:
        self.faults.append(sentence)

    def add_tool(self, new: ImportedTool) -> None:
        """Add the file of one tool, or a note on why it is left out."""
        slug = new.slug if names.is_valid(names.TOOL_SLUG, new.slug) else new.slug.upper()
        toolkit = self.choose_toolkit(new, slug)
        if not (names.is_valid(names.TOOL_SLUG, slug) and toolkit):
            what = (
                "which no toolkit can be guessed from"
                if names.is_valid(names.TOOL_SLUG, slug)
                else "which no tool can have"
            )
            self.add_note(new.slug, Loss((), f"a tool left out for its slug, {what}"))
            return
        said = self.choose_version(new, slug)
        # checked first, because validating a large value takes long
        if yaml_reader.has_too_many_values(new.value):
            self.seen.setdefault((slug, said), "")
            self.add_note(
                slug, *new.losses, Loss((), f"a tool left out: its file would {_TOO_MANY_VALUES}")
            )
            return
        place = Location("tool", {"toolkit": toolkit, "tool": slug, "version": said})
        value, losses = drop_refused(
            Document(slug, place, new.value, True), {"name": slug, "description": ""}
        )
        self.add_note(
            slug,
            *([Loss((), "a slug that is in capitals now", new.slug)] if slug != new.slug else []),
            *new.losses,
            *losses,
        )
        digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        if self.toolkit_of_tool.setdefault(slug, toolkit) != toolkit:
            self.add_fault(
                f"{slug} is a tool of `{self.toolkit_of_tool[slug]}` already and cannot be one of "
                f"`{toolkit}` too: rename one of the two."
            )
        elif self.seen.setdefault((slug, said), digest) != digest:
            self.add_fault(
                f"{slug} stands here twice in version {said or UNDATED_VERSION}, and not alike: "
                "remove one of the two."
            )
        elif self.place_tool(
            ToolVersion.from_value(value, path="", slug=slug, toolkit=toolkit, version=said), value
        ):
            self.merge_toolkit_fields(slug, toolkit, new.toolkit)

    def place_tool(self, tool: ToolVersion, value: dict[str, Any]) -> bool:
        """Add the file of a valid tool unless the catalog has it.

        Return whether the tool is in the catalog afterwards.
        """
        version, deprecation = self.existing.decide_placement(tool, tool.version)
        if not version:
            self.unchanged.add((tool.slug, tool.version))
            return True
        if deprecation is not None:
            whole = {**value, "deprecation": deprecation}
            value = {key: whole[key] for key in _TOOL_FIELDS if key in whole}
        data, path = (
            yaml_writer.to_yaml(value),
            f"toolkits/{tool.toolkit}/{tool.slug}/{version}.yaml",
        )
        if wrong := _size_fault(value, data):
            self.add_note(tool.slug, Loss((), f"a tool left out: its file would {wrong}"))
        else:
            self.files[path] = data
        self.size += len(data)
        if self.size > _MAX_TOTAL_SIZE:
            raise UsageError(
                f"There are more than {_MAX_TOTAL_SIZE // 1024**2} MiB of files in this: import a part "
                "at a time."
            )
        return path in self.files

    def choose_toolkit(self, new: ImportedTool, slug: str) -> str:
        """Return the slug of a tool's toolkit, or an empty string if none can be determined."""
        said = new.toolkit.get("slug")
        if isinstance(said, str) and names.is_valid(names.TOOLKIT_SLUG, said):
            return said
        if said is not None:
            self.add_note(
                slug,
                Loss(("toolkit", "slug"), "a toolkit's slug that no toolkit can have", str(said)),
            )
        if self.toolkit:
            return self.toolkit
        lower = slug.lower().replace("-", "_")
        prefixes = [
            toolkit
            for toolkit in self.toolkits_seen
            if lower.startswith(f"{toolkit.replace('-', '_')}_")
        ]
        first = slug.lower().partition("_")[0]
        return max(
            prefixes,
            key=lambda toolkit: (len(toolkit), toolkit),
            default=first if names.is_valid(names.TOOLKIT_SLUG, first) else "",
        )

    def choose_version(self, new: ImportedTool, slug: str) -> str:
        """Return the version that a tool comes with, or an empty string if it has none."""
        said = new.version if versions.is_version(new.version) else ""
        if new.version not in ("", self.version or said or UNDATED_VERSION):
            self.add_note(
                slug, Loss(("version",), "`version` other than the one imported", new.version)
            )
        return self.version or (said if said != UNDATED_VERSION else "")

    def merge_toolkit_fields(self, slug: str, toolkit: str, fields: Mapping[str, Any]) -> None:
        """Merge the fields that one tool gives for its toolkit; the first value is kept."""
        known = self.toolkit_fields.setdefault(toolkit, {})
        for key, value in fields.items():
            if known.setdefault(key, value) != value:
                self.add_note(
                    slug, Loss(("toolkit", key), f"`{key}` of the toolkit other than the first")
                )

    def add_toolkit_file(self, toolkit: str) -> None:
        """Add the file of one toolkit."""
        place, said = Location("toolkit", {"toolkit": toolkit}), self.toolkit_fields[toolkit]
        value = {key: said[key] for key in said if key in SCHEMAS["toolkit"]["properties"]}
        title = toolkit.replace("_", " ").replace("-", " ").title().strip() or toolkit
        document = Document(f"toolkits/{toolkit}/toolkit.yaml", place, value, True)
        needed = {"name": title, "logo": f"https://logos.example.com/{toolkit}.svg"}
        kept, losses = drop_refused(document, needed)
        data = yaml_writer.to_yaml(kept)
        if wrong := _size_fault(kept, data):
            data, losses = (
                yaml_writer.to_yaml(needed),
                [Loss((), f"a toolkit's texts: its file would {wrong}")],
            )
        self.files[document.path] = data
        self.add_note(
            document.path,
            *(Loss((key,), f"`{key}`") for key in said if key not in (*value, "slug")),
            *losses,
        )
