"""The module `benchmarks.search`: the table of speed."""

from benchmarks.search import SENTENCE, SHORT, speed_table
from benchmarks.table import NONE


def test_the_table_of_speed_compares_medians_with_targets() -> None:
    """Each size has a column of times and one of targets; other queries have no target."""
    table = speed_table(
        {
            20_000: {SENTENCE: (0.34, 0.9), SHORT: (0.13, 0.2), "other": (1.0, 2.0)},
            1_000_000: {SENTENCE: (5.1, 9.0), SHORT: (1.5, 2.0), "other": (1.0, 2.0)},
        }
    )
    assert table.splitlines()[-5:] == [
        "| query | 20,000 tools | target | 1,000,000 tools | target |",
        "|---|---|---|---|---|",
        f"| {SENTENCE} | 0.34 / 0.90 | ≤ 0.35 met | 5.10 / 9.00 | ≤ 5 MISSED |",
        f"| {SHORT} | 0.13 / 0.20 | ≤ 0.12 MISSED | 1.50 / 2.00 | ≤ 1.5 met |",
        f"| other | 1.00 / 2.00 | {NONE} | 1.00 / 2.00 | {NONE} |",
    ]
