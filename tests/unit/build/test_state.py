"""What one build tells the next of a site: taken as it was kept or not at all, and gone through
without being held.
"""

import tracemalloc
from pathlib import Path

import pytest

from toolcatalog.build import state
from toolcatalog.build.state import PageGroupState, SiteState


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder for what is kept."""
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def noted(files: int, group: int = 0) -> PageGroupState:
    """What is noted of a group of so many pages."""
    paths = [f"tools/A_{group}_{number}/index.html" for number in range(files)]
    return state.encode_group_state(dict.fromkeys(paths, 1 << 62), dict.fromkeys(paths, "0" * 64))


def kept(cache: Path, site: Path, groups: dict[str, PageGroupState]) -> Path:
    """The file in which they are kept."""
    with state.write_site_state(cache, site, "this program", "all that") as writer:
        for digest, group in groups.items():
            writer.add(digest, group)
    (file,) = cache.iterdir()
    return file


def test_groups_come_as_they_were_kept(cache: Path, tmp_path: Path) -> None:
    """All at once, and one after another; of another program nothing is taken."""
    groups = {"one": noted(2), "other": noted(0)}
    kept(cache, tmp_path, groups)
    assert state.load_site_state(cache, tmp_path, "this program") == SiteState(
        source_digest="all that", groups=groups
    )
    assert dict(state.iter_site_groups(cache, tmp_path, "this program")) == groups
    assert state.load_site_state(cache, tmp_path, "another") == SiteState()
    assert [*state.iter_site_groups(cache, tmp_path, "another")] == []


def test_damage_anywhere_is_as_good_as_nothing(cache: Path, tmp_path: Path) -> None:
    """Not even the groups before the damage are taken."""
    file = kept(cache, tmp_path, {"one": noted(1), "other": noted(1, 1)})
    data = file.read_bytes()
    for place in range(len(data)):
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert state.load_site_state(cache, tmp_path, "this program") == SiteState()
        assert [*state.iter_site_groups(cache, tmp_path, "this program")] == []


def test_to_go_through_the_groups_holds_none(cache: Path, tmp_path: Path) -> None:
    """Of a million tools they are two hundred megabytes, and the process that looks at the site is
    there until the build ends.
    """
    file = kept(cache, tmp_path, {str(group): noted(50, group) for group in range(1_000)})
    tracemalloc.start()
    pages = sum(
        group.page_count for _, group in state.iter_site_groups(cache, tmp_path, "this program")
    )
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pages == 50_000
    assert most < file.stat().st_size / 10
