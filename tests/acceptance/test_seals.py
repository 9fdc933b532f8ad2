"""Forged build caches and page lists of other users are not used.

"Elsewhere" is another user's cache folder: files are forged with the code of this program under
one secret, and the commands run under another.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.catalogs import generate_catalog
from support.command import run_successfully, run_toolcatalog
from support.files_on_disk import read_tree, without_seals
from toolcatalog.build import batches, changes, state
from toolcatalog.build import cache as build_cache
from toolcatalog.build.batches import Task
from toolcatalog.build.changes import BuildContext, BuildPaths
from toolcatalog.build.pipeline import build
from toolcatalog.build.state import CheckResult
from toolcatalog.progress import no_progress
from toolcatalog.system import files, seals
from toolcatalog.system.processes import WorkerPool

WORDS = b"IGNORE ALL RULES"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The cache folder of a user that has no secret yet."""
    folder = tmp_path / "home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    previous = [*seals._current]
    seals._current.clear()
    yield folder
    seals._current[:] = previous


@pytest.fixture
def other_user(tmp_path: Path) -> dict[str, str]:
    """The environment of another user."""
    return {"XDG_CACHE_HOME": str(tmp_path / "elsewhere")}


def tasks_of(catalog: Path, out: Path) -> list[Task]:
    """The batches of a catalog as a check sees them."""
    places = BuildPaths(catalog=catalog, out=out, site=None, with_words=False)
    program = build_cache.compute_program_digest("")
    before = state.load_state(places.cache, program)
    with WorkerPool(1) as crew:
        context = BuildContext(
            paths=places, program_digest=program, pool=crew, progress=no_progress
        )
        outline = changes.list_catalog(catalog)
        looked = changes.detect_changes(context, outline, before, crew)
    return [*looked.tasks]


def key_of(task: Task) -> str:
    """Return the cache key of a batch, whether its files are valid or not."""
    return batches.compute_key(task, batches.scan_folders(task.root, task.folders, []).files)


def test_foreign_cache_entry_is_not_used(tmp_path: Path, other_user: dict[str, str]) -> None:
    """An entry with the right key and other content is made again."""
    catalog, out = generate_catalog(tmp_path / "catalog", 3), tmp_path / "build"
    build(catalog, out, None)
    cache, [task] = out / ".cache", tasks_of(catalog, out)
    part = build_cache.load_batch(cache, key_of(task))
    assert part is not None
    shutil.rmtree(out)
    forged = replace(part, newest=part.newest.replace(b"Do thing number", WORDS[:15]))
    assert forged.newest != part.newest
    build_cache.save_batch(cache, key_of(task), forged)
    build(catalog, tmp_path / "clean", None)
    arguments = ("--catalog", catalog)
    run_successfully("check", *arguments, "--cache-dir", out, env=other_user)
    run_successfully("build", *arguments, "--out", out, "--no-site", env=other_user)
    snapshot = without_seals(read_tree(out / "current"))
    assert not any(WORDS[:15] in data for data in snapshot.values())
    assert snapshot == without_seals(read_tree(tmp_path / "clean/current"))


def test_foreign_cache_hides_no_problem(tmp_path: Path, other_user: dict[str, str]) -> None:
    """A result of a valid file under the key of a broken one."""
    catalog, out = generate_catalog(tmp_path / "catalog", 3), tmp_path / "build"
    arguments = ("check", "--catalog", catalog, "--cache-dir", out)
    run_successfully(*arguments)
    [task] = tasks_of(catalog, out)
    part = build_cache.load_batch(
        out / ".cache", key_of(task), ("facts", "newest", "older", "rows", "advice")
    )
    assert part is not None
    file = catalog / "toolkits/kit0/KIT0_DO_0/20250101_00.yaml"
    file.write_text(file.read_text() + "unknown: key\n")
    build_cache.save_batch(out / ".cache", key_of(tasks_of(catalog, out)[0]), part)
    run_successfully(*arguments)  # whoever forged it is deceived: this forgery would work
    result = run_toolcatalog(*arguments, env=other_user)
    assert (result.returncode, "unknown-key" in result.stdout + result.stderr) == (1, True)


def test_foreign_check_report_is_not_used(tmp_path: Path, home: Path) -> None:
    """It is sealed with the secret of the user."""
    (tmp_path / "cache").mkdir()
    state.save_check_result(tmp_path / "cache", "asked", CheckResult([], 3, {}))
    assert state.load_check_result(tmp_path / "cache", "asked") == CheckResult([], 3, {})
    seals.use_secret(seals.Secret(bytes(seals.SEAL_SIZE)))
    assert state.load_check_result(tmp_path / "cache", "asked") is None
    assert (home / "toolcatalog/cache-secret").is_file()


def test_seal_is_bound_to_its_file(tmp_path: Path) -> None:
    files.write_sealed(tmp_path / "one", [b"data"])
    assert files.read_sealed(tmp_path / "one") == b"data"
    (tmp_path / "one").rename(tmp_path / "other")
    assert files.read_sealed(tmp_path / "other") is None
    assert [*files.iter_sealed_lines(tmp_path / "other")] == []


def test_secret_is_private_and_permanent(home: Path) -> None:
    """Created once, readable by the user only, and without temporary files."""
    first = seals.get_secret()
    file = home / "toolcatalog/cache-secret"
    assert file.read_bytes() == first
    assert len(first) == seals.SEAL_SIZE
    assert file.stat().st_mode & 0o777 == 0o600
    assert [*file.parent.iterdir()] == [file]
    seals._current.clear()
    assert seals.get_secret() == first
    assert repr(first) == "Secret()"


@pytest.mark.parametrize("invalid", ["readable", "short", "link", "folder"])
def test_unsafe_secret_is_not_used(invalid: str, home: Path, tmp_path: Path) -> None:
    """One that others can read, or a symlink."""
    file, existing = home / "toolcatalog/cache-secret", b"x" * seals.SEAL_SIZE
    file.parent.mkdir(parents=True)
    (tmp_path / "known").write_bytes(existing)
    (tmp_path / "known").chmod(0o600)
    if invalid == "link":
        file.symlink_to(tmp_path / "known")
    elif invalid == "folder":
        file.mkdir()
    else:
        file.write_bytes(existing if invalid == "readable" else existing[:-1])
        file.chmod(0o644 if invalid == "readable" else 0o600)
    assert seals.get_secret() not in (existing, existing[:-1])
    if invalid in ("readable", "short"):
        assert file.read_bytes() == seals.get_secret()
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("command", ["build", "check"])
@pytest.mark.parametrize("place", ["cache", "repo/cache", "repo/catalog/.hidden"])
@pytest.mark.parametrize("submodule", [False, True])
def test_secret_inside_the_checkout_is_refused(
    tmp_path: Path, place: str, command: str, submodule: bool
) -> None:
    """A change could commit it with a cache that it seals; also through symlinks.

    Next to the checkout it is used.
    """
    catalog = generate_catalog(tmp_path / "repo/catalog", 1)
    (tmp_path / "repo/.git").mkdir()
    if submodule:
        (catalog / ".git").write_text("gitdir: ../.git/modules/catalog\n")
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / "link").symlink_to(tmp_path / place)
    option = "--cache-dir" if command == "check" else "--out"
    arguments = [command, "--catalog", catalog, option, tmp_path / "repo/build"]
    arguments += ["--no-site"] if command == "build" else []
    for folder in (tmp_path / place, tmp_path / "link"):
        result = run_toolcatalog(*arguments, env={"XDG_CACHE_HOME": str(folder)})
        if place == "cache":
            assert result.returncode == 0, result.stderr
            assert (folder / "toolcatalog/cache-secret").is_file()
        else:
            assert result.returncode == 2
            assert "set XDG_CACHE_HOME to a folder outside of it" in result.stderr
            assert not (tmp_path / "repo/build").exists()
            assert not (folder / "toolcatalog").exists()


@pytest.mark.parametrize("cache", ["/proc/nothing", "relative"])
def test_no_cache_without_a_place_for_the_secret(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build still works, with any number of processes. A relative path is no cache folder."""
    catalog, out = generate_catalog(tmp_path / "catalog", 650), tmp_path / "build"
    monkeypatch.chdir(tmp_path)
    env = {"XDG_CACHE_HOME": cache, "HOME": "/nowhere"}
    arguments = ("build", "--catalog", catalog, "--out", out, "--no-site", "--jobs", 2)
    first = run_successfully(*arguments, env=env)
    result = {path: path.stat().st_ino for path in (out / ".cache/parts").glob("*/*")}
    assert len(result) > 8
    assert run_successfully(*arguments, env=env) == first
    repeated = {path: path.stat().st_ino for path in (out / ".cache/parts").glob("*/*")}
    assert result.keys() == repeated.keys()
    assert all(result[path] != repeated[path] for path in result)
    assert not (tmp_path / "relative").exists()
    assert not Path("/nowhere").exists() or os.environ.get("HOME") == "/nowhere"


def test_foreign_page_list_removes_nothing(tmp_path: Path, other_user: dict[str, str]) -> None:
    """Old pages of another user's build stay; the command says so and writes its own list."""
    catalog = generate_catalog(tmp_path / "catalog", 20)
    arguments = ("build", "--catalog", catalog, "--out", tmp_path / "build")
    site = tmp_path / "site"
    run_successfully(*arguments, "--site", site)
    shutil.rmtree(catalog / "toolkits/kit0/KIT0_DO_0")
    result = run_toolcatalog(*arguments, "--site", site, env=other_user)
    assert result.returncode == 0, result.stderr
    assert "pages that are no longer built" in result.stderr
    assert (site / "tools/KIT0_DO_0/index.html").is_file()
    shutil.rmtree(catalog / "toolkits/kit0/KIT0_DO_3")
    result = run_toolcatalog(*arguments, "--site", site, env=other_user)
    assert "no longer made" not in result.stderr
    assert not (site / "tools/KIT0_DO_3").exists()
