"""What many tests share: the shipped catalog and 930 imported tools, each built once, and one real
server of each.
"""

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from support.command import run_successfully
from support.paths import SHARED, SHIPPED_CATALOG
from support.profile import DEEP_PROFILE
from support.s3 import FaultyProxy, start_s3_server
from support.server import Server, start_server

WIRE = SHARED / "data" / "wire-tools.json"

# A shell that runs the tests in the background has them ignore an interrupt, and all that they
# start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says nothing on a machine that does other things too; how many there
# are, some properties leave to the profile.
settings.register_profile(
    "quick", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", settings.get_profile("quick"), max_examples=2_000)
settings.load_profile("deep" if DEEP_PROFILE else "quick")


@pytest.hookimpl(optionalhook=True)  # there is no xdist where mutants are tried
def pytest_xdist_auto_num_workers() -> int:
    """Half again as many as there are processors: for a third of their time the tests wait, for a
    server or for a browser.
    """
    return (
        len(os.sched_getaffinity(0)) * 3 // 2
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the deep tests out, unless this is the deep profile or one of them is named."""
    if not (
        DEEP_PROFILE or config.option.markexpr or any("::" in argument for argument in config.args)
    ):
        left_out = [item for item in items if item.get_closest_marker("deep")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    for item in items if config.pluginmanager.hasplugin("xdist") else []:
        if not item.get_closest_marker("xdist_group") and (group := _shares(item)):
            item.add_marker(pytest.mark.xdist_group(group))


def _shares(item: pytest.Item) -> str:
    """What a test has in common with others, so that one worker makes it once: the real
    definitions, or what its module makes for all.
    """
    scopes = {
        name: result[-1].scope
        for name, result in getattr(item, "_fixtureinfo").name2fixturedefs.items()  # noqa: B009
    }
    return (
        "imported"
        if "definitions" in scopes
        else item.nodeid.split("::")[0]
        if "module" in scopes.values()
        else ""
    )


@pytest.fixture(scope="session")
def shipped_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build of the shipped catalog, with its site next to it."""
    folder = tmp_path_factory.mktemp("shipped")
    run_successfully(
        "build", "--catalog", SHIPPED_CATALOG, "--out", folder / "build", "--site", folder / "site"
    )
    return folder / "build"


@pytest.fixture(scope="session")
def shipped(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the shipped catalog and its site; its key is of project `default` and sees all
    toolkits.
    """
    with start_server(
        shipped_build,
        tmp_path_factory.mktemp("server"),
        "--site",
        str(shipped_build.parent / "site"),
    ) as server:
        yield server


@pytest.fixture(scope="session")
def definitions() -> dict[str, Any]:
    """930 real definitions as they came, by slug."""
    if not WIRE.exists():
        pytest.skip(
            f"there are no real definitions at {WIRE.relative_to(SHARED.parent)}, beside the"
            " project"
        )
    return {definition["slug"]: definition for definition in json.loads(WIRE.read_bytes())}


@pytest.fixture(scope="session")
def imported_build(definitions: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build of a catalog of those definitions, with its site next to it."""
    assert len(definitions) == 930
    folder = tmp_path_factory.mktemp("imported")
    run_successfully("import", "wire", WIRE, "--catalog", folder / "catalog")
    run_successfully(
        "build",
        "--catalog",
        folder / "catalog",
        "--out",
        folder / "build",
        "--site",
        folder / "site",
    )
    return folder / "build"


@pytest.fixture(scope="session")
def imported(imported_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of that catalog and its site."""
    with start_server(
        imported_build,
        tmp_path_factory.mktemp("server"),
        "--site",
        str(imported_build.parent / "site"),
    ) as server:
        yield server


@pytest.fixture(scope="session")
def changed_build(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `build` of the shipped catalog with another name of one tool."""
    folder = tmp_path_factory.mktemp("changed")
    shutil.copytree(SHIPPED_CATALOG, folder / "catalog")
    shutil.copytree(shipped_build, folder / "build", symlinks=True)
    return _with_another_name(folder, "github")


@pytest.fixture(scope="session")
def small_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `build` of one toolkit of the shipped catalog."""
    folder = tmp_path_factory.mktemp("small")
    shutil.copytree(SHIPPED_CATALOG / "toolkits/hackernews", folder / "catalog/toolkits/hackernews")
    shutil.copy(SHIPPED_CATALOG / "catalog.yaml", folder / "catalog")
    run_successfully(
        "build", "--catalog", folder / "catalog", "--out", folder / "build", "--no-site"
    )
    return folder / "build"


@pytest.fixture(scope="session")
def other_build(small_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with another name of one tool."""
    folder = tmp_path_factory.mktemp("other")
    shutil.copytree(small_build.parent, folder, symlinks=True, dirs_exist_ok=True)
    return _with_another_name(folder, "hackernews")


def _with_another_name(folder: Path, toolkit: str) -> Path:
    file = min((folder / "catalog/toolkits" / toolkit).glob("*/*.yaml"))
    file.write_text(re.sub("(?m)^name: .*", "name: Do something else", file.read_text(), count=1))
    run_successfully(
        "build", "--catalog", folder / "catalog", "--out", folder / "build", "--no-site"
    )
    return folder / "build"


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The URL of an S3 server."""
    with start_s3_server() as url:
        yield url


@pytest.fixture
def proxy(s3: str) -> Iterator[FaultyProxy]:
    """A proxy before that server, without faults."""
    result = FaultyProxy(s3)
    result.start()
    yield result
    result.stop()
