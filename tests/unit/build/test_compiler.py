"""Tests of `build.compiler` and `build.snapshot_writer`: tool files to the files of a snapshot."""

import hashlib
import json
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from support.catalogs import add_tool, generate_catalog
from support.models import make_catalog, make_tool
from support.snapshot_reader import read_documents, read_positions
from toolcatalog.build import batches, cache, compiler
from toolcatalog.build.batches import CachedBatch, Task
from toolcatalog.build.snapshot_writer import SnapshotWriter
from toolcatalog.catalog import folder, resolve
from toolcatalog.catalog.model import Toolkit, ToolVersion
from toolcatalog.errors import UsageError

OLD, NEW, CHAT = (
    make_tool("MAIL_SEND", description="Old."),
    make_tool("MAIL_SEND", "20250601_00", tags=["t"]),
    make_tool("CHAT_POST", scopes=["s"]),
)
TOOLS = (NEW, CHAT, OLD)


def test_compiled_batch() -> None:
    """Sorted by slug and version, the newest apart from older ones; facts have the sizes."""
    part = compiler.compile_tools(TOOLS, make_catalog(*TOOLS).toolkits)
    facts = part.facts
    assert [*zip(facts.slugs, facts.versions, facts.newest, strict=True)] == [
        ("CHAT_POST", "20250101_00", True),
        ("MAIL_SEND", "20250101_00", False),
        ("MAIL_SEND", "20250601_00", True),
    ]
    newest, older = json.loads(b"[" + part.newest + b"]"), json.loads(b"[" + part.older + b"]")
    assert [(one["slug"], one["version"]) for one in (*newest, *older)] == [
        ("CHAT_POST", "20250101_00"),
        ("MAIL_SEND", "20250601_00"),
        ("MAIL_SEND", "20250101_00"),
    ]
    chat, rest = part.newest[: facts.sizes[0]], part.newest[facts.sizes[0] :]
    pieces = [chat, part.older, rest[1:]]
    assert rest[:1] == b","
    assert [*map(len, pieces)] == facts.sizes
    assert [zlib.crc32(piece) for piece in pieces] == facts.checks
    assert [hashlib.sha256(piece).hexdigest() for piece in pieces] == facts.digests
    rows, end = [], 0
    for size in facts.rows:
        rows.append(json.loads(part.rows[end : end + size]))
        end += size
    assert end == len(part.rows)
    assert [(row["slug"], row["version"], row["digest"]) for row in rows] == [
        *zip(facts.slugs, facts.versions, facts.digests, strict=True)
    ]


def task_of(root: Path, cache: Path) -> Task:
    """All tools of a catalog as one task."""
    _, folders, _ = folder.list_layout(root)
    heads = {
        kit.parent.name: folder.file_digest(root, f"toolkits/{kit.parent.name}/toolkit.yaml")
        for kit in root.glob("toolkits/*/toolkit.yaml")
    }
    toolkits = {
        slug: Toolkit(slug=slug, name=slug.title(), logo=f"https://{slug}.example/logo.svg")
        for slug in heads
    }
    return Task(
        root=root,
        cache=cache,
        program_digest="this",
        folders=tuple(folders),
        toolkit_digests=heads,
        toolkits=toolkits,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return generate_catalog(tmp_path / "catalog", 6)


@pytest.fixture
def task(root: Path, tmp_path: Path) -> Task:
    return task_of(root, tmp_path / "cache")


def test_valid_batch_is_cached(task: Task) -> None:
    """The key is found by its files, and the entry equals the records."""
    result = compiler.compile_batch(task)
    assert result.entry is not None
    assert (result.checked_files, result.unreadable) == ((), ())
    looked = batches.find_cached((task, None))
    assert looked is not None
    assert looked.key == result.entry.key
    part = compiler.load_or_compile(CachedBatch(task, looked), "facts")
    assert len(part.facts) == 6
    assert sorted(part.facts.slugs) == [
        folder.rpartition("/")[2]
        for folder in sorted(task.folders, key=lambda one: one.rpartition("/")[2])
    ]


def test_cache_key_inputs(task: Task, root: Path) -> None:
    """Another program, toolkit, file name or content; not the rest of the catalog or empty
    folders.
    """
    files = [
        ("toolkits/kit0/KIT0_DO_0/20250101_00.yaml", "aa"),
        ("toolkits/kit1/KIT1_DO_1/20250101_00.yaml", "bb"),
    ]
    key = batches.compute_key(task, files)
    assert key == batches.compute_key(task, files[::-1])
    assert key == batches.compute_key(
        replace(
            task,
            root=root / "elsewhere",
            cache=root,
            folders=(*task.folders, "toolkits/kit9/EMPTY"),
        ),
        files,
    )
    assert key == batches.compute_key(
        replace(task, toolkit_digests={**task.toolkit_digests, "kit2": "other"}), files
    )
    others = {
        batches.compute_key(replace(task, program_digest="that"), files),
        batches.compute_key(
            replace(task, toolkit_digests={**task.toolkit_digests, "kit1": "other"}), files
        ),
        batches.compute_key(task, [files[0], (files[1][0], "cc")]),
        batches.compute_key(task, [files[0], ("toolkits/kit1/KIT1_DO_2/20250101_00.yaml", "bb")]),
        batches.compute_key(task, files[:1]),
    }
    assert len(others | {key}) == 6


def test_batch_with_problems_is_not_cached(task: Task, root: Path) -> None:
    """Problems of each file are returned, valid tools come without parameters."""
    (root / "toolkits/kit0/KIT0_DO_0/20250101_00.yaml").write_text("name: X\n")
    (root / "toolkits/kit0/KIT0_DO_0/stray.txt").write_text("")
    result = compiler.compile_batch(task)
    assert result.entry is None
    assert len(result.checked_files) == 7
    assert {
        one.path: [problem.rule for problem in one.problems]
        for one in result.checked_files
        if one.problems
    } == {
        "toolkits/kit0/KIT0_DO_0/20250101_00.yaml": ["missing-key"],
        "toolkits/kit0/KIT0_DO_0/stray.txt": ["file-unexpected"],
    }
    records = [one.record for one in result.checked_files if isinstance(one.record, ToolVersion)]
    assert len(records) == 6
    assert all(record.input_parameters == {} for record in records)
    assert not (task.cache / "parts").exists()
    assert batches.find_cached((task, None)) is None


def test_batch_without_its_toolkit_is_not_cached(task: Task) -> None:
    """Without a valid toolkit, tools have no name and logo."""
    result = compiler.compile_batch(replace(task, toolkits={}))
    assert result.entry is None
    assert len(result.checked_files) == 6
    assert not any(one.problems for one in result.checked_files)


def test_damaged_entry_is_rebuilt(task: Task) -> None:
    """While the files stay the same."""
    entry = compiler.compile_batch(task).entry
    assert entry is not None
    batch = CachedBatch(task, entry)
    good = compiler.load_or_compile(batch, "facts")
    place = cache.batch_path(task.cache, entry.key)
    for damage in (b"", place.read_bytes()[:-1]):
        place.write_bytes(damage)
        assert compiler.load_or_compile(batch, "facts") == good
    place.unlink()
    assert compiler.load_or_compile(batch, "facts") == good
    place.unlink()
    add_tool(task.root, "kit0", "KIT0_DO_0", 99)
    with pytest.raises(UsageError, match=r"changed while they were read: build again\.$"):
        compiler.load_or_compile(batch, "facts")


# From parts to files


def assembled(folder: Path, batched: list[list[ToolVersion]]) -> SnapshotWriter:
    """The files about tools of a snapshot whose parts are these batches."""
    tools = [one for batch in batched for one in batch]
    model = make_catalog(*tools)
    assembly = SnapshotWriter(folder, resolve.resolve_catalog(model))
    advanced: list[int] = []
    made = [compiler.compile_tools(batch, model.toolkits) for batch in batched]
    assembly.write_tools(made, Counter(one.toolkit for one in tools), advanced.append)
    assert advanced == [1] * len(batched)
    return assembly


@pytest.mark.parametrize(
    "batched",
    [
        [],
        [[]],
        [[CHAT]],
        [[CHAT], [OLD, NEW]],
        [[CHAT, OLD, NEW]],
        [[], [OLD, NEW], []],
        [[OLD, NEW], [make_tool("ZULU", version) for version in ("20250101_00", "20250201_00")]],
    ],
)
def test_documents_of_batches(batched: list[list[ToolVersion]], tmp_path: Path) -> None:
    """A JSON array, the newest of each tool first, and columns with their positions."""
    assembly = assembled(tmp_path, batched)
    ordered = sorted(
        (one for batch in batched for one in batch), key=lambda one: (one.slug, one.version)
    )
    newest = {one.slug: one.version for one in ordered}
    result = read_documents(tmp_path)
    expected = [(one.slug, one.version) for one in ordered if newest[one.slug] == one.version]
    assert [*result] == expected + [
        (one.slug, one.version) for one in ordered if newest[one.slug] != one.version
    ]
    data = (tmp_path / "tools.json").read_bytes()
    assert [data[row[0] : row[1]] for row in read_positions(tmp_path)] == [
        result[one.slug, one.version] for one in ordered
    ]
    for path, output in assembly.written.items():
        written = (tmp_path / path).read_bytes()
        assert (output.size, output.sha256) == (len(written), hashlib.sha256(written).hexdigest())
    kept = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert kept == {*assembly.written}


@pytest.mark.parametrize("size", [(1 << 20) - 700, 1 << 20, (3 << 20) + 1])
def test_large_documents_are_copied_completely(size: int, tmp_path: Path) -> None:
    """Older documents of more than a block."""
    versions = ("20250101_00", "20250201_00", "20250301_00")
    assembled(
        tmp_path,
        [
            [
                make_tool("MAIL_SEND", version, description=version * (size // 22))
                for version in versions
            ]
        ],
    )
    assert {
        key: json.loads(document)["description"]
        for key, document in read_documents(tmp_path).items()
    } == {("MAIL_SEND", version): version * (size // 22) for version in versions}
