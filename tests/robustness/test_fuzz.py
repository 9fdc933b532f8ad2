"""Random bytes, random JSON and mutated examples for every parser of untrusted input."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import fuzz_targets
from support.paths import ROOT
from support.profile import DEEP_PROFILE
from toolcatalog.errors import ToolcatalogError

FOUND = [
    pytest.param(room, file, id=f"{room}/{file.name}")
    for room in fuzz_targets.TARGETS
    for file in fuzz_targets.load_regressions(room)
]
PIECES = [
    *(
        b'" { } [ ] : , - # & * ! | > % \\ \\u0000 \\ud800 null true 0 -1 1e999 '
        b"99999999999999999999 NaN $ref latest"
    ).split(),
    *(
        b"\x00",
        b"\xff",
        b"\n",
        b"\n  ",
        b"\t",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        "\u2028é😀".encode(),
        b"=",
        b"+",
        b"[]=",
    ),
]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**63,
    1e300,
    "",
    "a",
    "\x00",
    "../a",
    "2026-01-01",
    "9999-12-31T23:59:59-23:59",
    "0" * 64,
    [],
    [[]],
    {},
    [{}],
]
SCALARS = st.sampled_from([*ODD, "\ud800", "#/$defs/b"])
KEYS = st.sampled_from(
    [
        "",
        "a",
        "type",
        "format",
        "keys",
        "tools",
        "files",
        "digest",
        "size",
        "$ref",
        "enum",
        "items",
        "properties",
        "anyOf",
        "name",
    ]
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn, room: str) -> bytes:
    """An example of a target with a few changed places."""
    data = draw(st.sampled_from(fuzz_targets.load_examples(room)))
    for _ in range(draw(st.integers(1, 3))):
        start, cut = draw(st.integers(0, len(data))), draw(st.integers(0, 8))
        new = draw(
            st.sampled_from(PIECES) | st.binary(max_size=3) | st.just(data[start : start + 30] * 2)
        )
        data = data[:start] + new + data[start + cut :]
    return data


def ways(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within a JSON value."""
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield (*at, key)
        yield from ways(inner, (*at, key))


@st.composite
def replaced(draw: st.DrawFn, room: str) -> bytes:
    """A JSON example of a target in which one value, or all of it, is replaced by another."""
    values = [
        json.loads(data)
        for data in fuzz_targets.load_examples(room)
        if data[:1] in (b"{", b"[") and is_json(data)
    ]
    chosen = draw(st.sampled_from(values)) if values else None
    anything, places = draw(ANYTHING), [*ways(chosen)]
    if not places:
        return json.dumps(anything).encode()
    return json.dumps(put(chosen, draw(st.sampled_from(places)), anything)).encode()


def put(value: Any, way: tuple[Any, ...], other: Any) -> Any:
    """The JSON value with another at one place in it."""
    whole = copy.deepcopy(value)
    around, (*outer, last) = whole, way
    for step in outer:
        around = around[step]
    around[last] = other
    return whole


def is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("room", fuzz_targets.TARGETS)
def test_random_inputs_are_accepted_or_refused(room: str) -> None:
    """No input makes a target crash; each result is valid as `support.fuzz_targets` says."""

    @settings(
        deadline=None,
        suppress_health_check=[*HealthCheck],
        max_examples=2_000 if DEEP_PROFILE else 30,
    )
    @given(damaged(room) | replaced(room) | st.binary(max_size=60))
    def fed(data: bytes) -> None:
        fuzz_targets.run_target(room, data)

    fed()


@pytest.mark.parametrize("room", ["keys", "lock", "pointer", "chunks"])
def test_odd_values_in_any_place_are_no_crash(room: str) -> None:
    """Each in each place of each example of small targets."""
    for data in fuzz_targets.load_examples(room):
        value = json.loads(data)
        for way in ways(value):
            for odd in ODD:
                fuzz_targets.run_target(room, json.dumps(put(value, way, odd)).encode())


@pytest.mark.parametrize(("room", "file"), FOUND)
def test_corpus_is_accepted_or_refused(room: str, file: Path) -> None:
    """And in three times the allowed time, because machines are shared."""
    assert fuzz_targets.run_target(room, file.read_bytes()) < 3 * fuzz_targets.SECONDS


@pytest.mark.parametrize("room", fuzz_targets.TARGETS)
def test_examples_are_accepted(room: str) -> None:
    """At least one per target, so that mutations get past the first check."""
    assert any(is_accepted(room, data) for data in fuzz_targets.load_examples(room))


def is_accepted(room: str, data: bytes) -> bool:
    try:
        fuzz_targets.TARGETS[room](data)
    except ToolcatalogError:
        return False
    return True


def test_missing_fuzzer_is_reported() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
    }
    command = [sys.executable, str(ROOT / "tests" / "support" / "fuzzer.py"), "cursor", "1"]
    result = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "atheris is not installed" in result.stderr
