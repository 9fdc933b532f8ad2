"""Generated catalogs of any size: many small, different, valid tools."""

from pathlib import Path

TOOL = """\
name: Do {number}
description: Do thing number {number} of {toolkit}.
tags: [tag{tag}]
scopes: ["{toolkit}:{tag}"]
input_parameters:
  of: {{type: string, description: What to do it with., required: true}}
"""


def generate_catalog(root: Path, tools: int, toolkits: int = 3) -> Path:
    """Generate a catalog with these numbers of tools and toolkits."""
    root.mkdir(parents=True)
    (root / "catalog.yaml").write_text("title: Generated\n")
    for number in range(toolkits):
        add_toolkit(root, f"kit{number}")
    for number in range(tools):
        add_tool(root, f"kit{number % toolkits}", f"KIT{number % toolkits}_DO_{number}", number)
    return root


def add_toolkit(root: Path, slug: str) -> None:
    folder = root / "toolkits" / slug
    folder.mkdir(parents=True)
    (folder / "toolkit.yaml").write_text(
        f"name: {slug.title()}\nlogo: https://{slug}.example/logo.svg\n"
    )


def add_tool(
    root: Path, toolkit: str, slug: str, number: int = 0, version: str = "20250101_00"
) -> None:
    folder = root / "toolkits" / toolkit / slug
    folder.mkdir(exist_ok=True)
    (folder / f"{version}.yaml").write_text(
        TOOL.format(number=number, toolkit=toolkit, tag=number % 7)
    )


def add_auth_config(root: Path, id: str, toolkit: str) -> None:
    (root / "auth_configs").mkdir(exist_ok=True)
    (root / "auth_configs" / f"{id}.yaml").write_text(f"toolkit: {toolkit}\n")
