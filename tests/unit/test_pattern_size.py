"""Pattern sizes: the states of repeats, groups and sets."""

import pytest

from toolcatalog import pattern_size


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("", 0),
        ("abc", 3),
        ("a{3}", 3),
        ("a{2,5}b", 6),
        ("a{7,}", 7),
        ("(ab{3}){2}", 8),
        ("(?:[ab]{200}){200}c", 40_403),
        (r"[a{9}]{2}\\{3}", 5),
        (r"\p{Lu}{4}", 4),
        ("(a|b)*c?", 3),
        ("((((a{10}){10}){10}){10}){10}", 100_000),
        ("a)b(", 3),
    ],
)
def test_states(pattern: str, states: int) -> None:
    result = pattern_size.count_states(pattern)
    assert result == pytest.approx(states, rel=0.02, abs=0)


def test_patterns_of_a_schema() -> None:
    """At any depth."""
    schema = {"pattern": "ab", "items": {"anyOf": [{"pattern": "a{10}"}, {"type": "string"}]}}
    assert pattern_size.count_schema_states(schema) == 12
