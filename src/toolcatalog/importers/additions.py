"""New tools for a catalog: where their files go, and the files. Pure.

Importers make `Addition`s of whatever they read; here these become a tree of path and bytes. What
the catalog would refuse is left out and told in a `Note`; what it has already is not written again.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcatalog import names, versions, yaml12, yamlout
from toolcatalog.errors import UsageError
from toolcatalog.formats import SCHEMAS
from toolcatalog.importers.dialects import Loss
from toolcatalog.importers.refusals import sound
from toolcatalog.importers.standing import UNDATED, Read, Standing, nothing
from toolcatalog.model import ToolVersion
from toolcatalog.source import Document, Place
from toolcatalog.tree import LARGEST

_FIELDS = [*SCHEMAS["tool"]["properties"]]
_SHOWN = 10  # faults told at once
_ABOUT = {"title": "Tool catalog"}
_TOO_MANY = f"have more than {yaml12.MOST_VALUES:,} values"
_LEAST = 1024 * 1024  # bytes: as many tools as a smaller document might bring count for it
# bytes that a tool takes at least, on the average; those that we know take 2,000 and more
_FOR_A_TOOL = 512
# bytes of all files of one import, which are held until none of them is refused
_MOST = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A tool to add: its slug, the value of its file, and what is known of its version and toolkit
    (`slug`, fields of toolkit.yaml).
    """

    slug: str
    value: dict[str, Any]
    toolkit: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that the catalog does not hold as it came, and of what: the slug of a tool, or the
    path of another file.
    """

    of: str
    loss: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The files to write, by their paths in the catalog, and what they do not hold.

    `tools` counts the tool versions that have a place in the catalog: those of `new` tools, of
    tools that are `renewed` (in the catalog, but not with this content), and the `unchanged`, of
    which there is no file to write. `gone` are tools of the catalog that the source does not show,
    in toolkits that it does.
    """

    tree: Mapping[str, bytes]
    notes: tuple[Note, ...]
    tools: int
    new: int
    renewed: int
    unchanged: int
    gone: tuple[str, ...]


def files(
    additions: Iterable[Addition],
    present: Collection[str],
    toolkit: str = "",
    version: str = "",
    read: Read = nothing,
    today: str = "",
) -> Added:
    """The files of new tools, and of new versions of tools, in a catalog whose files are at the
    paths `present`.

    `toolkit` is for tools that name none; `version` is for all. A tool of neither goes to the
    toolkit of the catalog whose slug its own begins with, else to that of its first word. `read`
    and `today` tell what is there already and the version of what changes, see `standing`; without
    them nothing is compared. Raises UsageError, a sentence for each, where tools cannot stand in
    this catalog.
    """
    stop([*_unusable(toolkit, version)])
    there = {*present}
    standing = Standing.of(there, read, today)
    work = _Work(toolkit, version, standing, {*standing.known}, {**standing.homes})
    for addition in additions:
        work.add(addition)
    stop(work.faults)
    written, renewed = (
        len(work.tree),
        sum(path.split("/")[2] in standing.versions for path in work.tree),
    )
    for slug in sorted(work.toolkits):
        if f"toolkits/{slug}/toolkit.yaml" not in there:
            work.describe(slug)
    if "catalog.yaml" not in there:
        work.tree["catalog.yaml"] = yamlout.emit(_ABOUT)
    return Added(
        tree=work.tree,
        notes=tuple(work.notes),
        tools=written + len(work.unchanged),
        new=written - renewed,
        renewed=renewed,
        unchanged=len(work.unchanged),
        gone=tuple(standing.gone({slug for slug, _ in work.seen}, work.toolkits)),
    )


def stop(faults: list[str]) -> None:
    """Raise UsageError with the first few sentences, if there are any."""
    if faults:
        more = (
            [f"... and {len(faults) - _SHOWN:,} more like these."] if len(faults) > _SHOWN else []
        )
        raise UsageError("\n".join([*faults[:_SHOWN], *more]))


def stop_at_many(tools: int, size: int) -> None:
    """Raise UsageError where a document of `size` bytes brings so many tools that none of them can
    say much.
    """
    most = max(size, _LEAST) // _FOR_A_TOOL
    if tools > most:
        raise UsageError(
            f"There are {tools:,} tools here, and a document of this size may bring "
            f"{most:,}: import a part of them at a time."
        )


def _unfit(value: dict[str, Any], data: bytes) -> str:
    """Why a catalog would not take the file of a value for its size, in words; empty where it
    would.
    """
    if len(data) > LARGEST:
        return "be larger than 1 MiB"
    return _TOO_MANY if yaml12.has_too_many(value) else ""


def _unusable(toolkit: str, version: str) -> Iterator[str]:
    if toolkit and not names.fits(names.TOOLKIT_SLUG, toolkit):
        yield f"`{toolkit}` is not a toolkit slug: it needs lower-case letters, digits, `_` and `-`, at most {names.LONGEST}."
    if version and not versions.is_version(version):
        yield f"`{version}` is not a version: it needs eight digits, `_` and two digits, such as 20251027_00."


@dataclass(slots=True)
class _Work:
    """The tree while it grows, with what there is to tell. `homes` are the toolkits of all tools,
    by slug.
    """

    toolkit: str
    version: str
    standing: Standing
    known: set[str]
    homes: dict[str, str]
    tree: dict[str, bytes] = field(default_factory=dict)
    size: int = 0
    seen: dict[tuple[str, str], str] = field(default_factory=dict)
    unchanged: set[tuple[str, str]] = field(default_factory=set)
    toolkits: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def note(self, of: str, *losses: Loss) -> None:
        self.notes.extend(Note(of=of, loss=loss) for loss in losses)

    def fault(self, sentence: str) -> None:
        self.faults.append(sentence)

    def add(self, new: Addition) -> None:
        """Put the file of one tool into the tree, or tell why it is left out."""
        slug = new.slug if names.fits(names.TOOL_SLUG, new.slug) else new.slug.upper()
        toolkit = self.toolkit_of(new, slug)
        if not (names.fits(names.TOOL_SLUG, slug) and toolkit):
            what = (
                "which no toolkit can be guessed from"
                if names.fits(names.TOOL_SLUG, slug)
                else "which no tool can have"
            )
            self.note(new.slug, Loss((), f"a tool left out for its slug, {what}"))
            return
        said = self.version_of(new, slug)
        # told before it is made sound, which takes long where there is much
        if yaml12.has_too_many(new.value):
            self.seen.setdefault((slug, said), "")
            self.note(slug, *new.losses, Loss((), f"a tool left out: its file would {_TOO_MANY}"))
            return
        place = Place("tool", {"toolkit": toolkit, "tool": slug, "version": said})
        value, losses = sound(
            Document(slug, place, new.value, True), {"name": slug, "description": ""}
        )
        self.note(
            slug,
            *([Loss((), "a slug that is in capitals now", new.slug)] if slug != new.slug else []),
            *new.losses,
            *losses,
        )
        digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        if self.homes.setdefault(slug, toolkit) != toolkit:
            self.fault(
                f"{slug} is a tool of `{self.homes[slug]}` already and cannot be one of "
                f"`{toolkit}` too: rename one of the two."
            )
        elif self.seen.setdefault((slug, said), digest) != digest:
            self.fault(
                f"{slug} stands here twice in version {said or UNDATED}, and not alike: "
                "remove one of the two."
            )
        elif self.put(
            ToolVersion.of(value, path="", slug=slug, toolkit=toolkit, version=said), value
        ):
            self.gather(slug, toolkit, new.toolkit)

    def put(self, tool: ToolVersion, value: dict[str, Any]) -> bool:
        """Put a sound tool in its place, unless it is there already; tell whether it has one."""
        version, deprecation = self.standing.verdict(tool, tool.version)
        if not version:
            self.unchanged.add((tool.slug, tool.version))
            return True
        if deprecation is not None:
            whole = {**value, "deprecation": deprecation}
            value = {key: whole[key] for key in _FIELDS if key in whole}
        data, path = yamlout.emit(value), f"toolkits/{tool.toolkit}/{tool.slug}/{version}.yaml"
        if wrong := _unfit(value, data):
            self.note(tool.slug, Loss((), f"a tool left out: its file would {wrong}"))
        else:
            self.tree[path] = data
        self.size += len(data)
        if self.size > _MOST:
            raise UsageError(
                f"There are more than {_MOST // 1024**2} MiB of files in this: import a part "
                "at a time."
            )
        return path in self.tree

    def toolkit_of(self, new: Addition, slug: str) -> str:
        """The slug of a tool's toolkit; empty where there is none to be found."""
        said = new.toolkit.get("slug")
        if isinstance(said, str) and names.fits(names.TOOLKIT_SLUG, said):
            return said
        if said is not None:
            self.note(
                slug,
                Loss(("toolkit", "slug"), "a toolkit's slug that no toolkit can have", str(said)),
            )
        if self.toolkit:
            return self.toolkit
        lower = slug.lower().replace("-", "_")
        prefixes = [
            toolkit for toolkit in self.known if lower.startswith(f"{toolkit.replace('-', '_')}_")
        ]
        first = slug.lower().partition("_")[0]
        return max(
            prefixes,
            key=lambda toolkit: (len(toolkit), toolkit),
            default=first if names.fits(names.TOOLKIT_SLUG, first) else "",
        )

    def version_of(self, new: Addition, slug: str) -> str:
        """The version that a tool comes with; empty where it comes without one."""
        said = new.version if versions.is_version(new.version) else ""
        if new.version not in ("", self.version or said or UNDATED):
            self.note(
                slug, Loss(("version",), "`version` other than the one imported", new.version)
            )
        return self.version or (said if said != UNDATED else "")

    def gather(self, slug: str, toolkit: str, said: Mapping[str, Any]) -> None:
        """Take what one tool says of its toolkit."""
        known = self.toolkits.setdefault(toolkit, {})
        for key, value in said.items():
            if known.setdefault(key, value) != value:
                self.note(
                    slug, Loss(("toolkit", key), f"`{key}` of the toolkit other than the first")
                )

    def describe(self, toolkit: str) -> None:
        """Put the file of one toolkit into the tree."""
        place, said = Place("toolkit", {"toolkit": toolkit}), self.toolkits[toolkit]
        value = {key: said[key] for key in said if key in SCHEMAS["toolkit"]["properties"]}
        title = toolkit.replace("_", " ").replace("-", " ").title().strip() or toolkit
        document = Document(f"toolkits/{toolkit}/toolkit.yaml", place, value, True)
        needed = {"name": title, "logo": f"https://logos.example.com/{toolkit}.svg"}
        kept, losses = sound(document, needed)
        data = yamlout.emit(kept)
        if wrong := _unfit(kept, data):
            data, losses = (
                yamlout.emit(needed),
                [Loss((), f"a toolkit's texts: its file would {wrong}")],
            )
        self.tree[document.path] = data
        self.note(
            document.path,
            *(Loss((key,), f"`{key}`") for key in said if key not in (*value, "slug")),
            *losses,
        )
