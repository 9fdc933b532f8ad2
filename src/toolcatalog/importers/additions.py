"""New tools for a catalog: where their files go, what of them the catalog would refuse, and the files. Pure.

Importers make `Addition`s of whatever they read; here these become a tree of path and bytes. What the catalog would refuse is found by
asking `schema`, so that nothing here repeats its rules, and only the very value that it names is left out and told in a `Note`.
"""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcatalog import names, schema, versions, yamlout
from toolcatalog.errors import Finding, Pointer, UsageError
from toolcatalog.formats import SCHEMAS
from toolcatalog.importers.descriptions import holdable
from toolcatalog.importers.dialects import Loss
from toolcatalog.source import Document, Place
from toolcatalog.tree import LARGEST

UNDATED = "00000000_00"  # the version of tools that come without one
_SHOWN = 10  # faults told at once
_ABOUT = {"title": "Tool catalog"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A tool to add: its slug, the value of its file, and what is known of its version and toolkit (`slug`, fields of toolkit.yaml)."""

    slug: str
    value: dict[str, Any]
    toolkit: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that the catalog does not hold as it came, and of what: the slug of a tool, or the path of another file."""

    of: str
    loss: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The files to write, by their paths in the catalog; how many tools are among them; and what they do not hold."""

    tree: Mapping[str, bytes]
    tools: int
    notes: tuple[Note, ...]


def files(additions: Iterable[Addition], present: Collection[str], toolkit: str = "", version: str = "") -> Added:
    """The files of new tools in a catalog whose files are at the paths `present`.

    `toolkit` is for tools that name none; `version` is for all. A tool of neither goes to the toolkit of the catalog whose slug its
    own begins with, else to that of its first word. Raises UsageError, a sentence for each, where tools cannot stand in this catalog.
    """
    stop([*_unusable(toolkit, version)])
    steps = [path.split("/") for path in present]
    homes = {step[2]: step[1] for step in steps if step[0] == "toolkits" and len(step) == 4}
    homes |= {step[1]: step[0] for step in steps if step[0] == "meta_tools" and len(step) == 3}
    work = _Work(toolkit, version, {step[1] for step in steps if step[0] == "toolkits" and len(step) > 2}, homes)
    for addition in additions:
        work.add(addition)
    stop(work.faults)
    tools = len(work.tree)
    for slug in sorted(work.toolkits):
        if f"toolkits/{slug}/toolkit.yaml" not in present:
            work.describe(slug)
    if "catalog.yaml" not in present:
        work.tree["catalog.yaml"] = yamlout.emit(_ABOUT)
    return Added(tree=work.tree, tools=tools, notes=tuple(work.notes))


def stop(faults: list[str]) -> None:
    """Raise UsageError with the first few sentences, if there are any."""
    if faults:
        more = [f"... and {len(faults) - _SHOWN:,} more like these."] if len(faults) > _SHOWN else []
        raise UsageError("\n".join([*faults[:_SHOWN], *more]))


def _unusable(toolkit: str, version: str) -> Iterator[str]:
    if toolkit and not names.fits(names.TOOLKIT_SLUG, toolkit):
        yield f"`{toolkit}` is not a toolkit slug: it needs lower-case letters, digits, `_` and `-`, at most {names.LONGEST}."
    if version and not versions.is_version(version):
        yield f"`{version}` is not a version: it needs eight digits, `_` and two digits, such as 20251027_00."


@dataclass(slots=True)
class _Work:
    """The tree while it grows, with what there is to tell. `homes` are the toolkits of the tools that are there, by slug."""

    toolkit: str
    version: str
    known: set[str]
    homes: dict[str, str]
    tree: dict[str, bytes] = field(default_factory=dict)
    toolkits: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def note(self, of: str, *losses: Loss) -> None:
        self.notes.extend(Note(of=of, loss=loss) for loss in losses)

    def add(self, new: Addition) -> None:
        """Put the file of one tool into the tree, or tell why it is left out."""
        slug = new.slug if names.fits(names.TOOL_SLUG, new.slug) else new.slug.upper()
        toolkit, version = self.toolkit_of(new, slug), self.version_of(new, slug)
        if not (names.fits(names.TOOL_SLUG, slug) and toolkit):
            what = "which no toolkit can be guessed from" if names.fits(names.TOOL_SLUG, slug) else "which no tool can have"
            self.note(new.slug, Loss((), f"a tool left out for its slug, {what}"))
            return
        place = Place("tool", {"toolkit": toolkit, "tool": slug, "version": version})
        document = Document(f"toolkits/{toolkit}/{slug}/{version}.yaml", place, new.value, True)
        data, losses = _file(document, {"name": slug, "description": ""})
        self.note(slug, *([Loss((), "a slug that is in capitals now", new.slug)] if slug != new.slug else []), *new.losses, *losses)
        if data and not self.clashes(slug, toolkit, document.path, data):
            self.tree[document.path] = data
            self.gather(slug, toolkit, new.toolkit)

    def toolkit_of(self, new: Addition, slug: str) -> str:
        """The slug of a tool's toolkit; empty where there is none to be found."""
        said = new.toolkit.get("slug")
        if isinstance(said, str) and names.fits(names.TOOLKIT_SLUG, said):
            return said
        if said is not None:
            self.note(slug, Loss(("toolkit", "slug"), "a toolkit's slug that no toolkit can have", str(said)))
        if self.toolkit:
            return self.toolkit
        lower = slug.lower().replace("-", "_")
        prefixes = [toolkit for toolkit in self.known if lower.startswith(f"{toolkit.replace('-', '_')}_")]
        first = slug.lower().partition("_")[0]
        return max(prefixes, key=lambda toolkit: (len(toolkit), toolkit), default=first if names.fits(names.TOOLKIT_SLUG, first) else "")

    def version_of(self, new: Addition, slug: str) -> str:
        said = new.version if versions.is_version(new.version) else ""
        chosen = self.version or said or UNDATED
        if new.version not in ("", chosen):
            self.note(slug, Loss(("version",), "`version` other than the one imported", new.version))
        return chosen

    def clashes(self, slug: str, toolkit: str, path: str, data: bytes) -> bool:
        """Tell whether the tool has no place; why is then among the faults."""
        home = self.homes.setdefault(slug, toolkit)
        if home != toolkit:
            self.faults.append(f"{slug} is a tool of `{home}` already and cannot be one of `{toolkit}` too: rename one of the two.")
        elif self.tree.get(path, data) != data:
            self.faults.append(f"{slug} stands here twice in version {path[-16:-5]}, and not alike: remove one of the two.")
        return home != toolkit or self.tree.get(path, data) != data

    def gather(self, slug: str, toolkit: str, said: Mapping[str, Any]) -> None:
        """Take what one tool says of its toolkit."""
        known = self.toolkits.setdefault(toolkit, {})
        for key, value in said.items():
            if known.setdefault(key, value) != value:
                self.note(slug, Loss(("toolkit", key), f"`{key}` of the toolkit other than the first"))

    def describe(self, toolkit: str) -> None:
        """Put the file of one toolkit into the tree."""
        place, said = Place("toolkit", {"toolkit": toolkit}), self.toolkits[toolkit]
        value = {key: said[key] for key in said if key in SCHEMAS["toolkit"]["properties"]}
        title = toolkit.replace("_", " ").replace("-", " ").title().strip() or toolkit
        document = Document(f"toolkits/{toolkit}/toolkit.yaml", place, value, True)
        data, losses = _file(document, {"name": title, "logo": f"https://logos.example.com/{toolkit}.svg"})
        self.tree[document.path] = data
        self.note(document.path, *(Loss((key,), f"`{key}`") for key in said if key not in (*value, "slug")), *losses)


def _file(document: Document, needed: Mapping[str, Any]) -> tuple[bytes, list[Loss]]:
    """The text of a file, and what had to go; empty where nothing would be left. `needed` are fields that must be there."""
    value = copy.deepcopy(document.value)
    losses = [Loss((key,), f"`{key}` that no file can hold") for key in value if not holdable(value[key], 2)]
    value = {key: value[key] for key in value if holdable(value[key], 2)}
    losses += [Loss((key,), f"no `{key}` in the source: made up", str(needed[key])) for key in needed if key not in value]
    while findings := _findings(document, value := {**needed, **value}):
        # An example may be refused for a description that is itself in the wrong: that one goes first.
        urgent = [pointer for pointer in findings if not {"examples", "default"} & {*pointer[-2:]}]
        for pointer in sorted(urgent or findings, reverse=True):
            losses.append(_loss(pointer, findings[pointer]))
            _remove(value, pointer)
    data = yamlout.emit(value)
    return (data, losses) if len(data) <= LARGEST else (b"", [Loss((), "a tool left out: its file would be larger than 1 MiB")])


def _findings(document: Document, value: dict[str, Any]) -> dict[Pointer, Finding]:
    """What the catalog refuses, by the pointers of whole values: an example goes or stays, nothing within it does."""
    _, findings = schema.record(Document(document.path, document.place, value, True))
    return {_whole(finding.pointer): finding for finding in findings}


def _whole(pointer: Pointer) -> Pointer:
    """The pointer up to the first value that is not a description."""
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


def _remove(value: Any, pointer: Pointer) -> None:
    """Take away the value at `pointer`, and the list that it leaves empty."""
    *outer, last = pointer
    around: Any = value
    for step in outer:
        around = around[step]
    if isinstance(around, list) and isinstance(last, int):
        del around[last]
        if not around:
            _remove(value, tuple(outer))
    else:
        around.pop(last, None)
