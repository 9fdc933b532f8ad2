"""A table of text, for a terminal or for Markdown, and the format of its figures. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

TARGET_SIZE = 20_000  # tools or files; most targets are for this size
NONE = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, the names of the columns, and rows of text; the first column has words."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Render the table for a document."""
        rule = ["---", *["---:"] * (len(self.header) - 1)]
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.header, rule, *self.rows))

    def terminal(self) -> str:
        """Render the table for a terminal, with its heading."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [
            "  ".join(
                f"{cell:{'>' if column else '<'}{widths[column]}}"
                for column, cell in enumerate(row)
            ).rstrip()
            for row in (self.header, *self.rows)
        ]
        return "\n".join([self.title, *lines])


def format_number(value: float) -> str:
    """Format a figure with two or three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_target(is_met: bool, target: str, size: int, target_size: int = TARGET_SIZE) -> str:
    """Format a target and whether it is met; sizes other than `target_size` have no target."""
    return f"{target} {'met' if is_met else 'MISSED'}" if size == target_size else NONE
