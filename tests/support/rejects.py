"""The cases of tests/data/rejects, and their rules."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from support.paths import DATA
from toolcatalog.errors import MAX_FINDINGS_PER_FILE

CASES = DATA / "rejects"
BASE = CASES / "_base" / "catalog"
HEAD = "name: Send\ndescription: Send a message.\n"
TOOL = "toolkits/mail/MAIL_SEND/20250202_00.yaml"
TOOLKIT = "toolkits/mail/toolkit.yaml"


def expectation(case: Path) -> tuple[list[str], list[str], list[str]]:
    """The problems of a case, what their texts contain, and which files of the base it does
    without.
    """
    lines = (case / "expected.txt").read_text().splitlines()
    contains, without = (
        [line.removeprefix(mark) for line in lines if line.startswith(mark)]
        for mark in ("# contains: ", "# without: ")
    )
    return [line for line in lines if not line.startswith("#")], contains, without


ALL = [file.parent for file in sorted(CASES.glob("*/*/expected.txt"))]


def text_of(path: str, text: str) -> Callable[[Path], None]:
    """Write these characters, just as they are."""
    return bytes_of(path, text.encode())


def bytes_of(path: str, data: bytes) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)

    return make


def link(path: str, target: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / path).unlink(missing_ok=True)
        (root / path).symlink_to(target)

    return make


def pipe(root: Path) -> None:
    os.mkfifo(root / TOOL)


def socket(root: Path) -> None:
    try:
        os.mknod(root / TOOL, stat.S_IFSOCK | 0o600)
    except OSError:
        pytest.skip("this system does not let us make a socket")


def closed(root: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is unreadable for root")
    (root / TOOL).write_text(HEAD)
    (root / TOOL).chmod(0)


def undecodable_name(root: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/\xff.txt")).touch()
    except OSError:
        pytest.skip("this file system takes only names that are UTF-8")


NESTED_33 = f"{HEAD}input_parameters: {{a: {{type: array, default: {'[' * 30}{']' * 30}}}}}\n"
UNKNOWN_KEYS = HEAD + "".join(f"key{number}: 1\n" for number in range(MAX_FINDINGS_PER_FILE + 1))
MADE = {
    "byte-order-mark-within": (
        text_of(TOOL, "name: Se\ufeffnd\ndescription: Send a message.\n"),
        [f"catalog/{TOOL}:1:9 yaml-byte-order-mark"],
        "U+FEFF",
    ),
    "not-utf-8": (
        bytes_of(TOOL, b"name: Send\ndescription: caf\xe9\n"),
        [f"catalog/{TOOL}:2:17 yaml-encoding"],
        "byte 0xe9 is not UTF-8",
    ),
    "utf-16": (
        bytes_of(TOOL, HEAD.encode("utf-16")),
        [f"catalog/{TOOL}:1:1 yaml-encoding"],
        "save the file as UTF-8",
    ),
    "null-character": (
        text_of(TOOL, "name: S\0end\ndescription: \x1b[2J\n"),
        [f"catalog/{TOOL}:1:8 yaml-control-character"],
        "(and 1 more",
    ),
    "line-separator": (
        text_of(TOOL, f"{HEAD}# a\u2028b\n"),
        [f"catalog/{TOOL}:3:4 yaml-control-character"],
        "U+2028",
    ),
    "carriage-return-alone": (
        text_of(TOOL, "name: Send\rtags: []\r\n"),
        [f"catalog/{TOOL}:1:11 yaml-control-character"],
        "U+000D",
    ),
    "windows-line-ends": (
        text_of(TOOL, f"{HEAD}no_auth: yes\n".replace("\n", "\r\n")),
        [f"catalog/{TOOL}:3:10 wrong-type"],
        "`yes`",
    ),
    "byte-order-mark-before-an-error": (
        text_of(TOOL, f"\ufeffname: 5\n{HEAD[11:]}"),
        [f"catalog/{TOOL}:1:7 wrong-type"],
        "`5`",
    ),
    "tab-for-indentation": (
        text_of(TOOL, f"{HEAD}deprecation:\n\treason: Old.\n"),
        [f"catalog/{TOOL}:4:1 yaml-syntax"],
        "tab",
    ),
    "over-1-mib": (
        bytes_of(TOOL, b"#" * (1024 * 1024 + 1)),
        [f"catalog/{TOOL}:1:1 file-too-large"],
        "at most 1 MiB",
    ),
    "over-32-levels": (
        text_of(TOOL, NESTED_33),
        [f"catalog/{TOOL}:3:75 yaml-depth"],
        "nested more than 32 levels deep",
    ),
    "over-20000-values": (
        text_of(
            TOOL, f"{HEAD}input_parameters: {{a: {{type: array, default: [{'1, ' * 20_000}]}}}}\n"
        ),
        [f"catalog/{TOOL}:3:60026 yaml-values"],
        "more than 20,000 values in this file",
    ),
    "too-many-problems": (
        text_of(TOOL, UNKNOWN_KEYS),
        [
            *(
                f"catalog/{TOOL}:{line}:1 unknown-key"
                for line in range(3, MAX_FINDINGS_PER_FILE + 3)
            ),
            f"catalog/{TOOL}:{MAX_FINDINGS_PER_FILE + 3}:1 too-many",
        ],
        f"more problems in this file than these {MAX_FINDINGS_PER_FILE}",
    ),
    "tags-too-many": (
        text_of(TOOL, f"{HEAD}tags: [{', '.join(f't{number}' for number in range(101))}]\n"),
        [f"catalog/{TOOL}:3:7 wrong-value"],
        "found a list of 101 items\na list of at most 100 labels",
    ),
    "pattern-too-long": (
        text_of(
            TOOL,
            f"{HEAD}input_parameters: {{a: {{type: string, pattern: '{'(a|b?)*' * 150}', examples:"
            " [x]}}\n",
        ),
        [f"catalog/{TOOL}:3:47 wrong-value"],
        "of at most 1,000 characters",
    ),
    "link-that-leaves": (
        link(TOOL, "/dev/zero"),
        [f"catalog/{TOOL}:1:1 file-link"],
        "leaves the catalog",
    ),
    "link-to-a-folder-outside": (
        link("toolkits/other", "/tmp"),  # noqa: S108
        ["catalog/toolkits/other:1:1 file-link"],
        "leaves the catalog",
    ),
    "link-to-a-folder-inside": (
        link("toolkits/copy", "mail"),
        ["catalog/toolkits/copy:1:1 file-link"],
        "a link to a folder",
    ),
    "link-to-nothing": (link(TOOL, "gone.yaml"), [f"catalog/{TOOL}:1:1 file-link"], "to nothing"),
    "link-to-itself": (
        link(TOOL, Path(TOOL).name),
        [f"catalog/{TOOL}:1:1 file-link"],
        "to nothing",
    ),
    "toolkit-that-is-a-link-has-no-follow-ups": (
        link(TOOLKIT, "/dev/null"),
        [f"catalog/{TOOLKIT}:1:1 file-link"],
        "put the file itself here",
    ),
    "pipe": (pipe, [f"catalog/{TOOL}:1:1 file-unexpected"], "not a plain file"),
    "socket": (socket, [f"catalog/{TOOL}:1:1 file-unreadable"], "cannot be read: "),
    "closed": (closed, [f"catalog/{TOOL}:1:1 file-unreadable"], "permission denied"),
    "undecodable-name": (
        undecodable_name,
        [r"catalog/\udcff.txt:1:1 file-unexpected"],
        "no file is expected here",
    ),
    "name-with-a-line-break": (
        text_of("toolkits/mail/A\n\x1b/20250101_00.yaml", HEAD),
        [r"catalog/toolkits/mail/A\n\x1b/20250101_00.yaml:1:1 name-tool"],
        r"`A\n\x1b`",
    ),
    "name-too-long": (
        text_of(f"toolkits/mail/{'A' * 201}/20250101_00.yaml", HEAD),
        [f"catalog/toolkits/mail/{'A' * 201}/20250101_00.yaml:1:1 name-tool"],
        "at most 200",
    ),
    "escape-sequence-in-a-value": (
        text_of(TOOL, f'{HEAD}no_auth: "\\e[31m\\n::error::"\n'),
        [f"catalog/{TOOL}:3:10 wrong-type"],
        r"`\x1b[31m\n::error::`",
    ),
}


def list_rules() -> set[str]:
    """Return the rule ids of all cases."""
    displayed = {line.rpartition(" ")[2] for case in ALL for line in expectation(case)[0]}
    return displayed | {
        line.rpartition(" ")[2] for _, expected, _ in MADE.values() for line in expected
    }
