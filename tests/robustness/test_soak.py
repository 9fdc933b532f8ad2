"""Slow, half-open, hostile and idle clients do not disturb others (`tests/support/soak.py`)."""

import os
import sys
from pathlib import Path

import pytest

from support.soak import Plan, SoakResult, run_soak

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(),
    reason="memory and descriptors are read as Linux tells them",
)


def look(seen: SoakResult, log: str) -> None:
    """Ordinary clients saw nothing of the others, and nothing is left of any."""
    output = seen.summary()
    print(output, file=sys.stderr)
    assert sum(seen.failures.values()) == 0, output
    assert not [status for status in seen.statuses if status >= 500], output
    assert "pipelining: wrong" not in seen.connection_ends, output
    assert seen.connection_ends["pipelining: right"] > 0, output
    assert seen.descriptor_counts[2] <= seen.descriptor_counts[0], output
    assert seen.exit_code == 0, output
    assert "Traceback" not in log
    assert " ERROR " not in log


def test_clients_do_not_affect_each_other(shipped_build: Path, tmp_path: Path) -> None:
    """Ten seconds with some hundred slow, idle or hostile clients."""
    look(*run_soak(shipped_build, tmp_path, Plan(seconds=10)))


@pytest.mark.deep
def test_memory_does_not_grow(shipped_build: Path, tmp_path: Path) -> None:
    """For MINUTES (default: 10), with thousands of clients and more than 100,000 requests."""
    minutes = float(os.environ.get("MINUTES", "10"))
    seen, log = run_soak(shipped_build, tmp_path, Plan(seconds=60 * minutes, idle=4000, slow=100))
    look(seen, log)
    first, last = seen.memory_thirds
    assert last < 1.1 * first + 5, seen.summary()
    assert len(seen.seconds) > 10_000 * minutes, seen.summary()
