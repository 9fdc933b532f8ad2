"""Texts that try to break out of Markdown."""

from hypothesis import strategies as st

PIECES = [
    "word", " ", "\n", "\r", "\n\n", "  ", "\t", "# ", "## Inputs", "- ", "1. ", "> ", "```", "````text", "~~~", "---", "___", "===", "`", "``", "*", "_", "[x](y)",
    "[x]: y", "<b>", "</li>", "<!--", "<https://a.example>", "\\", "&lt;", "#", "|", ":", "\u202e", "\U000e0041", "\x0b", "\u2028", "{", '"', "é",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)
