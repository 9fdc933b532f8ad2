"""What many tests share: the shipped catalog built once, and one real server of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from running import SHIPPED, Server, serving, succeed


@pytest.fixture(scope="session")
def shipped_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `build` of the shipped catalog, with its site beside it."""
    folder = tmp_path_factory.mktemp("shipped")
    succeed("build", "--catalog", SHIPPED, "--out", folder / "build", "--site", folder / "site")
    return folder / "build"


@pytest.fixture(scope="session")
def shipped(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the shipped catalog and its site; its key is of project `default` and sees all toolkits."""
    with serving(shipped_build, tmp_path_factory.mktemp("server"), "--site", str(shipped_build.parent / "site")) as server:
        yield server
