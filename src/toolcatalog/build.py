"""The pipeline: check, resolve, and put the snapshot and the site on disk so that a reader sees the old or the new, never half.

build/snapshots/<digest>/   complete, or not there: written under another name beside and renamed
build/current               a link to one of them, moved last and in one step
site/                       one file after another; `.generated` lists them, so that pages of removed tools go
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from toolcatalog import files, pages, search, snapshot
from toolcatalog.checking import check
from toolcatalog.errors import InvalidCatalog, UsageError
from toolcatalog.progress import Track, quietly
from toolcatalog.resolve import resolve

_PART = ".part"
_GENERATED = ".generated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build has made: the snapshot's digest, whether `current` names another one than before, and counts."""

    digest: str
    changed: bool
    toolkits: int
    tools: int
    tool_versions: int
    sessions: int
    pages: int


def build(catalog: Path, out: Path, site: Path | None, track: Track = quietly) -> Built:
    """Build a catalog into `out` and, unless it is None, `site`.

    Raises InvalidCatalog with all problems, or UsageError where a folder cannot be used; in both cases `out/current` stays as it was.
    """
    checked = check(catalog, track)
    if checked.problems:
        raise InvalidCatalog(checked.problems, checked.files)
    contents = resolve(checked.catalog)
    tree = snapshot.files(contents)
    tree[snapshot.TEXT] = search.index((tool.slug, tool.name, tool.description) for tool in contents.tools)
    digest, manifest = snapshot.seal(tree, contents)
    html = pages.render(contents, track) if site else {}
    try:
        changed = _publish(out, digest, {**tree, snapshot.MANIFEST: manifest}, site, html, track)
    except OSError as error:
        where = error.filename or out
        raise UsageError(f"Cannot write {where} ({error.strerror}): make room or mend its permissions, or name another folder.") from None
    return Built(
        digest=digest,
        changed=changed,
        toolkits=len(contents.toolkits),
        tools=len({tool.slug for tool in contents.tools}),
        tool_versions=len(contents.tools),
        sessions=len(contents.sessions),
        pages=sum(path.endswith(".html") for path in html),
    )


def _publish(out: Path, digest: str, tree: snapshot.Tree, site: Path | None, html: Mapping[str, bytes], track: Track) -> bool:
    snapshots = out / "snapshots"
    snapshots.mkdir(parents=True, exist_ok=True)
    with files.alone(out / ".lock") as got_it:
        if not got_it:
            raise UsageError(f"Another build is writing to {out}: try again when it is done.")
        before = _generated(site) if site else set()
        files.clean(out)
        for left_over in snapshots.glob(f"*{_PART}"):
            files.remove(left_over)
        if not _is_whole(snapshots / digest, tree):
            _write_snapshot(snapshots, digest, tree, track)
        if site:
            _write_site(site, html, before, track)
        current, target = out / "current", f"snapshots/{digest}"
        changed = not (current.is_symlink() and str(current.readlink()) == target)
        if changed:
            files.point(current, target)
        return changed


def _is_whole(folder: Path, tree: snapshot.Tree) -> bool:
    """Tell whether the folder already holds the very bytes of the tree."""
    return folder.is_dir() and all((folder / path).is_file() and (folder / path).read_bytes() == data for path, data in tree.items())


def _write_snapshot(snapshots: Path, digest: str, tree: snapshot.Tree, track: Track) -> None:
    beside, place = snapshots / f"{digest}{_PART}", snapshots / digest
    for folder in sorted({(beside / path).parent for path in tree}):
        folder.mkdir(parents=True, exist_ok=True)
    for path in track("Writing the snapshot", [*tree]):
        (beside / path).write_bytes(tree[path])
    if place.exists():  # damaged: it leaves under a name that the next build removes, should this one be killed
        place.rename(snapshots / f"{digest}.damaged{_PART}")
    beside.rename(place)
    files.remove(snapshots / f"{digest}.damaged{_PART}")


def _generated(site: Path) -> set[str]:
    """The pages that an earlier build has made. Raises UsageError where the folder holds a site and it cannot be told whose."""
    try:
        return {str(path) for path in orjson.loads((site / _GENERATED).read_bytes())}
    except FileNotFoundError:
        if not (site / "index.html").exists():
            return set()
        wrong = f"{site} holds a site that this program did not make"
    except (orjson.JSONDecodeError, TypeError):
        wrong = f"{site / _GENERATED} is damaged, so it cannot be told which pages this program made"
    raise UsageError(f"{wrong}: name another folder with --site, or empty this one.")


def _write_site(site: Path, html: Mapping[str, bytes], before: set[str], track: Track) -> None:
    listing = site / _GENERATED
    for folder in {(site / path).parent for path in before | {*html}}:
        files.clean(folder)
    files.write_changed(listing, orjson.dumps(sorted(before | {*html}), option=orjson.OPT_INDENT_2))
    for path in track("Writing the site", [*html]):
        files.write_changed(site / path, html[path])
    _remove(site, before - {*html})
    files.write_changed(listing, orjson.dumps(sorted(html), option=orjson.OPT_INDENT_2))


def _remove(site: Path, paths: Iterable[str]) -> None:
    """Remove pages that are no longer made, and the folders that they leave empty; nothing outside the site."""
    for path in sorted(paths):
        page = site / path
        if not page.resolve().is_relative_to(site.resolve()):
            continue
        page.unlink(missing_ok=True)
        for folder in page.relative_to(site).parents:
            if folder != Path() and (site / folder).is_dir() and not any((site / folder).iterdir()):
                (site / folder).rmdir()
