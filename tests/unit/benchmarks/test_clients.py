"""Listings of real clients: medians of their figures, and faults if lists differ."""

from benchmarks.clients import ListRun, summarize


def listing(seconds: float, digest: str = "d", tools: int = 40) -> ListRun:
    """A listing that took so long."""
    return ListRun("client 1", tools, seconds, digest, cpu=seconds / 2)


def test_results_are_medians() -> None:
    """Three rounds of one server, one of the other."""
    summary = summarize({"ours": [listing(3), listing(1), listing(2)], "fastapi": [listing(8)]})
    assert summary == {
        "client": "client 1",
        "tools": 40,
        "faults": 0,
        "servers": {"ours": {"seconds": 2, "cpu": 1}, "fastapi": {"seconds": 8, "cpu": 4}},
    }


def test_different_lists_are_errors() -> None:
    """Other slugs, or fewer."""
    runs = {"ours": [listing(1), listing(1, digest="e")], "fastapi": [listing(1, tools=39)]}
    assert summarize(runs)["faults"] == 2
