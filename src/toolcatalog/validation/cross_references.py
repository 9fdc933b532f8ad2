"""Cross-file checks: references between the files of a catalog.

`catalog.schema` checks the shape of each single file; the rules here check existence, uniqueness
and references, and those of `validation.limits` count. Each rule yields all of its findings.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from toolcatalog import names
from toolcatalog.catalog.model import (
    ROUTER,
    UNKNOWN_TOOLKIT,
    AuthConfig,
    Catalog,
    MetaTool,
    Selection,
    Session,
    ToolSummary,
)
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Pointer
from toolcatalog.lint.rule import iter_urls
from toolcatalog.validation import limits

# an https URL: the host and the rest; browsers treat `\` as `/`
_URL = re.compile(r"https://(?P<host>[^/?#\\@%]+)(?P<rest>[/?#][^\\]*)?")
# a path that stays unambiguous if a path is appended to it, or if it is used without its host
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[^/?#]+)*/?")
_ENCODED = re.compile(r"%(2[ef]|5c)", re.IGNORECASE)  # encoded `.`, `/` or `\`
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?(?::[0-9]{1,5})?")
_PORT = re.compile(r":[0-9]*\Z")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # of an IPv4 address
_MAX_LISTED_NAMES = 10  # names that a message lists
_MAX_LOOKUPS = 100  # unknown names, for each rule, of which the nearest known one is looked up

Rule = Callable[[Catalog], Iterator[Finding]]


def check_all(
    catalog: Catalog,
    invalid_paths: Collection[str],
    stub_paths: Collection[str] | None = None,
) -> list[Finding]:
    """Return all findings of all rules.

    `invalid_paths` are files that failed schema validation. The catalog contains their valid
    values, or for `stub_paths` (default: all of them) only stubs, so that references to them are
    not reported too. Stubs get no findings here, and rules that count tools run only if there are
    no invalid files.
    """
    findings = [
        finding
        for rule in REFERENCE_RULES
        for finding in rule(catalog)
        if finding.path not in (invalid_paths if stub_paths is None else stub_paths)
    ]
    if invalid_paths:
        return findings
    # a wrong name in a file is the likely cause of a wrong total
    reported_paths = {finding.path for finding in findings}
    totals = chain.from_iterable(rule(catalog) for rule in limits.RULES)
    return [*findings, *(finding for finding in totals if finding.path not in reported_paths)]


@dataclass(slots=True)
class _NearestNames:
    """The lookups of nearest names that remain for a rule: each takes up to milliseconds."""

    remaining: int = _MAX_LOOKUPS

    def suggest(self, name: str, candidates: Collection[str]) -> str:
        """Return "did you mean `NAME`?"; empty if no name is near or too many were looked up."""
        self.remaining -= 1
        return names.suggest(name, candidates) if self.remaining >= 0 else ""


def _unknown_reference(
    nearest: _NearestNames,
    path: str,
    pointer: Pointer,
    kind: str,
    name: str,
    candidates: Collection[str],
    at_key: bool = False,
    context: str = "",
) -> Finding:
    return Finding(
        path=path,
        pointer=pointer,
        at_key=at_key,
        rule="reference",
        message=f"there is no {kind} `{name}`{context}",
        expected=_describe_candidates(candidates),
        help=nearest.suggest(name, candidates) or f"add the {kind}, or name an existing one",
    )


def _describe_candidates(candidates: Collection[str]) -> str:
    if len(candidates) > _MAX_LISTED_NAMES:
        return f"one of the {len(candidates):,} that are there"
    return "one of " + (", ".join(sorted(candidates)) or "none yet")


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
        folded = tool.slug.casefold()
        other = first.setdefault(folded, tool)
        if (other.slug, _toolkit_of(other)) != (tool.slug, _toolkit_of(tool)):
            for path in (other.path, tool.path):
                clashes[folded].setdefault(path.rpartition("/")[0], path)
    for folders in clashes.values():
        original, *duplicates = sorted(folders)
        for folder in duplicates:
            yield Finding(
                path=folders[folder],
                rule="slug-taken",
                message=f"`{folder.rpartition('/')[2]}` is also the slug of {original}",
                expected="a slug that no other tool has",
                help="rename one of the folders",
            )


def _toolkit_of(tool: ToolSummary | MetaTool) -> str:
    return tool.toolkit if isinstance(tool, ToolSummary) else ROUTER


def check_unique_ids(catalog: Catalog) -> Iterator[Finding]:
    """The ids of sessions, and those of auth configs, differ in more than case."""
    yield from _check_unique_ids("session", catalog.sessions)
    yield from _check_unique_ids("auth config", catalog.auth_configs)


def _check_unique_ids(kind: str, records: Iterable[AuthConfig | Session]) -> Iterator[Finding]:
    first: dict[str, AuthConfig | Session] = {}
    for record in sorted(records, key=lambda record: record.id):
        other = first.setdefault(record.id.casefold(), record)
        if other is not record:
            yield Finding(
                path=record.path,
                rule="slug-taken",
                message=f"`{record.id}` differs only in case from the {kind} `{other.id}`",
                expected=f"an id that no other {kind} has, also where case is ignored",
                help="rename one of the files",
            )


def check_mcp_servers(catalog: Catalog) -> Iterator[Finding]:
    """An MCP server can be reached or installed, and belongs to one toolkit."""
    first: dict[str, str] = {}
    for slug, toolkit in sorted(catalog.toolkits.items()):
        server, path = toolkit.mcp_server, f"toolkits/{slug}/toolkit.yaml"
        if server is None:
            continue
        if not ("url" in server or "package" in server):
            yield Finding(
                path=path,
                pointer=("mcp_server",),
                at_key=True,
                rule="missing-key",
                message="`mcp_server` has neither `url` nor `package`",
                expected="the https URL of the server, or the package to install",
                help="add a line `url: https://...` or `package: {registry: ..., identifier: ...}`",
            )
        other = first.setdefault(server["name"].casefold(), slug)
        if other != slug:
            yield Finding(
                path=path,
                pointer=("mcp_server", "name"),
                rule="slug-taken",
                message=f"`{server['name']}` is also the MCP server of toolkit `{other}`",
                expected="a server that no other toolkit names",
                help="name the server in one of the toolkits",
            )


_BASE_URLS = ("home", "repository", "api")


def check_urls(catalog: Catalog) -> Iterator[Finding]:
    """A URL shows its host openly, and a base URL ends in a plain path.

    This covers all URLs that become links or addresses of pages. Paths are appended to the base
    URLs `home`, `repository` and `api`.
    """
    for path, key, url in iter_urls(catalog):
        yield from _check_url(path, key, url, is_base=key in _BASE_URLS)


def _check_url(path: str, key: str, url: str, *, is_base: bool) -> Iterator[Finding]:
    match = _URL.fullmatch(url)
    host, rest = (match["host"], match["rest"] or "") if match else ("", "")
    if not url:
        return
    if _is_ip_address(host):
        message, expected = f"`{key}` has an IP address for its host", "a host with a name"
    elif not _is_open_host(host):
        message = f"`{key}` names its host in a way that hides where it leads"
        expected = "https://, a host without a user name, and a path without backslashes"
    elif is_base and not _is_plain(rest):
        message = f"`{key}` is not the address of a folder"
        expected = (
            "https://, a host, and a path without `//`, `.`, `..`, their encoded forms, `?` or `#`"
        )
    else:
        return
    yield Finding(
        path=path,
        pointer=(key,),
        rule="wrong-value",
        message=message,
        expected=expected,
        help="write the URL as a browser shows it once the page is open",
    )


def _is_open_host(host: str) -> bool:
    """Return whether a host, perhaps with a port, has labels of letters, digits, `_` and `-` only.

    Browsers replace wide characters by plain ones: a wide slash would end the host.
    """
    return _HOST.fullmatch(host) is not None and unicodedata.normalize("NFKC", host) == host


def _is_ip_address(host: str) -> bool:
    """Return whether browsers read a host, perhaps with a port, as an IP address.

    The last label of an IPv4 address is a number, also in hexadecimal.
    """
    labels = _PORT.sub("", host).lower().removesuffix(".").split(".")
    return host.startswith("[") or _NUMBER.fullmatch(labels[-1]) is not None


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
    nearest = _NearestNames()
    yield from _check_replacements(nearest, "tool", tools, {tool.slug for tool in catalog.tools})
    yield from _check_replacements(
        nearest, "meta tool", metas, {tool.slug for tool in catalog.meta_tools}
    )


def _check_replacements(
    nearest: _NearestNames,
    noun: str,
    deprecated: Iterable[tuple[str, str, str]],
    slugs: Collection[str],
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
            yield _unknown_reference(nearest, path, pointer, noun, replacement, slugs)


def check_auth_config_references(catalog: Catalog) -> Iterator[Finding]:
    """An auth config names an existing toolkit and tools of it."""
    tools, nearest = _tools_by_toolkit(catalog), _NearestNames()
    for config in catalog.auth_configs:
        if config.toolkit in catalog.toolkits:
            yield from _limit_findings(
                _check_auth_config_tools(nearest, config, tools[config.toolkit])
            )
        else:
            yield _unknown_reference(
                nearest, config.path, ("toolkit",), "toolkit", config.toolkit, catalog.toolkits
            )


def _check_auth_config_tools(
    nearest: _NearestNames, config: AuthConfig, tools: Collection[str]
) -> Iterator[Finding]:
    for index, slug in enumerate(config.tools or ()):
        if slug not in tools:
            yield _unknown_reference(
                nearest,
                config.path,
                ("tools", index),
                "tool",
                slug,
                tools,
                context=f" in toolkit `{config.toolkit}`",
            )


def check_session_references(catalog: Catalog) -> Iterator[Finding]:
    """A session names existing toolkits, tools, versions, auth configs and meta tools."""
    tools, versions = _tools_by_toolkit(catalog), limits.versions_by_toolkit(catalog)
    nearest = _NearestNames()
    for session in catalog.sessions:
        parts = (
            _check_session_toolkits(nearest, catalog, session),
            _check_session_tools(nearest, session, tools),
            _check_session_versions(session, versions),
            _check_session_auth_configs(nearest, catalog, session),
            _check_session_meta_tools(nearest, catalog, session),
        )
        yield from _limit_findings(chain(*parts))


def _limit_findings(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield at most MAX_FINDINGS_PER_FILE + 1 findings."""
    return islice(findings, MAX_FINDINGS_PER_FILE + 1)


def _check_session_toolkits(
    nearest: _NearestNames, catalog: Catalog, session: Session
) -> Iterator[Finding]:
    toolkits = catalog.toolkits
    for key, slugs in _selected_names(session.toolkits):
        for index, slug in enumerate(slugs):
            if slug not in toolkits:
                pointer = ("toolkits", key, index)
                yield _unknown_reference(nearest, session.path, pointer, "toolkit", slug, toolkits)
    fields = ("tools", "auth_configs", "toolkit_versions")
    for field in fields:
        for slug in getattr(session, field):
            if slug not in toolkits:
                yield _unknown_reference(
                    nearest, session.path, (field, slug), "toolkit", slug, toolkits, at_key=True
                )


def _selected_names(selection: Selection) -> Iterator[tuple[str, Sequence[str]]]:
    yield "enable", selection.enable or ()
    yield "disable", selection.disable


def _check_session_tools(
    nearest: _NearestNames, session: Session, tools: Mapping[str, set[str]]
) -> Iterator[Finding]:
    for toolkit, selection in session.tools.items():
        context = f" in toolkit `{toolkit}`"
        for key, slugs in _selected_names(selection.tools) if toolkit in tools else ():
            for index, slug in enumerate(slugs):
                if slug not in tools[toolkit]:
                    pointer = ("tools", toolkit, key, index)
                    yield _unknown_reference(
                        nearest,
                        session.path,
                        pointer,
                        "tool",
                        slug,
                        tools[toolkit],
                        context=context,
                    )


def _check_session_versions(
    session: Session, versions: Mapping[str, set[str]]
) -> Iterator[Finding]:
    for toolkit, version in session.toolkit_versions.items():
        if toolkit in versions and version not in versions[toolkit]:
            expected = _describe_candidates(versions[toolkit])
            message = f"toolkit `{toolkit}` has no version `{version}`"
            yield Finding(
                path=session.path,
                pointer=("toolkit_versions", toolkit),
                rule="reference",
                message=message,
                expected=expected,
            )


def _check_session_auth_configs(
    nearest: _NearestNames, catalog: Catalog, session: Session
) -> Iterator[Finding]:
    if not session.auth_configs:
        return
    configs = {config.id: config for config in catalog.auth_configs}
    for toolkit, name in session.auth_configs.items():
        pointer = ("auth_configs", toolkit)
        if name not in configs:
            yield _unknown_reference(nearest, session.path, pointer, "auth config", name, configs)
            continue
        other = configs[name].toolkit
        if toolkit in catalog.toolkits and other not in (toolkit, UNKNOWN_TOOLKIT):
            yield Finding(
                path=session.path,
                pointer=pointer,
                rule="reference",
                message=f"auth config `{name}` is for toolkit `{other}`, not for `{toolkit}`",
                expected=f"an auth config of toolkit {toolkit}",
            )


def _check_session_meta_tools(
    nearest: _NearestNames, catalog: Catalog, session: Session
) -> Iterator[Finding]:
    slugs = {tool.slug for tool in catalog.meta_tools}
    for index, slug in enumerate(session.meta_tools or ()):
        if slug not in slugs:
            yield _unknown_reference(
                nearest, session.path, ("meta_tools", index), "meta tool", slug, slugs
            )


def _tools_by_toolkit(catalog: Catalog) -> dict[str, set[str]]:
    slugs: dict[str, set[str]] = {toolkit: set() for toolkit in catalog.toolkits}
    for tool in catalog.tools:
        slugs.setdefault(tool.toolkit, set()).add(tool.slug)
    return slugs


REFERENCE_RULES: tuple[Rule, ...] = (
    check_toolkit_files,
    check_reserved_toolkit,
    check_unique_slugs,
    check_unique_ids,
    limits.check_links,
    check_urls,
    check_mcp_servers,
    check_replacements,
    check_auth_config_references,
    check_session_references,
)
