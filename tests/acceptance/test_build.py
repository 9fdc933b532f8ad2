"""`toolcatalog build`: reproducible bytes, atomic updates, and problems that change nothing."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.catalogs import add_tool, generate_catalog
from support.command import (
    environment_without_coverage,
    error_sentence,
    run_successfully,
    run_toolcatalog,
)
from support.files_on_disk import (
    find_leftovers,
    read_tree,
    snapshot_state,
    without_seals,
)
from support.paths import DATA, SHIPPED_CATALOG
from support.profile import DEEP_PROFILE
from support.snapshot_reader import read_newest_documents
from toolcatalog import encoding
from toolcatalog.build import snapshot_writer
from toolcatalog.build.pipeline import build, check
from toolcatalog.errors import InvalidCatalog, ShrunkCatalog, SnapshotError, UsageError
from toolcatalog.snapshot import retention
from toolcatalog.snapshot.directory import (
    DEFAULT_MAX_LOSS_PERCENT,
    UNLIMITED_LOSS_PERCENT,
    BuildResult,
)
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store
from toolcatalog.system import files

GOLDEN = DATA / "golden"
HISTORY = GOLDEN / "history" / "catalog"


def building(catalog: Path, out: Path, site: Path) -> list[str]:
    """The command line of a build."""
    options = {"--catalog": catalog, "--out": out, "--site": site}
    return [
        sys.executable,
        "-m",
        "toolcatalog",
        "build",
        *(str(word) for option in options.items() for word in option),
    ]


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A small catalog that may be changed."""
    return Path(shutil.copytree(HISTORY, tmp_path / "catalog"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "build"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


def describe(catalog: Path, text: str) -> None:
    """Change what one tool says of itself."""
    (catalog / "toolkits/clock/CLOCK_NOW/20250601_00.yaml").write_text(
        f"name: Now\ndescription: {text}\n"
    )


def description(build: Path) -> str:
    """What that tool says in the build's current snapshot, which must be whole."""
    store = open_build(build)
    for number in range(8):
        store.read_document(number)
    return str(json.loads(read_newest_documents(build / "current")["CLOCK_NOW"])["description"])


# Equal input, equal bytes

ENVIRONMENTS = {
    "plain": ({"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}, 0o022),
    "ascii": (
        {
            "PYTHONHASHSEED": "1",
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "TZ": "Asia/Kathmandu",
        },
        0o077,
    ),
    "turkish": (
        {
            "PYTHONHASHSEED": "random",
            "LC_ALL": "tr_TR.UTF-8",
            "TZ": "America/St_Johns",
            "COLUMNS": "20",
        },
        0o000,
    ),
    "bare": (
        {
            "PYTHONHASHSEED": "random",
            "LC_ALL": "POSIX",
            "TZ": "",
            "PYTHONOPTIMIZE": "2",
            "HOME": "/nowhere",
        },
        0o027,
    ),
}


def shuffled_copy(source: Path, target: Path, seed: int) -> Path:
    """The same files, made in another order at other times."""
    draw = random.Random(seed)  # noqa: S311 - nothing secret
    paths = sorted(path for path in source.rglob("*") if path.is_file())
    draw.shuffle(paths)
    for path in paths:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        when = draw.randrange(2**31)
        os.utime(copy, (when, when))
    return target


@pytest.mark.parametrize(
    ("source", "environments"),
    [(SHIPPED_CATALOG, ["ascii", "turkish"]), (GOLDEN / "unicode" / "catalog", [*ENVIRONMENTS])],
    ids=["shipped", "unicode"],
)
def test_equal_catalogs_give_equal_bytes(
    source: Path, environments: list[str], tmp_path: Path
) -> None:
    """Folder, order, mtimes, hash seed, locale, time zone, umask and -OO change no byte of snapshot
    and site, except the seals of the user.
    """
    running = []
    for number, name in enumerate(environments):
        variables, umask = ENVIRONMENTS[name]
        folder = tmp_path / name / ("deep/" * number)
        catalog = shuffled_copy(source, folder / f"catalog {name}", number)
        command = building(catalog, folder / "build", folder / "site")
        env = {
            key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG"))
        } | variables
        process = subprocess.Popen(
            command, env=env, umask=umask, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        running.append((folder, process))
    results = []
    for folder, process in running:
        digest, complaint = process.communicate(timeout=60)
        assert process.returncode == 0, complaint
        assert (folder / "build/current").readlink() == Path("snapshots") / digest.strip()
        pages = read_tree(folder / "site")
        pages[".generated"] = pages[".generated"][files.SEAL_LINE_SIZE :]
        snapshots = without_seals(read_tree(folder / "build/snapshots"))
        results.append((digest, snapshots, pages))
    assert len(results[0][1]) > 5
    for result in results[1:]:
        assert result == results[0]


def test_rebuild_without_changes_touches_no_file(catalog: Path, out: Path, site: Path) -> None:
    """It prints that nothing changed and the same digest."""
    arguments = ("build", "--catalog", catalog, "--out", out, "--site", site)
    first = run_toolcatalog(*arguments)
    previous = snapshot_state(out / "snapshots", out / "current", site)
    second = run_toolcatalog(*arguments)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "Built 4 tools in 8 versions, 3 toolkits, 0 sessions, 30 pages." in first.stderr
    assert "Nothing has changed: 4 tools in 8 versions" in second.stderr
    assert first.stdout == second.stdout == f"{(out / 'current').readlink().name}\n"
    assert snapshot_state(out / "snapshots", out / "current", site) == previous


def test_reverting_restores_the_first_digest(catalog: Path, out: Path) -> None:
    """Both snapshots stay in the build folder."""
    digests = []
    for text in ("one", "two", "one"):
        describe(catalog, text)
        built = build(catalog, out, None)
        assert built.changed
        assert description(out) == text
        digests.append(built.digest)
    assert digests[0] == digests[2] != digests[1]
    assert sorted(path.name for path in (out / "snapshots").iterdir()) == sorted({*digests})


# The old or the new, never half

DRIVER = """
import json, os, signal, sys, time
from contextlib import contextmanager
from pathlib import Path
from toolcatalog.build import rebuild as making
from toolcatalog.build.pipeline import build

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink"}
steps, last = 0, 0

def count():
    global steps
    steps += 1
    if steps == last:
        os.kill(os.getpid(), signal.SIGKILL)

def watch(event, args):
    writes = os.O_WRONLY | os.O_RDWR
    if event in CHANGES or (
        event == "open" and isinstance(args[2], int) and args[2] & writes
    ):
        count()

@contextmanager
def track(label, total):
    yield lambda _: count()

for line in sys.stdin:
    catalog, out, site, last, delay = json.loads(line)
    start, (reading, writing) = time.monotonic(), os.pipe()
    child = os.fork()
    if child == 0:
        sys.addaudithook(watch)
        build(Path(catalog), Path(out), Path(site), track)
        os.write(writing, str(steps).encode())
        os._exit(0)
    os.close(writing)
    if delay:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    print(json.dumps([status, time.monotonic() - start, int(os.read(reading, 9) or 0)]), flush=True)
    os.close(reading)
"""
# builds killed at evenly spread steps of their work, and as many at random moments of their time
KILLS = 24 if DEEP_PROFILE else 5
STRIDE = 4 if DEEP_PROFILE else 12  # steps of a build between two kills


class Driver:
    """The driver at work in three folders."""

    def __init__(self, process: "subprocess.Popen[str]", *folders: Path) -> None:
        self.process = process
        self.folders = [str(folder) for folder in folders]

    def run(self, step: int = 0, delay: float = 0.0) -> tuple[int, float, int]:
        """Build, to be killed at a step or after some seconds unless they are 0: the status (0, or
        the signal), seconds and steps.

        A step is a file opened for writing, renamed or removed, a folder or link made, or what the
        build itself tells of its progress.
        """
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps([*self.folders, step, delay]), file=self.process.stdin, flush=True)
        status, seconds, steps = json.loads(self.process.stdout.readline())
        return status, seconds, steps


@pytest.fixture
def driver(catalog: Path, out: Path, site: Path) -> Iterator[Driver]:
    """A process that has everything imported and makes each build in a fork of itself, so that a
    kill hits the build's own work.
    """
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Driver(process, catalog, out, site)
        assert process.stdin
        process.stdin.close()


def test_killed_build_leaves_a_complete_snapshot(
    catalog: Path, out: Path, site: Path, driver: Driver
) -> None:
    """After SIGKILL at many moments, `current` is the old or the new snapshot; the next build
    cleans up.
    """
    describe(catalog, "whole")
    status, seconds, _ = driver.run()
    assert status == 0
    describe(catalog, "again")
    status, _, work = driver.run()
    assert status == 0
    assert work > 20
    draw = random.Random(2)  # noqa: S311 - nothing secret
    moments = [(1 + number * (work - 1) // (KILLS - 1), 0.0) for number in range(KILLS)]
    moments += [(0, draw.uniform(0.001, 1.2 * seconds)) for _ in range(KILLS)] + [(0, 0.0)] * 5
    draw.shuffle(moments)
    previous, killed, littered = "again", 0, 0
    for number, (location, delay) in enumerate(moments):
        describe(catalog, f"round {number}")
        killed += driver.run(location, delay)[0] == signal.SIGKILL
        littered += bool(find_leftovers(out))
        now = description(out)
        assert now in (previous, f"round {number}"), f"killed at {(location, delay)}"
        previous = now
        for page in site.rglob("*.html"):
            assert page.read_text().rstrip().endswith("</html>"), page
    assert killed >= KILLS
    assert littered > 0
    assert_like_new(catalog, out, site)


def test_killed_first_build_leaves_no_partial_current(
    catalog: Path, out: Path, site: Path, driver: Driver
) -> None:
    """Killed at many steps, the first build leaves no `current` or a complete one."""
    document, step = out.with_name("whole"), 0
    build(catalog, document, None)
    while driver.run(step := step + STRIDE)[0] == signal.SIGKILL:
        if (out / "current").is_symlink():
            assert read_tree(out / "current") == read_tree(document / "current")
        else:
            with pytest.raises(SnapshotError):
                open_build(out)
        for folder in (out, site):
            shutil.rmtree(folder, ignore_errors=True)
    assert step > 20
    assert_like_new(catalog, out, site)


def test_pages_of_killed_builds_are_removed(
    catalog: Path, out: Path, site: Path, driver: Driver
) -> None:
    """When their tool is gone, also pages that a killed build added or did not remove yet."""
    tool, page = catalog / "toolkits/clock/CLOCK_NOW", site / "tools/CLOCK_NOW/index.html"
    used = tool.rename(catalog.with_name("taken"))
    build(catalog, out, site)
    used.rename(tool)
    result = 0
    for _ in killed(driver, out, site):
        if page.exists():
            result += 1
            tool.rename(used)
            build(catalog, out, site)
            assert not page.exists()
            used.rename(tool)
    assert result > 0
    build(catalog, out, site)
    tool.rename(used)
    result = 0
    for _ in killed(driver, out, site):
        result += page.exists()
        build(catalog, out, site)
        assert not page.exists()
    assert result > 0
    assert_like_new(catalog, out, site)


def killed(driver: Driver, out: Path, site: Path) -> Iterator[int]:
    """Kill a build at several steps from the middle on, each time from the same initial state."""
    remaining = [Path(tempfile.mkdtemp(dir=out.parent)) / folder.name for folder in (out, site)]
    for folder, copy in zip((out, site), remaining, strict=True):
        shutil.copytree(folder, copy, symlinks=True)
    _, _, steps = driver.run()
    for step in range(steps // 2, steps, STRIDE):
        for folder, copy in zip((out, site), remaining, strict=True):
            shutil.rmtree(folder)
            shutil.copytree(copy, folder, symlinks=True)
        assert driver.run(step)[0] == signal.SIGKILL
        yield step


def assert_like_new(catalog: Path, out: Path, site: Path) -> None:
    """After one more build nothing is left over, and snapshot and site are those of a build into
    empty folders.
    """
    build(catalog, out, site)
    fresh = out.with_name("fresh")
    build(catalog, fresh / "build", fresh / "site")
    assert find_leftovers(out, site) == []
    assert read_tree(out / "current") == read_tree(fresh / "build/current")
    assert read_tree(site) == read_tree(fresh / "site")


def test_temporary_files_of_killed_builds_are_removed(catalog: Path, out: Path, site: Path) -> None:
    """Only names that the program uses; other files stay."""
    build(catalog, out, site)
    actual = [
        out / ".current.0123abcd.part",
        out / "snapshots/abc.part/toolkits",
        site / ".index.html.0123abcd.part",
        site / ".staged/0123/.0.0123abcd.part",
        out / "snapshots/def.part",
        out / ".cache/.batches.0123abcd.part",
    ]
    actual[0].symlink_to("snapshots/nothing")
    actual[1].mkdir(parents=True)
    actual[3].parent.mkdir(parents=True)
    reference = [
        site / "draft.part",
        site / ".notes.part",
        out / "video.part",
        site / "other/.index.html.0123abcd.part",
    ]
    reference[3].parent.mkdir()
    for path in (*actual[2:], *reference):
        path.write_text("")
    # as where a build was killed while it wrote the site
    for note in (out / ".cache").glob("site-*"):
        note.unlink()
    build(catalog, out, site)
    assert sorted(find_leftovers(out, site)) == sorted(reference)


@pytest.mark.parametrize(
    "damage",
    [
        "a changed byte",
        "a missing file",
        "a missing index",
        "a file in its place",
        "a manifest only",
    ],
)
def test_damaged_snapshot_is_rebuilt(damage: str, catalog: Path, out: Path) -> None:
    """A snapshot with the right name and wrong content is replaced."""
    digest = build(catalog, out, None).digest
    good, folder = read_tree(out / "current"), out / "snapshots" / digest
    if damage == "a changed byte":
        file = folder / "tools.json"
        file.write_bytes(file.read_bytes().replace(b"time", b"Time"))
    elif damage == "a missing file":
        (folder / "query.words").unlink()
    elif damage == "a missing index":
        (folder / "toolkits/clock/20250601_00.json").unlink()
    else:
        shutil.rmtree(folder)
        if damage == "a file in its place":
            folder.write_text("")
        else:
            folder.mkdir()
            (folder / "manifest.json").write_bytes(good["manifest.json"])
    if damage != "a missing index":  # no server reads it
        with pytest.raises(SnapshotError):
            description(out)
    assert build(catalog, out, None).digest == digest
    assert read_tree(out / "current") == good
    assert [path.name for path in (out / "snapshots").iterdir()] == [digest]


def test_concurrent_build_exits_with_2(catalog: Path, out: Path, site: Path) -> None:
    """It says that another build is running and changes nothing."""
    build(catalog, out, site)
    describe(catalog, "later")
    previous = snapshot_state(out, site)
    with files.lock(out / ".lock") as acquired:
        assert acquired
        result = run_toolcatalog("build", "--catalog", catalog, "--out", out, "--site", site)
    assert (
        error_sentence(result)
        == f"error: Another build is writing to {out}: try again when it is done."
    )
    assert snapshot_state(out, site) == previous
    assert (
        run_toolcatalog("build", "--catalog", catalog, "--out", out, "--site", site).returncode == 0
    )


def test_parallel_builds_leave_a_complete_snapshot(catalog: Path, out: Path, site: Path) -> None:
    """Each of four builds succeeds or reports that another one is running."""
    command = building(catalog, out, site)
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        _, complaint = process.communicate(timeout=60)
        assert process.returncode == 0 or (
            process.returncode == 2 and "Another build is writing" in complaint
        ), complaint
    assert any(process.returncode == 0 for process in processes)
    assert_like_new(catalog, out, site)


# What cannot be done changes nothing


def test_problems_change_nothing(catalog: Path, out: Path, site: Path) -> None:
    """Exit code 1; no file, folder, link or mtime of the last good build changes."""
    build(catalog, out, site)
    previous = snapshot_state(out / "snapshots", out / "current", site)
    (catalog / "toolkits/clock/CLOCK_NOW/20260101_00.yaml").write_text("nam: Now\n")
    result = run_toolcatalog("build", "--catalog", catalog, "--out", out, "--site", site)
    assert result.returncode == 1
    assert "catalog/toolkits/clock/CLOCK_NOW/20260101_00.yaml:1:1" in result.stderr
    assert "Nothing was built." in result.stderr
    assert snapshot_state(out / "snapshots", out / "current", site) == previous
    assert {path.name for path in out.iterdir()} == {
        "snapshots",
        "current",
        ".cache",
        ".lock",
        ".gitignore",
    }


def test_problems_in_the_first_build_write_nothing(catalog: Path, out: Path, site: Path) -> None:
    (catalog / "catalog.yaml").unlink()
    assert (
        run_toolcatalog("build", "--catalog", catalog, "--out", out, "--site", site).returncode == 1
    )
    assert {path.name for path in out.iterdir()} <= {".cache", ".lock", ".gitignore"}
    assert not site.exists()


@pytest.mark.parametrize(
    ("out_at", "site_at", "sentence"),
    [
        ("file/build", "site", "Cannot write {0}/file/build (Not a directory)"),
        ("file", "site", "Directory '{0}/file' is a file."),
        ("build", "file/site", "Cannot write {0}/file/site (Not a directory)"),
        ("build", "file", "Directory '{0}/file' is a file."),
        ("taken", "site", "Cannot write {0}/taken/"),
    ],
)
def test_unwritable_folder_is_reported(
    out_at: str, site_at: str, sentence: str, catalog: Path, tmp_path: Path
) -> None:
    """Exit code 2, one sentence with the path, and no `current`."""
    (tmp_path / "file").write_text("")
    (tmp_path / "taken/current").mkdir(parents=True)
    result = run_toolcatalog(
        "build", "--catalog", catalog, "--out", tmp_path / out_at, "--site", tmp_path / site_at
    )
    assert sentence.format(tmp_path) in error_sentence(result)
    assert not (tmp_path / out_at / "current").is_symlink()


def test_full_disk_keeps_the_old_snapshot(catalog: Path, out: Path, site: Path) -> None:
    """Exit code 2; the next build cleans up."""
    describe(catalog, "old")
    build(catalog, out, site)
    describe(catalog, "new")
    command = building(catalog, out, site)
    # blocks of 512 or 1024 bytes: less than the manifest
    limited = ["sh", "-c", 'ulimit -f 3 && exec "$@"', "sh", *command]
    result = subprocess.run(
        limited,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment_without_coverage(),
    )
    assert "File too large" in error_sentence(result)
    assert description(out) == "old"
    assert_like_new(catalog, out, site)
    assert description(out) == "new"


def test_missing_catalog_is_reported(tmp_path: Path, out: Path) -> None:
    """Exit code 2 and a sentence that says how to name or create one."""
    assert "--catalog" in error_sentence(
        run_toolcatalog("build", "--catalog", tmp_path / "nowhere", "--out", out, "--no-site")
    )
    assert not out.exists()


# The site


@pytest.mark.parametrize("listing", [None, "", "not JSON", "null", "{"])
def test_foreign_site_is_not_overwritten(
    listing: str | None, catalog: Path, out: Path, site: Path
) -> None:
    """A folder with an index.html and no readable page list is refused before `current` changes."""
    site.mkdir()
    (site / "index.html").write_text("My own site.")
    if listing is not None:
        (site / ".generated").write_text(listing)
    previous = snapshot_state(site)
    with pytest.raises(UsageError, match=r"name another folder with --site, or empty this one\.$"):
        build(catalog, out, site)
    assert snapshot_state(site) == previous
    assert not (out / "current").is_symlink()


def test_site_with_damaged_page_list_is_kept(catalog: Path, out: Path, site: Path) -> None:
    """The current snapshot stays; with the original list, the next build succeeds."""
    build(catalog, out, site)
    current, listing = (out / "current").readlink(), (site / ".generated").read_bytes()
    (site / ".generated").write_text("not JSON")
    previous = snapshot_state(site)
    describe(catalog, "Another time.")
    with pytest.raises(
        UsageError, match="is damaged, which leaves open which pages this program made"
    ):
        build(catalog, out, site)
    assert snapshot_state(site) == previous
    assert (out / "current").readlink() == current
    (site / ".generated").write_bytes(listing)
    assert build(catalog, out, site).changed
    assert find_leftovers(out, site) == []


def test_pages_of_removed_tools_are_removed(catalog: Path, out: Path, site: Path) -> None:
    """With their folders; files that the build did not write stay."""
    build(catalog, out, site)
    paths = (
        "robots.txt",
        ".gitignore",
        "tools/NOTES_FIND/notes.txt",
        "tools/MINE/index.html",
        "../build/README.md",
    )
    reference = [site / path for path in paths]
    for path in reference:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    for folder in ("notes/NOTES_FIND", "notes/NOTES_SEARCH", "clock"):
        shutil.rmtree(catalog / "toolkits" / folder)
    assert build(catalog, out, site).pages == 19
    assert not (site / "tools/NOTES_SEARCH").exists()
    assert not (site / "tools/CLOCK_NOW").exists()
    assert not (site / "toolkits/clock").exists()
    assert [path.name for path in (site / "tools/NOTES_FIND").iterdir()] == ["notes.txt"]
    assert all(path.read_text() == "mine" for path in reference)
    assert (site / "tools/NOTES_CREATE/index.html").is_file()


def test_page_list_cannot_remove_files_outside_the_site(
    catalog: Path, out: Path, site: Path, tmp_path: Path
) -> None:
    """For any path in the list."""
    (tmp_path / "outside").mkdir()
    precious = tmp_path / "outside/precious.html"
    precious.write_text("")
    site.mkdir()
    (site / "link").symlink_to(tmp_path / "outside")
    (site / ".generated").write_text(
        json.dumps(
            ["../outside/precious.html", str(precious), "link/precious.html", "nothing.html"]
        )
    )
    build(catalog, out, site)
    assert precious.exists()


def test_no_site_writes_no_pages(catalog: Path, out: Path, site: Path) -> None:
    """`--no-site` builds the same snapshot and does not touch an existing site."""
    digest = run_successfully(
        "build", "--catalog", catalog, "--out", out, "--no-site", cwd=out.parent
    )
    assert not site.exists()
    build(catalog, out.with_name("other"), site)
    previous = snapshot_state(site)
    describe(catalog, "new")
    assert (
        run_successfully("build", "--catalog", catalog, "--out", out, "--no-site", "--site", site)
        != digest
    )
    assert snapshot_state(site) == previous
    assert isinstance(open_build(out), Store)


@pytest.mark.parametrize("jobs", [1, 2])
def test_damaged_term_counts_are_rebuilt(jobs: int, tmp_path: Path) -> None:
    """Damage that only the writer of the text index sees."""
    catalog = generate_catalog(tmp_path / "catalog", 700, 5)
    build(catalog, tmp_path / "build", None, jobs=jobs)
    for part in (tmp_path / "build" / ".cache" / "parts").glob("*/*.compiled"):
        part.write_bytes(part.read_bytes()[:-1] + b"\0\0")
    add_tool(catalog, "kit0", "KIT0_ANOTHER", 1)
    repeated = build(catalog, tmp_path / "build", None, jobs=jobs)
    assert repeated.changed
    assert repeated.digest == build(catalog, tmp_path / "clean", None).digest


# A build that is without many of the tools there are


@pytest.fixture(scope="module")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog of a hundred tools, with its build and site."""
    folder = tmp_path_factory.mktemp("hundred")
    generate_catalog(folder / "catalog", 100, 3)
    build(folder / "catalog", folder / "build", folder / "site")
    return folder


@pytest.fixture
def folder(hundred: Path, tmp_path: Path) -> Path:
    """A copy of that."""
    return Path(shutil.copytree(hundred, tmp_path / "copy", symlinks=True))


def remove_tools(folder: Path, tools: int) -> None:
    """Remove tools from a catalog."""
    for tool in sorted((folder / "catalog" / "toolkits").glob("*/KIT*"))[:tools]:
        shutil.rmtree(tool)


def run_build(folder: Path, may_lose: int = DEFAULT_MAX_LOSS_PERCENT) -> BuildResult:
    """Build with default options and return the result."""
    return build(folder / "catalog", folder / "build", None, max_loss_percent=may_lose)


@pytest.mark.parametrize("missing", [9, 10])
def test_losing_a_tenth_of_the_tools_is_allowed(missing: int, folder: Path) -> None:
    remove_tools(folder, missing)
    assert run_build(folder).tools == 100 - missing


def test_losing_more_tools_needs_allow_shrink(folder: Path) -> None:
    """Exit code 1 and one sentence; snapshot and site do not change without `--allow-shrink`."""
    out, site = folder / "build", folder / "site"
    arguments = ("build", "--catalog", folder / "catalog", "--out", out, "--site", site)
    remove_tools(folder, 11)
    previous = snapshot_state(out / "snapshots", out / "current", site)
    for _ in range(2):  # trying again does not wear it down
        result = run_toolcatalog(*arguments)
        assert (result.returncode, result.stdout) == (1, "")
        assert (
            result.stderr.strip().rpartition("\n")[2]
            == f"error: The catalog has 89 tools, and the build in {out} serves 100: more than 10 %"
            " of them would be gone, so nothing was published. Fix the catalog, or build with "
            "--allow-shrink if this is intended."
        )
        assert snapshot_state(out / "snapshots", out / "current", site) == previous
        assert find_leftovers(out, site) == []
    assert "Built 89 tools" in run_toolcatalog(*arguments, "--allow-shrink").stderr
    assert_like_new(folder / "catalog", out, site)


@pytest.mark.parametrize("damage", ["gone", "cut off", "more tools", "not counted"])
def test_damaged_manifest_blocks_no_build(damage: str, folder: Path) -> None:
    """The number of tools before is unknown then."""
    manifest = folder / "build/current/manifest.json"
    data = manifest.read_bytes()
    if damage == "gone":
        manifest.unlink()
    else:
        changed = {
            "cut off": data[:-9],
            "more tools": data.replace(b'"tools":100', b'"tools":900'),
            "not counted": b'{"counts":[]}',
        }
        manifest.write_bytes(changed[damage])
    remove_tools(folder, 50)
    assert run_build(folder).tools == 50


def test_shrink_guard_works_across_formats(folder: Path) -> None:
    """A new program with a new format must not accept half a catalog."""
    manifest = folder / "build/current/manifest.json"
    text = {
        key: value for key, value in json.loads(manifest.read_bytes()).items() if key != "digest"
    } | {"format": 2}
    manifest.write_bytes(
        encoding.dump_json({"digest": encoding.sha256_hex(encoding.dump_json(text)), **text})
    )
    remove_tools(folder, 50)
    with pytest.raises(ShrunkCatalog):
        run_build(folder)
    assert json.loads(manifest.read_bytes())["format"] == 2


def test_shrink_guard_compares_with_current(folder: Path) -> None:
    """After a rollback, with the current snapshot and not with the last one built."""
    hundred_tools = (folder / "build/current").readlink().name
    remove_tools(folder, 60)
    assert run_build(folder, UNLIMITED_LOSS_PERCENT).tools == 40
    retention.switch_current(folder / "build", hundred_tools)
    with pytest.raises(ShrunkCatalog):
        run_build(folder)
    assert (folder / "build/current").readlink().name == hundred_tools


def test_many_snapshots_are_reported(catalog: Path, out: Path) -> None:
    """A build removes none; with more than ten it prints one line that says how to remove
    old ones.
    """
    command = f"`toolcatalog snapshots prune --build {out}`"
    output = f"{out} contains 11 snapshots: {command} removes old ones."
    for number in range(9):
        describe(catalog, f"number {number}")
        build(catalog, out, None)
    arguments = ("build", "--catalog", catalog, "--out", out, "--no-site")
    for number, expected in ((9, 0), (10, 1)):
        describe(catalog, f"number {number}")
        assert run_toolcatalog(*arguments).stderr.count(output) == expected
    assert "snapshots prune" not in run_toolcatalog(*arguments).stderr
    assert len([*(out / "snapshots").iterdir()]) == 11


# Two builds, one site


def test_locked_site_is_reported(catalog: Path, out: Path, site: Path) -> None:
    """While another build writes the site, this one changes neither its snapshots nor the site."""
    build(catalog, out, site)
    describe(catalog, "later")
    previous = snapshot_state(out / "snapshots", out / "current", site)
    with files.lock(site / ".lock") as acquired:
        assert acquired
        result = run_toolcatalog("build", "--catalog", catalog, "--out", out, "--site", site)
        assert (
            error_sentence(result)
            == f"error: Another build is writing to {site}: try again when it is done."
        )
        assert snapshot_state(out / "snapshots", out / "current", site) == previous
        assert build(catalog, out.with_name("other"), None).pages == 0
    assert build(catalog, out, site).changed


def test_parallel_builds_of_one_site_leave_a_complete_site(
    catalog: Path, out: Path, site: Path
) -> None:
    """Each of them succeeds or reports the lock; the site belongs to one of them."""
    other = Path(shutil.copytree(catalog, catalog.with_name("another")))
    shutil.rmtree(other / "toolkits/clock")
    pairs = [(catalog, out), (other, out.with_name("other"))]
    ended = []
    for _ in range(2):
        commands = [building(item, into, site) for item, into in pairs]
        processes = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for command in commands
        ]
        for process in processes:
            _, complaint = process.communicate(timeout=60)
            assert process.returncode == 0 or (
                process.returncode == 2 and "Another build is writing" in complaint
            ), complaint
            ended.append(process.returncode)
    assert 0 in ended
    result = read_tree(site)
    expected = []
    for item, _ in pairs:
        fresh = out.with_name(f"fresh {item.name}")
        build(item, fresh / "build", fresh / "site")
        expected.append(read_tree(fresh / "site"))
    assert result in expected
    assert expected[0] != expected[1]


def test_size_of_toolkit_indexes_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each version of a toolkit has an index of all its tools."""
    root = generate_catalog(tmp_path / "catalog", 6, 2)
    build(root, tmp_path / "build", None)
    current = (tmp_path / "build/current").readlink()
    for month in range(1, 10):
        add_tool(root, "kit1", "KIT1_DO_1", version=f"20260{month}01_00")
    monkeypatch.setattr(snapshot_writer, "_BASE_INDEX_SIZE", 4000)
    monkeypatch.setattr(snapshot_writer, "_INDEX_SIZE_PER_VERSION", 0)
    with pytest.raises(UsageError, match="kit1 is the last of them, with 10 versions and 12 tool"):
        build(root, tmp_path / "build", None)
    assert (tmp_path / "build/current").readlink() == current
    assert [path.name for path in (tmp_path / "build/snapshots").iterdir()] == [current.name]


def test_unused_site_folder_is_removed(catalog: Path, out: Path, site: Path) -> None:
    """A folder that the build created only for the lock; an empty one that existed before stays."""
    (catalog / "toolkits/clock/CLOCK_NOW/20260101_00.yaml").write_text("nam: Now\n")
    with pytest.raises(InvalidCatalog):
        build(catalog, out, site)
    assert not site.exists()
    site.mkdir()
    with pytest.raises(InvalidCatalog):
        build(catalog, out, site)
    assert [path.name for path in site.iterdir()] == [".lock"]


# What git sees


@pytest.mark.parametrize(
    "work",
    [lambda catalog, out: build(catalog, out, None), lambda catalog, out: check(catalog, out, ())],
    ids=["build", "check"],
)
def test_new_build_folder_is_ignored_by_git(
    work: Callable[[Path, Path], object], catalog: Path, out: Path
) -> None:
    """The build adds a .gitignore only to a folder that it creates."""
    work(catalog, out)
    assert (out / ".gitignore").read_text() == "*\n"
    (out / ".gitignore").write_text("!README.md\n")
    describe(catalog, "later")
    work(catalog, out)
    assert (out / ".gitignore").read_text() == "!README.md\n"
    reference = out.with_name("theirs")
    reference.mkdir()
    work(catalog, reference)
    assert not (reference / ".gitignore").exists()
