"""Time and memory limits for the worst inputs of at most 1 MiB (`support.worst_inputs`)."""

import gzip
import json
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.command import only_errors
from support.paths import DATA, ROOT
from support.server import Server
from support.worst_inputs import BASE, FILE_PATHS, QUICK
from toolcatalog.build.pipeline import build
from toolcatalog.validation.checker import check_folder

CORPUS = DATA / "corpus"
# of a processor: thrice what is promised, for slow machines that are shared
SECONDS, MEBIBYTES = 6.0, 200.0
# seconds by the slowness of the machine meanwhile: what is promised, and half as much for what the
# yardstick does not see
SCALED = 3.0

linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(),
    reason="only Linux tells how much memory a process had at most",
)


def measured(*cases: str, timeout: int) -> list[dict[str, Any]]:
    """What `support.worst_inputs` tells of these cases; of all without any."""
    command = [sys.executable, "-m", "support.worst_inputs", *cases]
    result = subprocess.run(
        command, cwd=ROOT / "tests", capture_output=True, text=True, check=True, timeout=timeout
    )
    return [json.loads(line) for line in result.stdout.splitlines()]


@linux
def test_worst_inputs_are_bounded() -> None:
    """The worst cases of each target; `python tests/support/worst_inputs.py` runs all."""
    costs = measured(*QUICK, timeout=300)
    seen = {cost["case"] for cost in costs}
    assert {
        wanted
        for wanted in QUICK
        if wanted not in seen and not any(case.startswith(f"{wanted}/") for case in seen)
    } == set()
    assert [
        cost
        for cost in costs
        if cost["outcome"].startswith("!")
        or cost["seconds"] > SECONDS
        or cost["mebibytes"] > MEBIBYTES
    ] == []


@linux
@pytest.mark.deep
def test_all_inputs_are_bounded() -> None:
    """Scaled by the load of the machine."""
    costs = measured(timeout=7_200)
    assert len(costs) > 500
    slow = [cost for cost in costs if cost["seconds"] / cost["slowness"] > SCALED]
    assert (
        slow
        + [
            cost
            for cost in costs
            if cost["outcome"].startswith("!") or cost["mebibytes"] > MEBIBYTES
        ]
        == []
    )


@linux
def test_bounds_are_measured() -> None:
    """Targets that use 300 MiB, are slow, or fail are reported."""
    script = (
        "import tempfile, pathlib, time\n"
        "from support import worst_inputs as bounding\n"
        "rooms = object.__new__(bounding.Targets)\n"
        "rooms.folder = pathlib.Path(tempfile.mkdtemp())\n"
        "def slow(data, folder):\n    end = time.process_time() + 0.2\n"
        "    while time.process_time() < end: pass\n"
        "rooms.named = {'much': lambda data, folder: len(bytearray(300 << 20)), 'slow': slow, "
        "'wrong': lambda data, folder: 1 / 0}\n"
        "print([list(bounding.measure_in_subprocess(rooms, room, b'')) for room in rooms.named])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    much, slow, wrong = json.loads(result.stdout.replace("'", '"'))
    assert much[1] > 250
    assert slow[0] >= 0.2
    assert wrong[2].startswith("! ZeroDivisionError")


def with_tool(folder: Path, file: Path) -> Path:
    """A catalog with this file as a version of a tool."""
    shutil.copytree(BASE, folder / "catalog")
    shutil.copy(file, folder / "catalog" / FILE_PATHS["tool"])
    return folder / "catalog"


@pytest.mark.parametrize("name", ["description-of-blanks", "description-of-formulas"])
def test_strange_valid_catalog_is_built(name: str, tmp_path: Path) -> None:
    catalog = with_tool(tmp_path, CORPUS / "tool" / f"{name}.yaml")
    assert only_errors(check_folder(catalog).problems) == []
    build(catalog, tmp_path / "build", tmp_path / "site")
    assert (tmp_path / "site" / "tools" / "MAIL_SEND" / "index.html").exists()


@pytest.mark.parametrize(
    "name",
    [
        "choices-by-examples",
        "branches-by-examples",
        "pattern-looks-ahead",
        "pattern-looks-far-ahead",
        "pattern-refers-back",
        "pattern-repeats",
        "pattern-repeats-in-verbose-mode",
    ],
)
def test_expensive_schema_is_a_problem(name: str, tmp_path: Path) -> None:
    """Thousands of examples with thousands of choices, long ones, and patterns that backtrack are
    not evaluated; the finding names the parameter.
    """
    (problem,) = only_errors(
        check_folder(with_tool(tmp_path, CORPUS / "tool" / f"{name}.yaml")).problems
    )
    assert (problem.rule, problem.line) == ("wrong-value", 5)
    assert "too many values" in problem.message
    assert "shorten" in problem.help


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_compressed_request_bodies_are_not_unpacked(shipped: Server, coding: str) -> None:
    """They are invalid JSON, so there are no zip bombs."""
    bomb = {
        "gzip": gzip.compress(b" " * 40_000_000 + b"{}"),
        "deflate": zlib.compress(b" " * 40_000_000 + b"{}"),
    }[coding]
    url = f"{shipped.url}/api/v3/tool_router/session/trs_playground/tools"
    result = httpx.request(
        "GET",
        url,
        content=bomb[:60_000],
        headers={"x-api-key": shipped.key, "content-encoding": coding},
    )
    assert (result.status_code, result.json()["error"]["errors"]) == (400, ["body: not JSON."])
