"""Tests of `catalog.loader`: files to raw values, and places of findings."""

import hashlib
import os
from pathlib import Path

import pytest

from toolcatalog.catalog import folder
from toolcatalog.catalog.folder import display_path, file_digest, is_catalog_file, list_paths
from toolcatalog.catalog.loader import Document, Location, load_file, locate_findings
from toolcatalog.errors import Finding, UsageError

TREE = {
    "catalog.yaml": ("catalog", {}),
    "toolkits/mail/toolkit.yaml": ("toolkit", {"toolkit": "mail"}),
    "toolkits/mail/MAIL_SEND/20250101_00.yaml": (
        "tool",
        {"toolkit": "mail", "tool": "MAIL_SEND", "version": "20250101_00"},
    ),
    "auth_configs/ac_1.yaml": ("auth_config", {"auth_config": "ac_1"}),
    "meta_tools/toolkit.yaml": ("toolkit", {}),
    "meta_tools/FIND/20250101_00.yaml": ("meta_tool", {"tool": "FIND", "version": "20250101_00"}),
    "sessions/trs_1.yaml": ("session", {"session": "trs_1"}),
}


def put(root: Path, *paths: str, text: str = "a: b\n") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.mark.parametrize(
    ("path", "kind", "names"), [(path, *label) for path, label in TREE.items()], ids=TREE
)
def test_path_determines_the_identity(
    path: str, kind: str, names: dict[str, str], tmp_path: Path
) -> None:
    """Kind, slugs, version and id."""
    put(tmp_path, path)
    sha256 = hashlib.sha256(b"a: b\n").hexdigest()
    assert load_file(tmp_path, path) == (
        Document(path, Location(kind, names), {"a": "b"}, is_readable=True, digest=sha256),
        [],
    )
    assert file_digest(tmp_path, path) == sha256


def test_scan_lists_data_files_sorted(tmp_path: Path) -> None:
    """By path; without prose, CODEOWNERS and hidden files in any folder."""
    others = [
        "README.md",
        ".git/config",
        "toolkits/README.md",
        "toolkits/mail/OWNERS",
        "toolkits/.hidden/x.yaml",
        "CODEOWNERS",
        ".x.yaml",
    ]
    put(tmp_path, *TREE, *others, "toolkits/mail/notes.txt")
    (tmp_path / "toolkits" / "empty").mkdir()
    assert list_paths(tmp_path) == (sorted([*TREE, "toolkits/mail/notes.txt"]), [])


def test_ignored_names_apply_only_to_files(tmp_path: Path) -> None:
    """An unchecked folder could contain anything."""
    paths = ["toolkits/mail/CODEOWNERS/20250101_00.yaml", "toolkits/mail/OWNERS/20250101_00.yaml"]
    put(tmp_path, *paths)
    assert list_paths(tmp_path) == (paths, [])
    assert all(map(is_catalog_file, paths))


@pytest.mark.parametrize("name", ["nothing-here", "file"])
def test_missing_catalog_is_reported(name: str, tmp_path: Path) -> None:
    """With how to name one."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"No catalog at .*--catalog"):
        list_paths(tmp_path / name)


@pytest.mark.parametrize(
    "path",
    [
        "notes.yaml",
        "catalog.yml",
        "toolkits/toolkit.yaml",
        "toolkits/mail/toolkit.yml",
        "toolkits/mail/MAIL_SEND.yaml",
        "toolkits/mail/MAIL_SEND/deeper/20250101_00.yaml",
        "sessions/toolkit/trs_1.yaml",
        "auth_config/ac_1.yaml",
        "Catalog.yaml",
        "sessions/trs_1.yaml.bak",
    ],
)
def test_unexpected_file_is_reported(path: str, tmp_path: Path) -> None:
    put(tmp_path, path)
    document, problems = load_file(tmp_path, path)
    assert document is None
    assert [problem.rule for problem in problems] == ["file-unexpected"]


def test_unreadable_file_keeps_its_identity(tmp_path: Path) -> None:
    """So that references to it are not reported, too."""
    (tmp_path / "sessions").mkdir()
    os.mkfifo(tmp_path / "sessions" / "trs_1.yaml")
    document, problems = load_file(tmp_path, "sessions/trs_1.yaml")
    assert document == Document("sessions/trs_1.yaml", Location("session", {"session": "trs_1"}))
    assert len(problems) == 1


def test_vanished_file_is_a_problem(tmp_path: Path) -> None:
    """And no exception."""
    document, (problem,) = load_file(tmp_path, "catalog.yaml")
    assert document is not None
    assert not document.is_readable
    assert (problem.rule, problem.message) == (
        "file-unreadable",
        "cannot be read: no such file or directory",
    )


def test_findings_have_their_source_line(tmp_path: Path) -> None:
    """Without line end and byte-order mark, and with the length to mark."""
    (tmp_path / "catalog.yaml").write_bytes("\ufefftitle: &name Ä\r\nx: 1\r\n".encode())
    _, (problem,) = load_file(tmp_path, "catalog.yaml")
    assert (problem.path, problem.line, problem.column, problem.length) == (
        f"{tmp_path.name}/catalog.yaml",
        1,
        8,
        7,
    )
    assert problem.excerpt == "title: &name Ä"


def test_excerpt_of_a_long_line_is_short(tmp_path: Path) -> None:
    """A thousand problems may be in one line of a megabyte."""
    text = f"{{title: {'a' * 2000}, home: http://x, license: {'b' * 2000}}}"
    put(tmp_path, "catalog.yaml", text=text)
    (problem,) = locate_findings(
        tmp_path, [Finding(path="catalog.yaml", pointer=("home",), rule="a", message="")]
    )
    start = problem.column - 1 - problem.excerpt_start
    assert problem.excerpt[start : start + problem.length] == "http://x"
    assert problem.excerpt in text
    assert len(problem.excerpt) <= folder.MAX_EXCERPT_LENGTH


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no such files")
def test_file_without_a_size_is_read_completely() -> None:
    """On file systems that return parts, or a size of 0."""
    (problem,) = locate_findings(Path("/proc/self"), [Finding(path="status", rule="a", message="")])
    assert problem.excerpt.startswith("Name:\t")


def test_locate_finding(tmp_path: Path) -> None:
    """The place of its value or key; line 1 if the file is missing."""
    put(tmp_path, "catalog.yaml", text="title: Test\nhome: http://x\n")
    findings = [
        Finding(
            path="catalog.yaml", pointer=("home",), rule="a", message="", expected="e", help="h"
        ),
        Finding(path="catalog.yaml", pointer=("home",), at_key=True, rule="b", message=""),
        Finding(path="toolkits/x/toolkit.yaml", rule="c", message=""),
    ]
    results = [
        (problem.rule, problem.line, problem.column, problem.length, problem.excerpt)
        for problem in locate_findings(tmp_path, findings)
    ]
    assert results == [
        ("a", 2, 7, 8, "home: http://x"),
        ("b", 2, 1, 4, "home: http://x"),
        ("c", 1, 1, 1, ""),
    ]
    assert locate_findings(tmp_path, findings)[0].expected == "e"
    assert locate_findings(tmp_path, findings)[0].help == "h"


def test_messages_are_one_short_line(tmp_path: Path) -> None:
    """Quoted texts are escaped and cut."""
    finding = Finding(
        path="catalog.yaml",
        rule="a",
        message="x\n::error::\x1b[2J\u202e" + "y" * 10_000,
        help="é日 ok",
    )
    (problem,) = locate_findings(tmp_path, [finding])
    assert problem.message.startswith(r"x\n::error::\x1b[2J\u202eyyy")
    assert problem.message.endswith("y...")
    assert len(problem.message) < 600
    assert problem.help == "é日 ok"


def test_displayed_paths_start_with_the_catalog(tmp_path: Path) -> None:
    """However the folder was named."""
    folder = tmp_path / "my catalog"
    folder.mkdir()
    assert display_path(folder, "catalog.yaml") == "my catalog/catalog.yaml"
    assert (
        display_path(folder / ".." / "my catalog", "a/b\n\udcff.yaml")
        == r"my catalog/a/b\n\udcff.yaml"
    )
