"""Random edits of a catalog that keep it valid, except for those that break it on purpose."""

import os
import random
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

from support.catalogs import add_tool, add_toolkit
from support.paths import DATA

BASE = DATA / "golden" / "sessions" / "catalog"
TOOLKITS = ("eins", "zwei", "drei")
VERSIONS = ("20240101_00", "20250101_00", "20250601_00", "20250601_01", "20260101_00")


def tool_slugs(toolkit: str) -> list[str]:
    """Names for the tools of a toolkit; every third begins a batch, so that a small catalog has
    many.
    """
    results = [f"{toolkit.upper()}_{number}" for number in range(800)]
    firsts = [slug for slug in results if zlib.crc32(slug.encode()) % 128 == 0]
    return [*firsts[:5], *[slug for slug in results if slug not in firsts][:10]]


class CatalogEditor:
    """Edits a catalog in a new folder. All edits except `damage` keep it valid."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)  # noqa: S311 - nothing secret
        self.count = 0
        shutil.copytree(BASE, root)
        for toolkit in TOOLKITS:
            add_toolkit(root, toolkit)
            for slug in tool_slugs(toolkit)[::2]:
                add_tool(root, toolkit, slug, self.next_number())
        self.edits: list[Callable[[], None]] = [
            self.add_tool,
            self.add_tool,
            self.change_file,
            self.change_file,
            self.delete_file,
            self.empty_folder,
            self.rename_tool,
            self.add_version,
            self.add_version,
            self.delete_version,
            self.deprecate,
            self.change_toolkit,
            self.change_title,
            self.add_session,
            self.remove_session,
            self.add_config,
            self.remove_config,
            self.remove_toolkit,
            self.add_toolkit,
            self.touch,
            self.rewrite_unchanged,
            self.replace_keeping_times,
            self.swap_files,
            self.link_file,
            self.toggle_stray_file,
        ]

    def edit_randomly(self) -> str:
        """Make one edit: its name."""
        selected = self.random.choice(self.edits)
        selected()
        return selected.__name__

    def next_number(self) -> int:
        self.count += 1
        return self.count

    # What there is

    def toolkits(self) -> list[str]:
        return [toolkit for toolkit in TOOLKITS if (self.root / "toolkits" / toolkit).is_dir()]

    def tools(self) -> list[Path]:
        """The folders of the tools that may be edited."""
        return sorted({file.parent for file in self.files()})

    def files(self) -> list[Path]:
        return sorted(
            file
            for toolkit in self.toolkits()
            for file in (self.root / "toolkits" / toolkit).glob("*/*.yaml")
        )

    def pick_file(self) -> Path | None:
        return self.random.choice(files) if (files := self.files()) else None

    def pick_tool(self) -> Path | None:
        return self.random.choice(tools) if (tools := self.tools()) else None

    # Edits

    def add_tool(self) -> None:
        for toolkit in self.random.sample(self.toolkits(), len(self.toolkits())):
            free = [
                slug
                for slug in tool_slugs(toolkit)
                if not (self.root / "toolkits" / toolkit / slug).exists()
            ]
            if free:
                add_tool(
                    self.root,
                    toolkit,
                    self.random.choice(free),
                    self.next_number(),
                    self.random.choice(VERSIONS),
                )
                return

    def change_file(self) -> None:
        if file := self.pick_file():
            tags = [f"tag{self.random.randrange(9)}", "important"]
            self.random.shuffle(tags)
            self.write(
                file,
                f"name: Changed\ndescription: Change {self.next_number()}.\ntags:"
                f" [{', '.join(tags)}]\n",
            )

    def delete_file(self) -> None:
        if tool := self.pick_tool():
            shutil.rmtree(tool)

    def empty_folder(self) -> None:
        """Delete the files of a tool and leave its folder, as git and people do."""
        if tool := self.pick_tool():
            for file in tool.iterdir():
                file.unlink()
            if self.random.random() < 0.5:
                (tool / "README.md").write_text("Gone.")

    def rename_tool(self) -> None:
        if tool := self.pick_tool():
            free = [
                slug for slug in tool_slugs(tool.parent.name) if not (tool.parent / slug).exists()
            ]
            if free:
                tool.rename(tool.with_name(self.random.choice(free)))

    def add_version(self) -> None:
        if tool := self.pick_tool():
            self.write(
                tool / f"{self.random.choice(VERSIONS)}.yaml",
                f"name: Version\ndescription: Version {self.next_number()}.\n",
            )

    def delete_version(self) -> None:
        if (tool := self.pick_tool()) and len([*tool.glob("*.yaml")]) > 1:
            self.random.choice(sorted(tool.glob("*.yaml"))).unlink()

    def deprecate(self) -> None:
        if file := self.pick_file():
            reason = (
                f"deprecation: {{reason: Reason {self.next_number()}., replaced_by: ALPHA_READ}}"
            )
            self.write(file, f"name: Old\ndescription: An old one.\n{reason}\n")

    def change_toolkit(self) -> None:
        if toolkits := self.toolkits():
            toolkit = self.random.choice(toolkits)
            text = (
                f"name: Kit {self.next_number()}\nlogo:"
                f" https://{toolkit}.example/logo.svg\nno_auth:"
                f" {self.random.choice(['true', 'false'])}\n"
            )
            self.write(self.root / "toolkits" / toolkit / "toolkit.yaml", text)

    def change_title(self) -> None:
        self.write(self.root / "catalog.yaml", f"title: Title {self.next_number()}\n")

    def add_session(self) -> None:
        toolkits = self.random.choice(
            ["", "toolkits: {enable: [alpha, beta]}\n", "toolkits: {disable: [alpha]}\n"]
        )
        self.write(
            self.root / "sessions" / f"trs_{self.random.randrange(4)}.yaml",
            f"project: p{self.next_number()}\n{toolkits}",
        )

    def remove_session(self) -> None:
        for file in sorted((self.root / "sessions").glob("trs_?.yaml"))[:1]:
            file.unlink()

    def add_config(self) -> None:
        if toolkits := self.toolkits():
            toolkit = self.random.choice(toolkits)
            self.write(
                self.root / "auth_configs" / f"ac_{toolkit}.yaml",
                f'toolkit: {toolkit}\nscopes: ["{toolkit}:{self.random.randrange(7)}"]\n',
            )

    def remove_config(self) -> None:
        for file in sorted((self.root / "auth_configs").glob("ac_*ei*.yaml"))[:1]:
            file.unlink()

    def remove_toolkit(self) -> None:
        if len(toolkits := self.toolkits()) > 1:
            toolkit = self.random.choice(toolkits)
            shutil.rmtree(self.root / "toolkits" / toolkit)
            (self.root / "auth_configs" / f"ac_{toolkit}.yaml").unlink(missing_ok=True)

    def add_toolkit(self) -> None:
        for toolkit in TOOLKITS:
            if toolkit not in self.toolkits():
                add_toolkit(self.root, toolkit)
                for slug in tool_slugs(toolkit)[:6]:
                    add_tool(self.root, toolkit, slug, self.next_number())

    def touch(self) -> None:
        if file := self.pick_file():
            os.utime(file, (self.next_number(), self.next_number()))

    def rewrite_unchanged(self) -> None:
        if file := self.pick_file():
            self.write(file, file.read_text())

    def replace_keeping_times(self) -> None:
        """Put another file of the same size and times in the place of one."""
        if file := self.pick_file():
            text, previous, other = file.read_text(), file.stat(), file.with_name(".other")
            index = text.index("description: ") + len("description: ")
            other.write_text(f"{text[:index]}{'AB'[self.next_number() % 2]}{text[index + 1 :]}")
            os.utime(other, ns=(previous.st_atime_ns, previous.st_mtime_ns))
            other.replace(file)

    def swap_files(self) -> None:
        """Exchange two files."""
        item, two = self.pick_file(), self.pick_file()
        if item and two and item != two:
            aside = item.rename(self.root / ".aside")
            two.rename(item)
            aside.rename(two)

    def link_file(self) -> None:
        """Put a link to another tool's file in the place of a file."""
        item, two = self.pick_file(), self.root / "toolkits/alpha/ALPHA_READ/20250101_00.yaml"
        if item:
            item.unlink()
            item.symlink_to(os.path.relpath(two, item.parent))

    def toggle_stray_file(self) -> None:
        """Add or remove a file next to a tool that is no data."""
        if tool := self.pick_tool():
            (tool / "README.md").write_text("A note.")

    def write(self, file: Path, text: str) -> None:
        """Write a file, atomically like some editors, or in place."""
        if self.random.random() < 0.5 and not file.is_symlink():
            file.write_text(text)
        else:
            beside = file.with_name(f".{file.name}~")
            beside.write_text(text)
            beside.replace(file)

    # What is wrong

    def break_something(self) -> Callable[[], None]:
        """Break something, in the file or between files: how it is fixed."""
        tool = self.random.choice(self.tools())
        file, toolkit = min(tool.glob("*.yaml")), tool.parent / "toolkit.yaml"
        ways: list[Callable[[], Callable[[], None]]] = [
            lambda: self.break_file(file, "name: [\n"),
            lambda: self.break_file(file, "name: A\ndescription: B\ncolour: red\n"),
            lambda: self.break_file(
                file, "name: A\ndescription: B\ndeprecation: {replaced_by: NOWHERE}\n"
            ),
            lambda: self.break_file(toolkit, "nome: K\n"),
            lambda: self.break_file(self.root / "catalog.yaml", "titel: T\n"),
            lambda: self.remove_file(self.root / "catalog.yaml"),
            lambda: self.remove_file(toolkit),
            lambda: self.add_file(self.root / "toolkits/alpha/stray.txt"),
            lambda: self.add_file(tool / "stray.yml"),
            lambda: self.add_file(tool / "2025.yaml"),
            lambda: self.add_file(Path(os.fsdecode(os.fsencode(tool) + b"/\xff.yaml"))),
            lambda: self.add_file(
                Path(os.fsdecode(os.fsencode(self.root) + b"/sessions/trs_\xff.yaml"))
            ),
            lambda: self.add_file(self.root / "auth_configs/ac_nowhere.yaml", "toolkit: nowhere\n"),
            lambda: self.add_file(
                self.root / "sessions/trs_bad.yaml", "tools: {alpha: {enable: [NOWHERE]}}\n"
            ),
            lambda: self.duplicate_tool(tool),
            lambda: self.link_outside(file),
        ]
        return self.random.choice(ways)()

    def break_file(self, file: Path, text: str) -> Callable[[], None]:
        aside = file.rename(self.root / ".aside")
        file.write_text(text)
        return lambda: restore_file(aside, file)

    def remove_file(self, file: Path) -> Callable[[], None]:
        aside = file.rename(self.root / ".aside")
        return lambda: restore_file(aside, file)

    def add_file(self, file: Path, text: str = "a: b\n") -> Callable[[], None]:
        file.write_text(text)
        return file.unlink

    def duplicate_tool(self, tool: Path) -> Callable[[], None]:
        """A tool in two toolkits."""
        copy = Path(shutil.copytree(tool, self.root / "toolkits" / "alpha" / tool.name))
        return lambda: shutil.rmtree(copy)

    def link_outside(self, file: Path) -> Callable[[], None]:
        """A link to something outside of the catalog."""
        aside = file.rename(self.root / ".aside")
        file.symlink_to(self.root.parent)
        return lambda: restore_file(aside, file)


def restore_file(aside: Path, file: Path) -> None:
    aside.replace(file)
