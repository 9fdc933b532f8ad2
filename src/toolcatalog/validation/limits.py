"""Catalog limits: the most versions, sessions and auth configs, and the largest sessions.

The limits of a single file are in `catalog.schema`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, groupby
from operator import attrgetter

from toolcatalog import encoding
from toolcatalog.catalog import resolve, sessions
from toolcatalog.catalog.model import Catalog, MetaTool, ToolSummary
from toolcatalog.errors import Finding, Pointer
from toolcatalog.snapshot import format as snapshot_format

MAX_VERSIONS = 500  # of a tool
# each session, and each auth config, is compared with all tools
_MAX_SESSIONS, _MAX_AUTH_CONFIGS = 5_000, 5_000
_MAX_TOOLKIT_VERSIONS = 15_000  # different versions of the tools of a toolkit
# bytes of the meta tools of all sessions, and of each
_MAX_SESSIONS_SIZE, _MAX_SESSION_SIZE = 512 << 20, 64 << 20
_MAX_LINKS_SIZE = 2_000  # characters of all links at the end of each page


def check_links(catalog: Catalog) -> Iterator[Finding]:
    """The links at the end of each page are short, since a site has very many pages."""
    size = sum(len(text) + len(address) for text, address in catalog.about.links.items())
    if size > _MAX_LINKS_SIZE:
        yield _too_many(
            "catalog.yaml",
            f"the links have {size:,} characters",
            f"at most {_MAX_LINKS_SIZE:,} in texts and addresses",
            "shorten the links, or remove some",
            pointer=("links",),
        )


def check_version_counts(catalog: Catalog) -> Iterator[Finding]:
    """A tool has at most 500 versions, because each of them lists all."""
    tools = chain[ToolSummary | MetaTool](catalog.tools, catalog.meta_tools)
    for slug, group in groupby(tools, attrgetter("slug")):
        versions = [*group]
        if len(versions) > MAX_VERSIONS:
            yield _too_many(
                versions[-1].path,
                f"`{slug}` has {len(versions):,} versions",
                f"at most {MAX_VERSIONS} versions of a tool",
                "remove old versions that are no longer in use",
            )


def check_toolkit_versions(catalog: Catalog) -> Iterator[Finding]:
    """The tools of a toolkit have at most 15,000 different versions: servers read all of them."""
    for toolkit, versions in versions_by_toolkit(catalog).items():
        if len(versions) > _MAX_TOOLKIT_VERSIONS:
            yield _too_many(
                f"toolkits/{toolkit}/toolkit.yaml",
                f"the tools of `{toolkit}` have {len(versions):,} different versions",
                f"at most {_MAX_TOOLKIT_VERSIONS:,} different versions in a toolkit",
                "remove old versions that are no longer in use, or split the toolkit",
            )


def check_record_counts(catalog: Catalog) -> Iterator[Finding]:
    """A catalog has at most 5,000 sessions, and at most 5,000 auth configs."""
    for noun, records, most in (
        ("session", catalog.sessions, _MAX_SESSIONS),
        ("auth config", catalog.auth_configs, _MAX_AUTH_CONFIGS),
    ):
        if len(records) > most:
            yield _too_many(
                records[most].path,
                f"this is one of {len(records):,} {noun}s",
                f"at most {most:,} {noun}s",
                f"remove {noun}s that are no longer in use",
            )


def check_session_contents(catalog: Catalog) -> Iterator[Finding]:
    """A session has at least one tool; with none, its meta tools would offer an empty choice.

    All sessions together have at most 512 MiB of meta tools, and each at most 64 MiB.
    """
    if any(check_record_counts(catalog)):
        return
    sizes = {tool.slug: _measure_meta_tool(catalog, tool) for tool in catalog.meta_tools}
    total = 0
    for session in catalog.sessions:
        tools = sessions.select_tools(catalog, session)
        if not tools:
            help = "enable a toolkit, tool or tag that has tools"
            yield Finding(
                path=session.path,
                rule="session-empty",
                message="no tool is left in this session",
                help=help,
            )
        if not {*(session.meta_tools or ())} <= sizes.keys():  # reported elsewhere
            continue
        values = sessions.placeholder_values(catalog, session, tools)
        value_sizes = {name: len(encoding.dump_json(value)) for name, value in values.items()}
        session_size = value_sizes["toolkits"]  # are part of the session too
        for meta_tool in sessions.select_meta_tools(catalog, session):
            size, placeholders = sizes[meta_tool.slug]
            session_size += size
            session_size += sum(count * value_sizes[name] for name, count in placeholders.items())
        total += session_size
        if session_size > _MAX_SESSION_SIZE:
            yield _too_many(
                session.path,
                f"the session has {session_size >> 20:,} MiB of meta tools",
                f"at most {_MAX_SESSION_SIZE >> 20} MiB",
                "shorten the meta tools",
            )
        if total > _MAX_SESSIONS_SIZE:
            yield _too_many(
                session.path,
                f"the sessions up to this one have {total >> 20:,} MiB of meta tools",
                f"at most {_MAX_SESSIONS_SIZE >> 20} MiB in all sessions",
                "shorten the meta tools, or remove sessions",
            )
            return


def _measure_meta_tool(catalog: Catalog, tool: MetaTool) -> tuple[int, Counter[str]]:
    """Return the bytes of a meta tool as served with short values, and its placeholders."""
    placeholders = Counter(sessions.iter_placeholders(tool.template))
    if catalog.router is None:
        return 0, placeholders
    served = resolve.resolve_meta_tool(tool, sessions.SAMPLE_VALUES, catalog.router, [])
    document = snapshot_format.tool_to_document(served, catalog.router.name, catalog.router.logo)
    return len(encoding.dump_json(document)), placeholders


def versions_by_toolkit(catalog: Catalog) -> dict[str, set[str]]:
    """Return the different versions of the tools of each toolkit."""
    versions: dict[str, set[str]] = {toolkit: set() for toolkit in catalog.toolkits}
    for tool in catalog.tools:
        versions.setdefault(tool.toolkit, set()).add(tool.version)
    return versions


def _too_many(path: str, message: str, expected: str, help: str, pointer: Pointer = ()) -> Finding:
    return Finding(
        path=path,
        pointer=pointer,
        rule="too-many",
        message=message,
        expected=expected,
        help=help,
    )


RULES: tuple[Callable[[Catalog], Iterator[Finding]], ...] = (
    check_version_counts,
    check_toolkit_versions,
    check_record_counts,
    check_session_contents,
)
