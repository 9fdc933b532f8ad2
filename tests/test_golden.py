"""Whole small builds held against files that a person has read: `golden/<case>/catalog` must give `golden/<case>/expected`.

After a change that is meant: `python tests/test_golden.py` writes `expected` anew; read the difference before you commit it.
"""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from toolcatalog.build import build

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(folder.name for folder in GOLDEN.iterdir())
WITH_SITE = "unicode"  # the pages of one case are enough to see what they look like, and this one has what must be escaped
REFRESH = "if this is meant, run `python tests/test_golden.py` and read what it has changed"


def made(case: str, folder: Path) -> dict[str, bytes]:
    """All files of the case's snapshot, and of one case the pages, by the paths that they have in `expected`."""
    build(GOLDEN / case / "catalog", folder / "build", folder / "site")
    tree = {f"snapshot/{path}": data for path, data in files_of(folder / "build" / "current").items()}
    if case == WITH_SITE:
        tree |= {f"site/{path}": data for path, data in files_of(folder / "site").items() if path.endswith(".html")}
    return tree


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("case", CASES)
def test_build_gives_the_expected_files(case: str, tmp_path: Path) -> None:
    """The snapshot of each case, and the pages of one, are the expected files byte for byte; of the manifest the JSON counts."""
    tree, expected = made(case, tmp_path), files_of(GOLDEN / case / "expected")
    assert sorted(tree) == sorted(expected), REFRESH
    manifest = "snapshot/manifest.json"
    assert json.loads(tree.pop(manifest)) == json.loads(expected.pop(manifest)), REFRESH
    for path, data in tree.items():
        assert data.decode() == expected[path].decode(), f"{path}: {REFRESH}"


def refresh() -> None:
    for case in CASES:
        shutil.rmtree(GOLDEN / case / "expected", ignore_errors=True)
        with tempfile.TemporaryDirectory() as folder:
            for path, data in made(case, Path(folder)).items():
                file = GOLDEN / case / "expected" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        print(f"wrote golden/{case}/expected")


if __name__ == "__main__":
    refresh()
