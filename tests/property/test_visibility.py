"""A key that is limited to toolkits observes the same on a catalog and on the same catalog without
the toolkits that it may not see.

Two applications in this process answer the same random requests, made with the same key. Only the
following may differ: the digest of the snapshot, the 403s for a hidden toolkit that the request
itself names, and the order by relevance.
"""

import asyncio
import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import pytest

from support.catalogs import add_toolkit
from support.paths import DATA
from toolcatalog.build.pipeline import build
from toolcatalog.keys import api_keys
from toolcatalog.server.app import create_app
from toolcatalog.server.mcp import route
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build

VISIBLE, HIDDEN = ("alpha", "beta", "bulk"), ("gamma", "delta", "alphaz", "omega")
API = "/api/v3"
MCP = (("content-type", "application/json"), ("accept", "application/json, text/event-stream"))
VERSIONS = ("20240101_00", "20240101_01", "20250101_00", "20250601_00")
VISIBLE_ONLY, HIDDEN_ONLY = "20250301_00", ("20230101_00", "20250901_00")
TAGS, SCOPES = ("important", "read-only", "a b", "secret"), ("read", "write", "admin")
STEMS = ("report", "message", "invoice", "calendar", "broadcast", "checkout", "photo", "branch")
ENDINGS = ("", "s", "ing", "er", "ed", "graph", "ly", "able", "ation", "al", "x", "z")
# many short words, so that a query can hold more of them than are looked up
SHORT = [first + second + third for first in "bcdfg" for second in "aeiou" for third in "klmnprt"]
CONFIGS = {
    "ac_alpha": "alpha",
    "ac_alpha_read": "alpha",
    "ac_beta": "beta",
    "ac_alphz": "gamma",
    "ac_gamma": "gamma",
    "ac_omega": "omega",
}
MANY = 600  # hidden toolkits and auth configs whose names are like those of visible ones
SESSIONS = {
    "trs_visible": (["alpha", "beta"], "default"),
    "trs_one": (["beta"], "default"),
    "trs_foreign": (["alpha"], "other"),
    "trs_mixed": (["alpha", "gamma"], "default"),
    "trs_hidden": (["omega"], "default"),
    "trs_hidden_foreign": (["omega"], "other"),
}


# The catalogs


def write_catalog(root: Path) -> Path:
    """The whole catalog: visible and hidden toolkits that share words, and words, spellings,
    versions, tags, auth configs and sessions that only one side has.
    """
    draw = random.Random(11)  # noqa: S311 - nothing secret
    root.mkdir(parents=True)
    (root / "catalog.yaml").write_text("title: Any\n")
    for toolkit in (*VISIBLE, *HIDDEN):
        add_toolkit(root, toolkit)
        count = {"bulk": 230, "omega": 40}.get(toolkit, 12)
        for number in range(count):
            _write_tool(root, toolkit, number, draw)
    # words that crowd out others wherever the first few of many are taken
    crowd = " ".join(f"{start}{number:03}" for start in ("bro", "che") for number in range(200))
    letters = "abcdefghijklmnopqrst"
    crowd += " " + " ".join(f"bra{item}{other}" for item in letters for other in letters)
    crowd += " " + " ".join(f"{stem}{letter}" for stem in STEMS for letter in letters)
    crowd += " " + " ".join(f"{stem[:6]}a{letter}" for stem in STEMS for letter in letters)
    _write(root, "gamma", "GAMMA_CROWD", VERSIONS[0], name="Crowd", description=crowd)
    _write(root, "omega", "ALPHA_SECRET", HIDDEN_ONLY[1], name="Zymurgy", description="Zymurgical.")
    _write(root, "delta", "DELTA_OLD", HIDDEN_ONLY[0], name="Old zymurgist")
    _write(root, "beta", "BETA_LATE", VISIBLE_ONLY, name="Late repositories", tags=["late"])
    _write(root, "gamma", "GAMMA_SHORTER", VERSIONS[1], name="Repository of studies")
    _write(root, "alpha", "ALPHA_STUDY", VERSIONS[1], name="Studying affiliations")
    for number in range(MANY):  # between the visible ones, more than are compared
        add_toolkit(root, f"alpha{number:03}")
    (root / "auth_configs").mkdir()
    for id, toolkit in CONFIGS.items():
        limits = {"scopes": ["read"]} if id.endswith("read") else {}
        _dump(root / f"auth_configs/{id}.yaml", {"toolkit": toolkit, **limits})
    for number in range(MANY):
        _dump(root / f"auth_configs/ac_alpha{number:03}.yaml", {"toolkit": "gamma"})
    (root / "sessions").mkdir()
    for id, (toolkits, project) in SESSIONS.items():
        _dump(root / f"sessions/{id}.yaml", {"toolkits": {"enable": toolkits}, "project": project})
    router = DATA / "golden/sessions/catalog/meta_tools"
    shutil.copytree(router, root / "meta_tools")
    return root


def _write_tool(root: Path, toolkit: str, number: int, draw: random.Random) -> None:
    stems = STEMS if toolkit in VISIBLE else (*STEMS, "dealtype", "milestone", "affiliation")
    words = [
        draw.choice(stems) + draw.choice(ENDINGS[: 6 if toolkit in VISIBLE else None])
        for _ in range(6)
    ]
    shortened = draw.sample(SHORT[:150] if toolkit in VISIBLE else SHORT, 8)
    versions = draw.sample(VERSIONS, draw.randrange(1, 4))
    slug = f"{toolkit.upper()}_{words[0].upper()}_{number}"
    for version in versions:
        _write(
            root,
            toolkit,
            slug,
            version,
            name=f"Do {words[0]} {words[1]}",
            description=(
                f"It does {' '.join(words[draw.randrange(3) :])} and {' '.join(shortened)}."
            ),
            tags=draw.sample(TAGS[: 3 if toolkit in VISIBLE else 4], draw.randrange(3)),
            scopes=draw.sample(SCOPES, draw.randrange(3)),
            **({"deprecation": {"reason": "Old."}} if draw.random() < 0.2 else {}),
        )


def _write(root: Path, toolkit: str, slug: str, version: str, **fields: Any) -> None:
    folder = root / "toolkits" / toolkit / slug
    folder.mkdir(exist_ok=True)
    _dump(folder / f"{version}.yaml", {"description": "Does it.", **fields})


def _dump(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value))


def remove_hidden(root: Path, toolkits: Sequence[str]) -> None:
    """Leave only these toolkits in a catalog, with their auth configs and the sessions that allow
    no others.
    """
    for folder in (root / "toolkits").iterdir():
        if folder.name not in toolkits:
            shutil.rmtree(folder)
    for file in (root / "auth_configs").iterdir():
        if CONFIGS.get(file.stem) not in toolkits:
            file.unlink()
    for id, (allowed, _) in SESSIONS.items():
        if not {*allowed} <= {*toolkits}:
            (root / f"sessions/{id}.yaml").unlink()


# The requests


@dataclass(frozen=True)
class Request:
    """A request. `body` makes it a POST; `by_relevance`: the order of its items may differ; `names`
    are the hidden toolkits, auth configs and sessions that it names where this is 403.
    """

    path: str
    query: dict[str, str] = field(default_factory=dict)
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    by_relevance: bool = False
    names: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """Path and query string."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Maker:
    """Random requests for any of the catalog, mistakes among them."""

    def __init__(self, root: Path, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - nothing secret
        self.slugs = sorted(folder.name for folder in root.glob("toolkits/*/*_*"))
        shared = [stem + ending for stem in STEMS for ending in ENDINGS]
        hidden = ["dealtype", "milestone", "zymurgy", "zymurgist", "brabc", "bro101", "gamma"]
        rare = ["repository", "repositories", "studies", "study", "affiliation", "late", "alpha"]
        self.words = [*shared, *hidden, *rare, *rare, *rare]

    def make(self) -> Request:
        """One request."""
        kinds = (self.tool, self.tools, self.tools, self.search, self.search, self.session)
        return self.draw.choice((*kinds, self.mcp, self.mcp, self.toolkits))()

    def word(self) -> str:
        """A word, often misspelt."""
        word = self.draw.choice(SHORT if self.draw.random() < 0.2 else self.words)
        position = self.draw.randrange(len(word))
        kind = self.draw.random()
        if kind < 0.15:
            return word[:position] + word[position + 1 :]
        if kind < 0.3:
            return word[:position] + word[position] + word[position:]
        if kind < 0.4:
            return word[:position] + self.draw.choice("abcdexyz") + word[position + 1 :]
        if kind < 0.5:  # too far away to be found, near enough to be suggested
            return word[:2] + word[1:-1] + word[-2:] + word[-1]
        return word[: position + 1] if kind < 0.55 else word

    def text(self) -> str:
        """A query."""
        if self.draw.random() < 0.1:  # more terms than are looked up
            return " ".join(self.draw.sample([*self.words, *SHORT], 150))[:1000].strip()
        if self.draw.random() < 0.1:
            return self.draw.choice(self.slugs).lower().replace("_", self.draw.choice("_ "))
        return " ".join(self.word() for _ in range(self.draw.choice((1, 1, 2, 3, 6))))

    def slug(self) -> str:
        """A tool slug, there or not."""
        slug = self.draw.choice(self.slugs)
        kind = self.draw.random()
        if kind < 0.3:
            return slug[: self.draw.randrange(1, len(slug))]
        return "_".join([slug, self.word().upper()]) if kind < 0.5 else slug

    def version(self) -> str:
        """A version, there or not."""
        all_values = [*VERSIONS, VISIBLE_ONLY, *HIDDEN_ONLY, "latest", "20250202_00", "newest"]
        return self.draw.choice(all_values)

    def pins(self, toolkits: Sequence[str] = (*VISIBLE, *HIDDEN, "alhpa")) -> dict[str, str]:
        """Versions asked for."""
        pins = {}
        if self.draw.random() < 0.3:
            pins["toolkit_versions"] = self.version()
        for toolkit in self.draw.sample(toolkits, self.draw.choice((0, 0, 0, 1, 2))):
            pins[f"toolkit_versions[{toolkit}]"] = self.version()
        return pins

    def page(self) -> dict[str, str]:
        """Limit or cursor."""
        kind = self.draw.random()
        if kind < 0.5:
            return {}
        if kind < 0.7:
            cursors = ("MToyMA==", "Mjo1", "MTA6Mw==", "abc")
            return {"cursor": self.draw.choice(cursors)}
        return {"limit": self.draw.choice(("1", "3", "100", "1000", "0", "x"))}

    def tool(self) -> Request:
        """Get a tool."""
        query = self.pins()
        if self.draw.random() < 0.3:
            query["version"] = self.version()
        return Request(f"{API}/tools/{self.slug()}", query, self.condition())

    def toolkits(self) -> Request:
        """List toolkits, categories or slugs, or get a toolkit."""
        slug = self.draw.choice((*VISIBLE, *HIDDEN, "alphb", "nope"))
        paths = ("/toolkits", f"/toolkits/{slug}", "/toolkits/categories", "/tools/enum")
        query = self.page()
        if self.draw.random() < 0.3:
            query["version"] = self.version()
        if self.draw.random() < 0.3:
            query["search"] = self.draw.choice(("a", "al", "gamma", "ph be", "x"))
        if self.draw.random() < 0.3:
            query["sort_by"] = self.draw.choice(("usage", "alphabetically"))
        return Request(f"{API}{self.draw.choice(paths)}", query, self.condition())

    def tools(self, text: str = "") -> Request:
        """List tools."""
        query, names = {**self.pins(), **self.page()}, list[str]()
        if self.draw.random() < 0.3:
            choices = (*VISIBLE, *HIDDEN, "alha", "gama", "zzz", "alphb", "alpha301")
            toolkits = self.draw.sample(choices, self.draw.choice((1, 1, 2, 5)))
            query["toolkit_slug"] = ",".join(toolkits)
            names += [slug for slug in toolkits if slug in HIDDEN or slug == "alpha301"]
        if self.draw.random() < 0.2:
            ids = (*CONFIGS, "ac_alphb", "ac_gama", "ac_zzz", "ac_alpha_rea")
            configs = self.draw.sample(ids, self.draw.choice((1, 1, 2)))
            query["auth_config_ids"] = ",".join(configs)
            names += [id for id in configs if CONFIGS.get(id) in HIDDEN]
        if self.draw.random() < 0.3:
            query["tags"] = ",".join(self.draw.sample((*TAGS, "late", "no"), 2))
        if self.draw.random() < 0.2:
            query["scopes"] = ",".join(self.draw.sample((*SCOPES, "no"), 2))
        if self.draw.random() < 0.2:
            query["include_deprecated"] = self.draw.choice(("true", "false", "0", "maybe"))
        if self.draw.random() < 0.1:
            query["important"] = self.draw.choice(("true", "false", "1"))
        if self.draw.random() < 0.1:
            query["tool_slugs"] = ",".join(self.slug() for _ in range(self.draw.randrange(1, 9)))
            names = []
        if self.draw.random() < 0.5:
            query["sort_by"] = self.draw.choice(("slug", "name", "version", "relevance", "size"))
        if self.draw.random() < 0.3:
            query["order"] = self.draw.choice(("asc", "desc"))
        if text:
            query[self.draw.choice(("query", "query", "search"))] = text
        by_relevance = bool(text) and query.get("sort_by", "relevance") == "relevance"
        condition = () if by_relevance else self.condition()
        return Request(f"{API}/tools", query, condition, b"", by_relevance, tuple(names))

    def search(self) -> Request:
        """List tools by a query, mostly without filters."""
        if self.draw.random() < 0.3:
            return self.tools(self.text())
        order = self.draw.choice(({}, {"sort_by": "slug"}, {"sort_by": "slug", "limit": "1000"}))
        query = {"query": self.text(), **order}
        return Request(f"{API}/tools", query, by_relevance="sort_by" not in query)

    def session(self) -> Request:
        """List the tools of a session."""
        id = self.draw.choice((*SESSIONS, "trs_nope", "trs_hiddenn", "nope"))
        query = self.page()
        return Request(
            f"{API}/tool_router/session/{id}/tools", query, self.condition(), names=_hidden(id)
        )

    def mcp(self) -> Request:
        """A message of MCP."""
        session = self.draw.choice(("", "", *SESSIONS, "trs_nope"))
        method, params = self.draw.choice((self.call, self.call, self.call, self.listing))()
        arguments = params.get("arguments", {})
        names = [*_hidden(session), *_hidden(str(arguments.get("session_id")))]
        names += [slug for slug in (arguments.get("toolkit"),) if slug in HIDDEN]
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return Request(
            "/mcp",
            {"session": session} if session else {},
            MCP,
            json.dumps(message).encode(),
            params.get("name") == "search_tools",
            tuple(names),
        )

    def listing(self) -> tuple[str, dict[str, Any]]:
        """List the tools that MCP offers."""
        return "tools/list", {}

    def call(self) -> tuple[str, dict[str, Any]]:
        """Call one of them, or a tool of the catalog."""
        toolkit = self.draw.choice(
            ({}, {}, {"toolkit": self.draw.choice((*VISIBLE, *HIDDEN, "x"))})
        )
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("search_tools", {"query": self.text(), "limit": 50, **toolkit}),
            ("search_tools", {"query": self.word(), "limit": 50}),
            ("get_tool", {"slug": self.slug(), "version": self.version()}),
            ("get_tool", {"slug": self.slug()}),
            ("list_toolkits", {"limit": self.draw.choice((1, 2, 500))}),
            ("list_toolkits", {"after": self.draw.choice(("alpha", "alphaz", "c"))}),
            ("list_session_tools", {"session_id": self.draw.choice((*SESSIONS, "trs_nope"))}),
            (self.slug(), {}),
            ("ROUTER_RUN", {}),
        )
        name, arguments = self.draw.choice(calls)
        return "tools/call", {"name": name, "arguments": arguments}

    def condition(self) -> tuple[tuple[str, str], ...]:
        """Perhaps a conditional request, or one for a coding."""
        choices = ((), (), (("if-none-match", "*"),), (("if-none-match", "seen"),))
        return self.draw.choice((*choices, (("accept-encoding", "gzip"),)))


def _hidden(session: str) -> tuple[str, ...]:
    toolkits, _ = SESSIONS.get(session, ([], ""))
    return (session,) if {*toolkits} & {*HIDDEN} else ()


# The answers


@dataclass(frozen=True)
class Answer:
    """What an application answers."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body) if self.body else None


class Sides:
    """The same key on the whole catalog and on the catalog without what is hidden from it."""

    def __init__(self, folder: Path, toolkits: Sequence[str]) -> None:
        self.root = write_catalog(folder / "whole")
        shutil.copytree(self.root, folder / "reduced")
        remove_hidden(folder / "reduced", toolkits)
        self.secret, _ = api_keys.create(folder / "keys.json", "default", toolkits, None)
        ring, self.apps = api_keys.KeyRing(folder / "keys.json"), list[Any]()
        for name in ("whole", "reduced"):
            build(folder / name, folder / f"{name}-build", None)
            live = AppState(ring, open_build(folder / f"{name}-build"))
            self.apps.append(create_app(live, None, [route.create_mcp_route(live)]))

    def ask(self, request: Request) -> tuple[Answer, Answer]:
        """Return the responses of both applications; `seen` replaces the ETag of the unconditional
        response.
        """
        if ("if-none-match", "seen") in request.headers:
            plain = asyncio.run(self._ask(self.apps[1], request.target, (), b""))
            headers = [("if-none-match", plain.headers.get("etag", '"none"'))]
        else:
            headers = [*request.headers]
        document, reduced = (
            asyncio.run(self._ask(app, request.target, headers, request.body)) for app in self.apps
        )
        return document, reduced

    async def _ask(
        self, app: Any, target: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> Answer:
        path, _, query = target.partition("?")
        argument = [("host", "127.0.0.1"), ("x-api-key", self.secret), ("x-request-id", "same")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
            "state": {},
            "method": "POST" if body else "GET",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 5000),
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in (*argument, *headers)],
        }
        received = [{"type": "http.request", "body": body, "more_body": False}]
        request: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not received:
                await asyncio.Event().wait()
            return received.pop()

        async def send(message: dict[str, Any]) -> None:
            request.append(message)

        await app(scope, receive, send)
        names = {name.decode(): value.decode() for name, value in request[0]["headers"]}
        names.pop("x-catalog-snapshot")
        return Answer(
            request[0]["status"], names, b"".join(part.get("body", b"") for part in request[1:])
        )


def compare(request: Request, document: Answer, reduced: Answer) -> None:
    """Hold the answers of both sides against each other."""
    if request.names and _is_refused(document) and document != reduced:
        _compare_refusals(request, document, reduced)
    elif request.by_relevance and not _is_refused(document) and not _is_refused(reduced):
        _compare_by_relevance(request, document, reduced)
    else:
        assert document == reduced, request


def _is_refused(answer: Answer) -> bool:
    return answer.status >= 400 or b'"isError":true' in answer.body


def _compare_refusals(request: Request, document: Answer, reduced: Answer) -> None:
    """What the request names by itself is 403 or unknown; every other line is the same."""
    own = [re.escape(name) for name in request.names]
    assert _is_refused(reduced), request
    lines = []
    for answer in (document, reduced):
        if request.body and answer.status == 200:
            all_values = answer.value["result"]["content"][0]["text"].splitlines()
        else:
            all_values = answer.value["error"]["errors"]
        lines.append(
            [line for line in all_values if not re.search(rf"\b({'|'.join(own)})\b", line)]
        )
    assert lines[0] == lines[1], request
    if not request.body or document.status != 200:
        assert document.status in (403, reduced.status), request
        fields = {
            name: value for name, value in document.headers.items() if name != "content-length"
        }
        assert fields.keys() == {*reduced.headers} - {"content-length"}, request


def _compare_by_relevance(request: Request, document: Answer, reduced: Answer) -> None:
    """Everything is the same but which of the tools come first."""
    exempt = ("etag", "content-length")
    headers = [
        {name: value for name, value in answer.headers.items() if name not in exempt}
        for answer in (document, reduced)
    ]
    assert headers[0] == headers[1], request
    if request.body:
        results = [answer.value["result"]["structuredContent"] for answer in (document, reduced)]
        tools = [result.pop("tools") for result in results]
        total = results[0]["total"]
    else:
        results = [answer.value for answer in (document, reduced)]
        tools = [result.pop("items") for result in results]
        total = results[0]["total_items"]
    assert results[0] == results[1], request
    assert len(tools[0]) == len(tools[1]), request
    if len(tools[0]) == total:
        assert _bag(tools[0]) == _bag(tools[1]), request


def _bag(tools: Sequence[Any]) -> Counter[str]:
    return Counter(json.dumps(tool, sort_keys=True) for tool in tools)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    """Both sides, for a key of three toolkits and of one that is not there."""
    return Sides(tmp_path_factory.mktemp("visibility"), [*VISIBLE, "ghost"])


def requests(sides: Sides, seed: int, count: int) -> Iterator[Request]:
    """Draw random requests; lists by relevance are repeated in pages of 1000 to compare all
    tools.
    """
    maker = Maker(sides.root, seed)
    for _ in range(count):
        request = maker.make()
        yield request
        if request.by_relevance and not request.body:
            query = {name: value for name, value in request.query.items() if name != "cursor"}
            yield Request(
                request.path,
                {**query, "limit": "1000"},
                by_relevance=True,
                names=request.names,
            )


def check(sides: Sides, seed: int, count: int) -> None:
    """Compare random requests, and see that the interesting kinds of answers are among them."""
    seen: Counter[str] = Counter()
    for request in requests(sides, seed, count):
        document, reduced = sides.ask(request)
        compare(request, document, reduced)
        seen[str(document.status)] += 1
        seen["suggested"] += "x-suggested-query" in document.headers
        seen["did you mean"] += b"Did you mean" in document.body
        seen["refused"] += bool(request.names) and document != reduced
    assert {"200", "304", "400", "403", "404"} <= {*seen}
    assert min(seen[kind] for kind in ("suggested", "did you mean", "refused")) >= count // 100


@pytest.mark.parametrize(
    ("text", "finds", "suggests"),
    [
        (
            "broadc",
            True,
            "",
        ),  # more hidden words than are looked up begin so before the visible one
        ("brroadcasstt", False, "broadcast"),  # more than are compared start with these two letters
        ("reepositorryy", False, "repositories"),  # hidden tools spell it in a shorter way
        ("zymurggyyy", False, ""),
        ("zymurgy", False, ""),
        ("photo", True, ""),  # more hidden relatives than are taken
        (" ".join(SHORT[::-1]), True, ""),  # more terms than are looked up
    ],
)
def test_words_of_hidden_tools_do_not_displace_visible_ones(
    text: str, finds: bool, suggests: str, sides: Sides
) -> None:
    """Where a search considers only a few words."""
    request = Request(f"{API}/tools", {"query": text, "sort_by": "slug", "limit": "1000"})
    document, reduced = sides.ask(request)
    compare(request, document, reduced)
    assert (document.value["total_items"] > 0) is finds
    assert unquote(document.headers.get("x-suggested-query", "")) == suggests


@pytest.mark.parametrize(
    ("parameter", "name", "suggests"),
    [
        ("toolkit_slug", "alphb", "Did you mean alpha?"),
        ("toolkit_versions[alphb]", VERSIONS[0], "Did you mean alpha?"),
        ("toolkit_versions[alphaz]", VERSIONS[0], "Did you mean alpha?"),
        ("auth_config_ids", "ac_alphb", "Did you mean ac_alpha or ac_alpha_read?"),
        ("toolkit_versions", HIDDEN_ONLY[0], f"Use latest, or one of {VERSIONS[0]}, "),
    ],
)
def test_hidden_names_are_not_suggested(
    parameter: str, name: str, suggests: str, sides: Sides
) -> None:
    """However similar they are to an unknown name."""
    request = Request(f"{API}/tools", {parameter: name})
    document, reduced = sides.ask(request)
    assert document == reduced
    assert document.value["error"]["suggested_fix"].startswith(suggests)


@pytest.mark.parametrize("session", ["trs_mixed", "trs_hidden"])
def test_session_with_hidden_toolkits_is_forbidden(session: str, sides: Sides) -> None:
    """In the API, MCP and its tools, without naming them."""
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    call = {"name": "list_session_tools", "arguments": {"session_id": session}}
    calling = {**listing, "method": "tools/call", "params": call}
    for request in (
        Request(f"{API}/tool_router/session/{session}/tools"),
        Request("/mcp", {"session": session}, MCP, json.dumps(listing).encode()),
    ):
        document, _ = sides.ask(request)
        assert (document.status, document.value["error"]["slug"]) == (403, "forbidden")
        assert not _named(document.body.replace(session.encode(), b""))
    document, _ = sides.ask(Request("/mcp", {}, MCP, json.dumps(calling).encode()))
    assert document.value["result"]["isError"] is True
    assert not _named(document.body.replace(session.encode(), b""))


def _named(body: bytes) -> list[str]:
    return [slug for slug in HIDDEN if slug in body.decode()]


def test_hidden_toolkits_change_no_response(sides: Sides) -> None:
    """For 200 random requests."""
    check(sides, 1, 200)


@pytest.mark.deep
def test_hidden_toolkits_change_no_response_of_many(sides: Sides) -> None:
    """For 2,000 random requests."""
    check(sides, 2, 2000)
