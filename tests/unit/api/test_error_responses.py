"""Tests of `api.error_responses`: error bodies stay small."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.api.error_responses import ErrorDetail, invalid_request, render_envelope

MOST = 16 * 1000  # bytes


def error(*refusals: ErrorDetail) -> dict[str, Any]:
    """The fields of the envelope of these."""
    body = render_envelope(refusals, "r" * 128)
    assert len(body) < MOST
    fields: dict[str, Any] = json.loads(body)["error"]
    return fields


def test_a_few_problems_are_all_reported() -> None:
    """Each has its line, and each fix is there once."""
    found = error(
        invalid_request("a: wrong.", "Fix a."),
        invalid_request("b: wrong.", "Fix b."),
        invalid_request("c.", "Fix a."),
    )
    assert found["errors"] == ["a: wrong.", "b: wrong.", "c."]
    assert found["suggested_fix"] == "Fix a. Fix b."


def test_of_a_thousand_problems_the_first_are_reported() -> None:
    """The last line says how many more there are; the message counts all."""
    found = error(*(invalid_request(f"tags: {n} is wrong.", f"Fix {n}.") for n in range(1000)))
    assert found["errors"][:2] == ["tags: 0 is wrong.", "tags: 1 is wrong."]
    assert len(found["errors"]) == 21
    assert found["errors"][-1] == "980 more problems are not listed."
    assert found["message"] == "The request is not valid. 1000 problems, see errors."


@pytest.mark.parametrize("letter", ["a", "\0", "\u65e5", "\U0001f600", '"'])
@pytest.mark.parametrize("problems", [1, 19, 2000])
def test_no_text_makes_a_large_body(letter: str, problems: int) -> None:
    """Lines and fixes are cut, by the bytes that they take in JSON."""
    text = letter * 60_000
    found = error(*(invalid_request(f"{n} {text}", f"{n} {text}") for n in range(problems)))
    assert found["errors"][0].endswith("...")
    assert found["suggested_fix"].endswith("...")


@given(
    st.lists(st.builds(invalid_request, st.text(max_size=500), st.text(max_size=2000)), min_size=1)
)
def test_no_body_is_large(refusals: list[ErrorDetail]) -> None:
    """Whatever the problems: less than 16 KB, and what is short enough is whole."""
    found = error(*refusals)
    for line, refusal in zip(found["errors"][:20], refusals, strict=False):
        assert line == refusal.message or (
            line.endswith("...") and refusal.message.startswith(line[:-3])
        )
        if len(refusal.message) <= 60:
            assert line == refusal.message
