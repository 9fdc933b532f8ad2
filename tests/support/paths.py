"""Paths that tests use: the project, the shipped catalog, the shared folder and the test data."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SHIPPED_CATALOG = ROOT / "catalog"
SHARED = ROOT.parent / "shared"
