"""Tests of `versions`: their form and order, and the newest at a point in time."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.versions import is_version, newest_at, next_version

versions = st.tuples(st.integers(0, 99999999), st.integers(0, 99)).map(
    lambda parts: f"{parts[0]:08}_{parts[1]:02}"
)


@pytest.mark.parametrize("text", ["20251027_00", "00000000_00", "99999999_99", "20250230_01"])
def test_valid_versions(text: str) -> None:
    """Eight digits, an underscore, two digits; the date need not exist."""
    assert is_version(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "latest",
        "20251027",
        "20251027_0",
        "20251027_000",
        "2025-10-27_00",
        "20251027-00",
        " 20251027_00",
        "20251027_00\n",
        "\u0662\u0660251027_00",
    ],
)
def test_invalid_versions(text: str) -> None:
    """Only ASCII digits, and nothing else."""
    assert not is_version(text)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("20241231_99", None),
        ("20250101_00", "20250101_00"),
        ("20250101_01", "20250101_00"),
        ("20250301_00", "20250301_00"),
        ("99999999_99", "20250301_02"),
    ],
)
def test_newest_at(at: str, expected: str | None) -> None:
    """The newest version not newer than the given one, or none."""
    assert newest_at(["20250101_00", "20250301_00", "20250301_02"], at) == expected


@given(st.lists(versions, unique=True).map(sorted), versions)
def test_newest_at_is_the_maximum(known: list[str], at: str) -> None:
    """For any versions: the greatest of those not newer."""

    def parts(version: str) -> tuple[int, int]:
        return int(version[:8]), int(version[9:])

    previous = [version for version in known if parts(version) <= parts(at)]
    assert newest_at(known, at) == (max(previous, key=parts) if previous else None)


@pytest.mark.parametrize(
    ("newest", "version"),
    [
        (None, "20251027_00"),
        ("20250101_07", "20251027_00"),
        ("20251027_00", "20251027_01"),
        ("20251027_99", "20251028_00"),
        ("20251231_99", "20251232_00"),
        ("20990101_05", "20990101_06"),
        ("99999999_98", "99999999_99"),
        ("99999999_99", None),
    ],
)
def test_version_of_today(newest: str | None, version: str | None) -> None:
    """The first of today, or the next after the newest."""
    assert next_version(newest, "20251027") == version


@given(versions, st.dates())
def test_next_version_is_newer(newest: str, day: date) -> None:
    """Always valid, as long as there is one."""
    result = next_version(newest, f"{day:%Y%m%d}".rjust(8, "0"))
    assert (result is None and newest == "99999999_99") or (
        result is not None and is_version(result) and result > newest
    )
