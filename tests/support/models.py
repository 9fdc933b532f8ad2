"""Small catalogs as records, for tests of packages that read no files."""

from typing import Any

from toolcatalog.catalog.model import (
    ROUTER,
    About,
    Catalog,
    MetaTool,
    Session,
    Toolkit,
    ToolVersion,
)


def make_tool(slug: str, version: str = "20250101_00", **fields: Any) -> ToolVersion:
    """Return a tool version; its toolkit is the slug up to the first `_`."""
    toolkit = fields.pop("toolkit", slug.partition("_")[0].lower())
    value = {"name": slug.title(), "description": "", **fields}
    return ToolVersion.from_value(
        value,
        path=f"toolkits/{toolkit}/{slug}/{version}.yaml",
        slug=slug,
        toolkit=toolkit,
        version=version,
    )


def make_meta_tool(
    slug: str, version: str = "20250101_00", *, when: str | None = None, **fields: Any
) -> MetaTool:
    template = {"name": slug.title(), "description": "", **fields}
    return MetaTool(
        path=f"meta_tools/{slug}/{version}.yaml",
        slug=slug,
        version=version,
        template=template,
        when=when,
    )


def make_session(id: str = "trs_one", **fields: Any) -> Session:
    empty: dict[str, Any] = {"tools": {}, "auth_configs": {}, "toolkit_versions": {}}
    return Session(path=f"sessions/{id}.yaml", id=id, **{**empty, **fields})


def make_catalog(*tools: ToolVersion, toolkits: tuple[Toolkit, ...] = (), **fields: Any) -> Catalog:
    """A catalog of these tools, sorted, with a toolkit for each that is not given."""
    value = {item.slug: item for item in toolkits}
    slugs = sorted({item.toolkit for item in tools} | {*value})
    return Catalog(
        about=About(title="Test"),
        toolkits={
            slug: value.get(
                slug, Toolkit(slug=slug, name=slug.title(), logo=f"https://{slug}.example/logo.png")
            )
            for slug in slugs
        },
        tools=sorted((item.summary for item in tools), key=lambda item: (item.slug, item.version)),
        router=Toolkit(slug=ROUTER, name="Router", logo="https://router.example/logo.png"),
        **fields,
    )
