"""The site on disk: what is made, what is left as it is, and what is noted of it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.catalogs import add_tool, generate_catalog
from support.files_on_disk import read_tree
from toolcatalog.build import site_writer
from toolcatalog.build import state as build_state
from toolcatalog.build.pipeline import build
from toolcatalog.build.site_pages import SiteFile, SiteFiles
from toolcatalog.build.state import SiteState
from toolcatalog.errors import UsageError
from toolcatalog.progress import no_progress
from toolcatalog.system import file_state, files
from toolcatalog.system.processes import WorkerPool


@dataclass(frozen=True)
class Pages:
    """A group of files that are given."""

    digest: str
    some: Sequence[SiteFile]

    @property
    def paths(self) -> Sequence[str]:
        return [file.path for file in self.some]

    def files(self) -> SiteFiles:
        return iter(self.some)


def made(digest: str, **sources: str) -> Pages:
    """Pages by name, each made from something: the page is what it is made from."""
    return Pages(
        digest,
        [SiteFile(f"{name}.html", source.encode, source) for name, source in sources.items()],
    )


def refused() -> bytes:
    raise AssertionError("there was no need to make this")


def update(folder: Path, groups: Sequence[Pages], left: SiteState, crew: WorkerPool) -> SiteState:
    """What there is of the site when all is done: all of it."""
    plan = site_writer.plan_site(folder, groups, left)
    staged = site_writer.stage_site(plan, crew, no_progress)
    recorded: dict[str, build_state.PageGroupState] = {}
    site_writer.install_site(staged, crew, recorded.__setitem__)
    return SiteState(source_digest="all", groups=recorded)


def listed(folder: Path) -> list[str]:
    """The pages that the list in a site names."""
    paths: list[str] = json.loads((folder / ".generated").read_bytes()[files.SEAL_LINE_SIZE :])
    return paths


def noted(found: SiteState) -> dict[str, build_state.PageGroupState]:
    """What is noted of the groups, but the list of all files."""
    return {digest: output for digest, output in found.groups.items() if digest != ".generated"}


@pytest.fixture
def crew() -> WorkerPool:
    return WorkerPool(1)


@pytest.fixture(params=["all is left", "something is not"])
def as_left(request: pytest.FixtureRequest) -> Callable[[SiteState], SiteState]:
    """What a build finds of a site: all is as it was left, or something else is not."""
    return (
        (lambda left: left)
        if request.param == "all is left"
        else (lambda left: SiteState(groups=left.groups))
    )


class RepeatingPool(WorkerPool):
    """A pool that runs each task twice, as a cluster does after a worker was killed."""

    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        for task in tasks:
            work(task)
            yield work(task)


def test_repeated_task(tmp_path: Path) -> None:
    """A task that is repeated stages its pages again."""
    update(tmp_path, [made("a", index="1")], SiteState(), RepeatingPool(1))
    assert (tmp_path / "index.html").read_text() == "1"


def test_group_without_pages(tmp_path: Path, crew: WorkerPool) -> None:
    """A group can have no pages: those of a label that no tool has any more."""
    state = update(tmp_path, [made("a", index="1"), made("b")], SiteState(), crew)
    assert set(noted(state)) == {"a", "b"}
    assert listed(tmp_path) == ["index.html"]


def test_what_is_made_from_the_same_is_not_made_again(
    tmp_path: Path, crew: WorkerPool, as_left: Callable[[SiteState], SiteState]
) -> None:
    """Of a group that has changed: a file with the source that was noted stays as it is, one with
    another is made.
    """
    left = update(tmp_path, [made("before", a="one", b="two")], SiteState(), crew)
    assert build_state.decode_sources(left.groups["before"]) == {"a.html": "one", "b.html": "two"}
    now = Pages("after", [SiteFile("a.html", refused, "one"), *made("", b="three").some])
    result = update(tmp_path, [now], as_left(left), crew)
    assert (tmp_path / "b.html").read_bytes() == b"three"
    assert [*noted(result)] == ["after"]
    assert build_state.decode_sources(result.groups["after"]) == {
        "a.html": "one",
        "b.html": "three",
    }
    state = build_state.decode_signatures(result.groups["after"])
    assert state == {
        path: file_state.settled_signature(f"{tmp_path}/{path}") for path in ("a.html", "b.html")
    }
    assert state["a.html"] == build_state.decode_signatures(left.groups["before"])["a.html"]


def test_what_is_not_as_it_was_left_is_made_again(tmp_path: Path, crew: WorkerPool) -> None:
    """A noted source says nothing of a file whose group somebody has touched, nor has a file
    without one a source to go by.
    """
    left = update(tmp_path, [made("before", a="one"), made("other", b="")], SiteState(), crew)
    for path in ("a.html", "b.html"):
        (tmp_path / path).write_text("mine")
    result = update(tmp_path, [made("before", a="one"), made("after", b="")], left.select([]), crew)
    assert [(tmp_path / path).read_bytes() for path in ("a.html", "b.html")] == [b"one", b""]
    assert [build_state.decode_sources(output) for output in noted(result).values()] == [
        {"a.html": "one"},
        {},
    ]


def test_the_source_of_a_file_that_is_gone_is_forgotten(
    tmp_path: Path, crew: WorkerPool, as_left: Callable[[SiteState], SiteState]
) -> None:
    """A file that is no longer made goes, and with it what was noted; a group that stays keeps its
    notes.
    """
    left = update(tmp_path, [made("stays", a="one"), made("goes", b="two")], SiteState(), crew)
    result = update(tmp_path, [made("stays", a="one")], as_left(left), crew)
    assert not (tmp_path / "b.html").exists()
    assert noted(result) == {"stays": left.groups["stays"]}
    assert listed(tmp_path) == ["a.html"]


def test_what_comes_and_goes_is_listed(
    tmp_path: Path, crew: WorkerPool, as_left: Callable[[SiteState], SiteState]
) -> None:
    """A file that another group takes over stays, one that nobody makes any more goes, one that
    comes is in the list, and the list stays.
    """
    left = update(
        tmp_path, [made("stays", a="one"), made("old", b="two", c="three")], SiteState(), crew
    )
    result = update(
        tmp_path, [made("stays", a="one"), made("new", b="four", d="five")], as_left(left), crew
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".generated",
        "a.html",
        "b.html",
        "d.html",
    ]
    assert sorted(listed(tmp_path)) == ["a.html", "b.html", "d.html"]
    assert file_state.are_unchanged(
        tmp_path, build_state.decode_signatures(result.groups[".generated"])
    )


def seen_to_be_listed(site: Path) -> None:
    """What a build says that it makes is what it has made."""
    on_disk = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()} - {
        ".generated",
        ".lock",
    }
    assert {*listed(site)} == on_disk


def test_pages_that_are_too_large_leave_the_site_as_it_was(
    tmp_path: Path, crew: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One page, or many together: few texts must not fill the disk."""
    update(tmp_path, [made("a", index="old")], SiteState(), crew)
    before = read_tree(tmp_path)
    monkeypatch.setattr(site_writer, "_BASE_SITE_SIZE", 1000)
    monkeypatch.setattr(site_writer, "_SIZE_PER_FILE", 10)
    many = [made(f"g{number}", **{f"p{number}": "x" * 200}) for number in range(8)]
    for groups in ([made("b", index="x" * 1100)], many):
        with pytest.raises(UsageError, match="The pages would have more than"):
            update(tmp_path, groups, SiteState(), crew)
        assert read_tree(tmp_path) == before
    update(tmp_path, many[:4], SiteState(), crew)


def test_every_file_is_listed_before_it_is_written(shipped_build: Path, tmp_path: Path) -> None:
    """The paths are known without rendering: from counts, and from the labels of effective
    versions.
    """
    seen_to_be_listed(shipped_build.parent / "site")
    catalog, out, made = (
        generate_catalog(tmp_path / "catalog", 1_003),
        tmp_path / "build",
        tmp_path / "site",
    )
    (catalog / "toolkits" / "kit0" / "KIT0_DO_0" / "20250101_00.yaml").write_text(
        "name: Old\ndescription: An old one.\ntags: [only-there]\n"
    )
    add_tool(catalog, "kit0", "KIT0_DO_0", 3, "20250102_00")
    for home in ("", "home: https://tools.example/\n"):
        (catalog / "catalog.yaml").write_text(f"title: Generated\n{home}")
        build(catalog, out, made)
        seen_to_be_listed(made)
        assert not (made / "tags" / "only-there").exists()
    assert (made / "sitemap.xml").exists()
    (catalog / "toolkits" / "kit0" / "KIT0_DO_0" / "20250102_00.yaml").unlink()
    build(catalog, out, made)
    seen_to_be_listed(made)
    assert (made / "tags" / "only-there" / "index.html").exists()


def test_labels_in_another_order(tmp_path: Path) -> None:
    """A tool whose tags stand in another order is on the same pages; all files are what a clean
    build makes.
    """
    catalog, out, made = (
        generate_catalog(tmp_path / "catalog", 3),
        tmp_path / "build",
        tmp_path / "site",
    )
    file = catalog / "toolkits" / "kit0" / "KIT0_DO_0" / "20250101_00.yaml"
    text = file.read_text()
    for tags in ("[b, a]", "[a, b]"):
        file.write_text(text.replace("[tag0]", tags))
        assert build(catalog, out, made).changed
    build(catalog, tmp_path / "other", tmp_path / "clean")
    assert read_tree(made) == read_tree(tmp_path / "clean")


def test_of_very_many_tools_less_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With as much in memory as there may be of a million tools the same comes of a catalog, at
    once and after a change.
    """
    catalog = generate_catalog(tmp_path / "catalog", 300)
    add_tool(catalog, "kit0", "KIT0_DO_0", 3, "20250102_00")
    for change in (False, True):
        if change:
            add_tool(catalog, "kit0", "KIT0_DO_1", 3, "20250103_00")
        for name, many in (("much", 1_000), ("little", 0)):
            monkeypatch.setattr("toolcatalog.build.text_index.MANY_BATCHES", many)
            build(catalog, tmp_path / name, tmp_path / f"{name}-site")
        assert read_tree(tmp_path / "much" / "current") == read_tree(
            tmp_path / "little" / "current"
        )
        assert read_tree(tmp_path / "much-site") == read_tree(tmp_path / "little-site")
