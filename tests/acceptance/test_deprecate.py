"""`toolcatalog deprecate`: it changes only the deprecation of a version."""

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from support.command import run_toolcatalog
from support.paths import SHIPPED_CATALOG
from toolcatalog.catalog import yaml_reader
from toolcatalog.cli.main import main

TEXT = (
    b"# mine\nname: A # a\ndescription: >-\n  It does it.\n\n# what it takes\ninput_parameters:"
    b" {}\n"
)
DATES = ["--since", "2025-10-27", "--sunset", "2026-06-30"]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The newest of two versions of A_DO, in a catalog with A_OTHER and A_GONE, which A_OTHER
    replaces.
    """
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "catalog" / "toolkits" / "a"
    for path, data in {
        "../../catalog.yaml": b"title: A\n",
        "toolkit.yaml": b"name: A\nlogo: https://example.com/a.png\n",
        "A_DO/20240101_00.yaml": TEXT,
        "A_DO/20250101_00.yaml": TEXT,
        "A_OTHER/20250101_00.yaml": TEXT,
        "A_GONE/20250101_00.yaml": TEXT + b"deprecation: {replaced_by: A_OTHER}\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder / "A_DO" / "20250101_00.yaml"


def test_deprecate_writes_all_fields(tool: Path) -> None:
    """At the place of the format; the command prints the path, mentions older versions, and `check`
    passes.
    """
    result = run_toolcatalog(
        "deprecate", "A_DO", "--replaced-by", "A_OTHER", "--reason", "It: is old.", *DATES
    )
    assert (result.returncode, result.stdout) == (0, "catalog/toolkits/a/A_DO/20250101_00.yaml\n")
    assert (
        "1 older version is as before, for anyone who has pinned one: --all-versions deprecates "
        "those too." in result.stderr
    )
    block = (
        b"deprecation:\n  reason: 'It: is old.'\n  since: '2025-10-27'\n  sunset: '2026-06-30'\n "
        b" replaced_by: A_OTHER\n"
    )
    assert tool.read_bytes() == TEXT.replace(b"it.\n", b"it.\n" + block)
    assert (tool.parent / "20240101_00.yaml").read_bytes() == TEXT
    checked = run_toolcatalog("check", "--format", "concise")
    assert checked.returncode == 0, checked.stdout


def test_deprecation_date_defaults_to_today(tool: Path) -> None:
    previous = f"{datetime.now().astimezone():%Y-%m-%d}"
    assert main(["deprecate", "A_DO"]) == 0
    (since,) = yaml_reader.parse(tool.read_bytes()).value["deprecation"].values()
    assert since in {previous, f"{datetime.now().astimezone():%Y-%m-%d}"}


def test_second_call_changes_only_the_given_fields(tool: Path) -> None:
    """A call with the same values writes nothing."""
    assert main(["deprecate", "A_DO", "--reason", "Old.", *DATES]) == 0
    assert main(["deprecate", "A_DO", "--replaced-by", "A_OTHER", "--reason", "Older."]) == 0
    expected = {
        "reason": "Older.",
        "since": "2025-10-27",
        "sunset": "2026-06-30",
        "replaced_by": "A_OTHER",
    }
    assert [*yaml_reader.parse(tool.read_bytes()).value["deprecation"].items()] == [
        *expected.items()
    ]
    repeated = run_toolcatalog("deprecate", "A_DO", "--reason", "Older.")
    assert (repeated.returncode, repeated.stdout) == (0, "")
    assert "Nothing to change" in repeated.stderr


def test_all_versions_and_undo(tool: Path) -> None:
    """`--all-versions` writes each file, `--undo` restores the bytes."""
    assert main(["deprecate", "A_DO", "--all-versions"]) == 0
    assert all(b"deprecation:" in file.read_bytes() for file in tool.parent.iterdir())
    assert main(["deprecate", "A_DO", "--all-versions", "--undo"]) == 0
    assert all(file.read_bytes() == TEXT for file in tool.parent.iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["A_D0"], "There is no tool A_D0 in catalog: did you mean A_DO?"),
        (
            ["A_DO", "--replaced-by", "A_OTHR"],
            "There is no tool A_OTHR in catalog: did you mean A_OTHER?",
        ),
        (
            ["A_DO", "--replaced-by", "A_DO"],
            "A_DO cannot replace itself: name another tool, or leave --replaced-by out.",
        ),
        (
            ["A_DO", "--replaced-by", "A_GONE"],
            "A_GONE is deprecated itself: name A_OTHER, which replaces it.",
        ),
        (
            ["A_OTHER", "--replaced-by", "A_GONE"],
            "A_GONE is deprecated itself: name one that is not.",
        ),
        (
            ["A_DO", "--since", "2025-10-27", "--sunset", "2025-10-26"],
            (
                "A tool that is deprecated since 2025-10-27 cannot go on 2025-10-26: give a later"
                " --sunset."
            ),
        ),
        (
            ["A_DO", "--undo", "--reason", "x"],
            "--undo removes the whole deprecation: use it alone.",
        ),
    ],
)
def test_errors_are_one_sentence(
    tool: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """Exit code 2, and nothing is written."""
    assert main(["deprecate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: {sentence}\n"
    assert tool.read_bytes() == TEXT


@pytest.mark.parametrize(
    "data",
    [
        b'{"name": "A", "description": "B"}\n',
        b"name: A\nname: B\n",
        b"name: [\n",
        b"",
        b"- a\n",
        b"name: A\ndescription: |+\n  B\n\n",
    ],
)
def test_unsupported_layout_changes_no_file(
    tool: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    """Of no version."""
    tool.write_bytes(data)
    assert main(["deprecate", "A_DO", "--all-versions"]) == 2
    assert (
        "catalog/toolkits/a/A_DO/20250101_00.yaml is unchanged, because the "
        in capsys.readouterr().err
    )
    assert tool.read_bytes() == data
    assert (tool.parent / "20240101_00.yaml").read_bytes() == TEXT


def test_invalid_date_is_refused(tool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deprecate", "A_DO", "--since", "2025-02-30"]) == 2
    assert "'2025-02-30' does not match the format '%Y-%m-%d'" in capsys.readouterr().err
    assert tool.read_bytes() == TEXT


def test_meta_tool_is_replaced_by_a_meta_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Placeholders work."""
    catalog = tmp_path / "catalog"
    shutil.copytree(SHIPPED_CATALOG, catalog)
    item, other = sorted(path.name for path in (catalog / "meta_tools").iterdir() if path.is_dir())[
        :2
    ]
    assert (
        main(["deprecate", item, "--replaced-by", "GITHUB_CREATE_ISSUE", "--catalog", str(catalog)])
        == 2
    )
    assert "Only a meta tool can replace a meta tool" in capsys.readouterr().err
    assert main(["deprecate", item, "--replaced-by", other, "--catalog", str(catalog)]) == 0
    assert run_toolcatalog("check", "--catalog", catalog, "--format", "concise").returncode == 0
