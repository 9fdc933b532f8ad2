"""Starter catalog: the files with which `toolcatalog init` fills a folder."""

from importlib import resources

from toolcatalog.scaffold import templates

_EXAMPLE = "toolkits/example"
_FILES = {  # paths in the folder: files next to this one
    "README.md": "README.md",
    ".gitignore": "gitignore",
    ".github/workflows/catalog.yaml": "workflow.yaml",
}


def render_files(title: str, version: str) -> dict[str, bytes]:
    """Return the files of a new catalog with one toolkit and one tool, by path.

    `title` is that of the catalog, and `version` that of the tool, such as 20251027_00.
    """
    catalog = {
        "catalog.yaml": templates.render_file("catalog.yaml", {"title": title}),
        f"{_EXAMPLE}/toolkit.yaml": _read("example/toolkit.yaml"),
        f"{_EXAMPLE}/EXAMPLE_CONVERT_TIME/{version}.yaml": _read("example/tool.yaml"),
    }
    with_comments = {
        path: templates.render_schema_comments(path, "").encode() + data
        for path, data in catalog.items()
    }
    files = {path: _read(name) for path, name in _FILES.items()}
    files["README.md"] = files["README.md"].replace(b"{title}", title.encode())
    return files | {
        f"catalog/{path}": data
        for path, data in (templates.render_schemas() | with_comments).items()
    }


def _read(name: str) -> bytes:
    return resources.files(__name__).joinpath(*name.split("/")).read_bytes()
