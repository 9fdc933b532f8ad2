"""Golden files: `golden/<case>/catalog` gives exactly the files of `golden/<case>/expected`.

The tables that queries go by are no text: `query.json` is what `support.snapshot_reader` makes of
them, and their sizes and digests stand nowhere.

After a change that is meant: `PYTHONPATH=tests python tests/acceptance/test_golden.py` writes
`expected` anew; read the difference before you commit it.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from support.paths import DATA
from support.snapshot_reader import read_documents, read_query_files
from toolcatalog.build.pipeline import build
from toolcatalog.snapshot.format import COMPRESSED_DOCUMENTS

GOLDEN = DATA / "golden"
CASES = sorted(folder.name for folder in GOLDEN.iterdir())
# the pages of one case are enough to see what they look like, and this one has what must be escaped
WITH_SITE = "unicode"
REFRESH = (
    "if this is meant, run `PYTHONPATH=tests python tests/acceptance/test_golden.py` and read what"
    " it has changed"
)


def build_files(case: str, folder: Path) -> dict[str, bytes]:
    """Return all files of a case's snapshot, and the pages of one case, by path."""
    build(GOLDEN / case / "catalog", folder / "build", folder / "site")
    snapshot = folder / "build" / "current"
    tree = {
        f"snapshot/{path}": data
        for path, data in files_of(snapshot).items()
        if not path.startswith("query.") and path != COMPRESSED_DOCUMENTS
    }
    texts = [*read_documents(snapshot).values()]
    assert tree["snapshot/tools.json"] == b"[" + b",".join(texts) + b"]"
    tree["snapshot/tools.json"] = b"[" + b",\n".join(texts) + b"]\n"
    manifest = json.loads(tree["snapshot/manifest.json"])
    of_text = {
        path: group for path, group in manifest["files"].items() if not path.startswith("query.")
    }
    tree["snapshot/manifest.json"] = lines({**manifest, "digest": "", "files": of_text})
    tree["query.json"] = lines(read_query_files(snapshot))
    if case == WITH_SITE:
        tree |= {
            f"site/{path}": data
            for path, data in files_of(folder / "site").items()
            if path.endswith(".html")
        }
    return tree


def lines(value: dict[str, Any]) -> bytes:
    """JSON with a line for each thing of which there are many."""
    parts = [f"{write_archive(name)}: {block(inner)}" for name, inner in value.items()]
    return ("{" + ",\n".join(parts) + "}\n").encode()


def block(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{\n"
            + ",\n".join(
                f"{write_archive(name)}: {write_archive(inner)}" for name, inner in value.items()
            )
            + "\n}"
        )
    return (
        "[\n" + ",\n".join(map(write_archive, value)) + "\n]"
        if isinstance(value, list)
        else write_archive(value)
    )


def write_archive(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("case", CASES)
def test_build_gives_the_expected_files(case: str, tmp_path: Path) -> None:
    """The snapshot of each case, and the pages of one, byte for byte."""
    tree, expected = build_files(case, tmp_path), files_of(GOLDEN / case / "expected")
    assert sorted(tree) == sorted(expected), REFRESH
    for path, data in tree.items():
        assert data.decode() == expected[path].decode(), f"{path}: {REFRESH}"


def refresh() -> None:
    for case in CASES:
        shutil.rmtree(GOLDEN / case / "expected", ignore_errors=True)
        with tempfile.TemporaryDirectory() as folder:
            for path, data in build_files(case, Path(folder)).items():
                file = GOLDEN / case / "expected" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        print(f"wrote golden/{case}/expected")


if __name__ == "__main__":
    refresh()
