"""Cross-file checks: references between the files of a catalog.

`catalog.schema` checks the shape of each single file; the rules here check existence, uniqueness
and references. Each rule yields all of its findings.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, islice

from toolcatalog import names
from toolcatalog.catalog import sessions
from toolcatalog.catalog.model import (
    ROUTER,
    UNKNOWN_TOOLKIT,
    AuthConfig,
    Catalog,
    MetaTool,
    Session,
    Toolkit,
    ToolSummary,
)
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Pointer

# an https URL: the host and the rest; browsers treat `\` as `/`
_URL = re.compile(r"https://[^/?#\\@%]+(?P<rest>[/?#][^\\]*)?")
# a path that stays unambiguous if a path is appended to it, or if it is used without its host
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[^/?#]+)*/?")
_ENCODED = re.compile(r"%(2[ef]|5c)", re.IGNORECASE)  # encoded `.`, `/` or `\`
_MAX_LISTED_NAMES = 10  # names that a message lists

Rule = Callable[[Catalog], Iterator[Finding]]


def check_all(
    catalog: Catalog,
    invalid_paths: Collection[str],
    stub_paths: Collection[str] | None = None,
) -> list[Finding]:
    """Return all findings of all rules.

    `invalid_paths` are files that failed schema validation. The catalog contains their valid
    values, or for `stub_paths` (default: all of them) only stubs, so that references to them are not reported too. Stubs
    get no findings here, and rules that count tools run only if there are no invalid files.
    """
    found = [
        finding
        for rule in REFERENCE_RULES
        for finding in rule(catalog)
        if finding.path not in (invalid_paths if stub_paths is None else stub_paths)
    ]
    if invalid_paths:
        return found
    # a wrong name in a file is the likely cause of a wrong total
    told = {finding.path for finding in found}
    return found + [
        finding for rule in TOTAL_RULES for finding in rule(catalog) if finding.path not in told
    ]


def _unknown_reference(
    path: str,
    pointer: Pointer,
    what: str,
    name: str,
    candidates: Collection[str],
    at_key: bool = False,
    context: str = "",
) -> Finding:
    near = names.find_nearest(name, candidates)
    help = f"did you mean `{near[0]}`?" if near else f"add the {what}, or name one that is there"
    message = f"there is no {what} `{name}`{context}"
    expected = (
        f"one of the {len(candidates):,} that are there"
        if len(candidates) > _MAX_LISTED_NAMES
        else "one of " + (", ".join(sorted(candidates)) or "none yet")
    )
    return Finding(
        path=path,
        pointer=pointer,
        at_key=at_key,
        rule="reference",
        message=message,
        expected=expected,
        help=help,
    )


def check_toolkit_files(catalog: Catalog) -> Iterator[Finding]:
    """Each folder with tools has a toolkit.yaml."""
    for toolkit in sorted({tool.toolkit for tool in catalog.tools} - {*catalog.toolkits}):
        help = "write one with at least `name`"
        message = f"toolkit `{toolkit}` has tools and no toolkit.yaml"
        yield Finding(
            path=f"toolkits/{toolkit}/toolkit.yaml",
            rule="toolkit-missing",
            message=message,
            help=help,
        )
    if catalog.meta_tools and catalog.router is None:
        message = "the meta tools have no toolkit.yaml"
        yield Finding(
            path="meta_tools/toolkit.yaml",
            rule="toolkit-missing",
            message=message,
            help="write one with at least `name`",
        )


def check_unique_slugs(catalog: Catalog) -> Iterator[Finding]:
    """A slug belongs to one tool in the whole catalog, even if case is ignored."""
    first: dict[str, ToolSummary | MetaTool] = {}
    clashes: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for tool in chain[ToolSummary | MetaTool](catalog.tools, catalog.meta_tools):
        other = first.setdefault(tool.slug.casefold(), tool)
        if other is not tool and (
            other.slug != tool.slug or _toolkit_of(other) != _toolkit_of(tool)
        ):
            for one in (other, tool):
                clashes[tool.slug.casefold()].setdefault(one.path.rpartition("/")[0], one.path)
    for folders in clashes.values():
        chief, *others = sorted(folders)
        for name in others:
            message = f"`{name.rpartition('/')[2]}` is also the slug of {chief}"
            expected, help = "a slug that no other tool has", "rename one of the folders"
            yield Finding(
                path=folders[name], rule="slug-taken", message=message, expected=expected, help=help
            )


def _toolkit_of(tool: ToolSummary | MetaTool) -> str:
    return tool.toolkit if isinstance(tool, ToolSummary) else ROUTER


def ids_are_unique(catalog: Catalog) -> Iterator[Finding]:
    """The ids of sessions, and those of auth configs, differ in more than case."""
    kinds: tuple[tuple[str, Iterable[AuthConfig | Session]], ...] = (
        ("session", catalog.sessions),
        ("auth config", catalog.auth_configs),
    )
    for what, some in kinds:
        first: dict[str, AuthConfig | Session] = {}
        for one in sorted(some, key=lambda one: one.id):
            other = first.setdefault(one.id.casefold(), one)
            if other is not one:
                yield Finding(
                    path=one.path,
                    rule="slug-taken",
                    message=f"`{one.id}` differs only in case from the {what} `{other.id}`",
                    expected=f"an id that no other {what} has, also where case is ignored",
                    help="rename one of the files",
                )


def urls_lead_where_they_say(catalog: Catalog) -> Iterator[Finding]:
    """A URL shows its host openly, and a base URL ends in a plain path.

    This covers all URLs that become links or addresses of pages. Paths are appended to the base
    URLs `home` and `repository`.
    """
    about = catalog.about
    for key, url in (("home", about.home), ("repository", about.repository)):
        yield from _url("catalog.yaml", key, url, is_base=True)
    kits = [(f"toolkits/{kit.slug}/toolkit.yaml", kit) for kit in catalog.toolkits.values()]
    for path, kit in [*kits, *_router(catalog)]:
        for key, url in (("logo", kit.logo), ("homepage", kit.homepage)):
            yield from _url(path, key, url, is_base=False)


def _router(catalog: Catalog) -> list[tuple[str, Toolkit]]:
    return [("meta_tools/toolkit.yaml", catalog.router)] if catalog.router else []


def _url(path: str, key: str, url: str, *, is_base: bool) -> Iterator[Finding]:
    match = _URL.fullmatch(url)
    if not url or (match and (not is_base or _is_plain(match["rest"] or ""))):
        return
    if not match:
        message = f"`{key}` names its host in a way that hides where it leads"
        expected = "https://, a host without a user name, and a path without backslashes"
    else:
        message = f"`{key}` is not the address of a folder"
        expected = (
            "https://, a host, and a path without `//`, `.`, `..`, their encoded forms, `?` or `#`"
        )
    yield Finding(
        path=path,
        pointer=(key,),
        rule="wrong-value",
        message=message,
        expected=expected,
        help="write the URL as a browser shows it once the page is open",
    )


def _is_plain(path: str) -> bool:
    return _PATH.fullmatch(path) is not None and _ENCODED.search(path) is None


def check_reserved_toolkit(catalog: Catalog) -> Iterator[Finding]:
    """No toolkit has the slug that is reserved for the meta tools."""
    if ROUTER in catalog.toolkits:
        message, help = f"`{ROUTER}` is the toolkit of the meta tools", "rename the folder"
        yield Finding(
            path=f"toolkits/{ROUTER}/toolkit.yaml",
            rule="slug-taken",
            message=message,
            expected="another toolkit slug",
            help=help,
        )


def check_replacements(catalog: Catalog) -> Iterator[Finding]:
    """The replacement of a deprecated tool is an existing tool, that of a meta tool a meta tool."""
    tools = [
        (tool.path, tool.slug, tool.replaced_by)
        for tool in catalog.tools
        if tool.replaced_by is not None
    ]
    metas = [
        (tool.path, tool.slug, tool.template.get("deprecation", {}).get("replaced_by", ""))
        for tool in catalog.meta_tools
    ]
    yield from _check_replacements("tool", tools, {tool.slug for tool in catalog.tools})
    yield from _check_replacements("meta tool", metas, {tool.slug for tool in catalog.meta_tools})


def _check_replacements(
    what: str, deprecated: Iterable[tuple[str, str, str]], slugs: Collection[str]
) -> Iterator[Finding]:
    pointer = ("deprecation", "replaced_by")
    for path, slug, replacement in deprecated:
        if replacement == slug:
            message = f"`{replacement}` replaces itself"
            yield Finding(
                path=path,
                pointer=pointer,
                rule="reference",
                message=message,
                help="name another tool, or remove the line",
            )
        elif replacement and replacement not in slugs:
            yield _unknown_reference(path, pointer, what, replacement, slugs)


def check_auth_config_references(catalog: Catalog) -> Iterator[Finding]:
    """An auth config names an existing toolkit and tools of it."""
    tools = _tools_by_toolkit(catalog)
    for config in catalog.auth_configs:
        if config.toolkit in catalog.toolkits:
            yield from _limit_findings(_check_auth_config_tools(config, tools[config.toolkit]))
        else:
            yield _unknown_reference(
                config.path, ("toolkit",), "toolkit", config.toolkit, catalog.toolkits
            )


def _check_auth_config_tools(config: AuthConfig, tools: Collection[str]) -> Iterator[Finding]:
    for index, slug in enumerate(config.tools or ()):
        if slug not in tools:
            yield _unknown_reference(
                config.path,
                ("tools", index),
                "tool",
                slug,
                tools,
                context=f" in toolkit `{config.toolkit}`",
            )


def check_session_references(catalog: Catalog) -> Iterator[Finding]:
    """A session names existing toolkits, tools, versions, auth configs and meta tools."""
    tools, versions = _tools_by_toolkit(catalog), _versions_by_toolkit(catalog)
    for session in catalog.sessions:
        parts = (
            _check_session_toolkits(catalog, session),
            _check_session_tools(session, tools),
            _check_session_versions(session, versions),
            _check_session_auth_configs(catalog, session),
            _check_session_meta_tools(catalog, session),
        )
        yield from _limit_findings(chain(*parts))


def _limit_findings(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield at most MAX_FINDINGS_PER_FILE + 1 findings.

    Finding the nearest name for each of many unknown names takes long.
    """
    return islice(findings, MAX_FINDINGS_PER_FILE + 1)


def _check_session_toolkits(catalog: Catalog, session: Session) -> Iterator[Finding]:
    for key, named in (
        ("enable", session.toolkits.enable or ()),
        ("disable", session.toolkits.disable),
    ):
        for index, slug in enumerate(named):
            if slug not in catalog.toolkits:
                yield _unknown_reference(
                    session.path, ("toolkits", key, index), "toolkit", slug, catalog.toolkits
                )
    for key, field in (
        ("tools", session.tools),
        ("auth_configs", session.auth_configs),
        ("toolkit_versions", session.toolkit_versions),
    ):
        for slug in field:
            if slug not in catalog.toolkits:
                yield _unknown_reference(
                    session.path, (key, slug), "toolkit", slug, catalog.toolkits, at_key=True
                )


def _check_session_tools(session: Session, tools: Mapping[str, set[str]]) -> Iterator[Finding]:
    for toolkit, said in session.tools.items():
        if toolkit not in tools:
            continue
        for key, named in (("enable", said.tools.enable or ()), ("disable", said.tools.disable)):
            for index, slug in enumerate(named):
                if slug not in tools[toolkit]:
                    pointer = ("tools", toolkit, key, index)
                    yield _unknown_reference(
                        session.path,
                        pointer,
                        "tool",
                        slug,
                        tools[toolkit],
                        context=f" in toolkit `{toolkit}`",
                    )


def _check_session_versions(
    session: Session, versions: Mapping[str, set[str]]
) -> Iterator[Finding]:
    for toolkit, version in session.toolkit_versions.items():
        if toolkit in versions and version not in versions[toolkit]:
            expected = "one of " + ", ".join(sorted(versions[toolkit]))
            message = f"toolkit `{toolkit}` has no version `{version}`"
            yield Finding(
                path=session.path,
                pointer=("toolkit_versions", toolkit),
                rule="reference",
                message=message,
                expected=expected,
            )


def _check_session_auth_configs(catalog: Catalog, session: Session) -> Iterator[Finding]:
    configs = {config.id: config for config in catalog.auth_configs}
    for toolkit, name in session.auth_configs.items():
        pointer = ("auth_configs", toolkit)
        if name not in configs:
            yield _unknown_reference(session.path, pointer, "auth config", name, configs)
        elif toolkit in catalog.toolkits and configs[name].toolkit not in (
            toolkit,
            UNKNOWN_TOOLKIT,
        ):
            message = f"auth config `{name}` is for toolkit `{configs[name].toolkit}`, not for `{toolkit}`"
            yield Finding(
                path=session.path,
                pointer=pointer,
                rule="reference",
                message=message,
                expected=f"an auth config of toolkit {toolkit}",
            )


def _check_session_meta_tools(catalog: Catalog, session: Session) -> Iterator[Finding]:
    slugs = {tool.slug for tool in catalog.meta_tools}
    for index, slug in enumerate(session.meta_tools or ()):
        if slug not in slugs:
            yield _unknown_reference(session.path, ("meta_tools", index), "meta tool", slug, slugs)


def check_session_not_empty(catalog: Catalog) -> Iterator[Finding]:
    """A session has at least one tool; with none, its meta tools would offer an empty choice."""
    for session in catalog.sessions:
        if not sessions.select_tools(catalog, session):
            help = "enable a toolkit, tool or tag that has tools"
            yield Finding(
                path=session.path,
                rule="session-empty",
                message="no tool is left in this session",
                help=help,
            )


def _tools_by_toolkit(catalog: Catalog) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {toolkit: set() for toolkit in catalog.toolkits}
    for tool in catalog.tools:
        found.setdefault(tool.toolkit, set()).add(tool.slug)
    return found


def _versions_by_toolkit(catalog: Catalog) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {toolkit: set() for toolkit in catalog.toolkits}
    for tool in catalog.tools:
        found.setdefault(tool.toolkit, set()).add(tool.version)
    return found


REFERENCE_RULES: tuple[Rule, ...] = (
    check_toolkit_files,
    check_reserved_toolkit,
    check_unique_slugs,
    ids_are_unique,
    urls_lead_where_they_say,
    check_replacements,
    check_auth_config_references,
    check_session_references,
)
TOTAL_RULES: tuple[Rule, ...] = (check_session_not_empty,)
