"""Random requests: the server answers each like the simple `support.reference_model`.

The requests are the same in every run; SEED=2 in the environment makes others.
"""

import base64
import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from support.command import run_successfully
from support.paths import SHARED, SHIPPED_CATALOG
from support.profile import DEEP_PROFILE
from support.reference_model import ExpectedAnswer, ReferenceModel, dump_json, read_yaml
from support.server import Server, create_key, start_server

SEED = int(os.environ.get("SEED", "1"))
REQUESTS = 3200 if DEEP_PROFILE else 800
WIRE_TOOLS = SHARED / "data" / "wire-tools.json"
PREFIXES = ("/api/v3", "/api/v3.1")
ALL_ERRORS = {
    "invalid_request",
    "forbidden",
    "tool_not_found",
    "tool_version_not_found",
    "toolkit_not_found",
    "auth_config_not_found",
}
BAD_CURSORS = [
    "abc",
    "!",
    "MQ==",
    "MToyMA",
    "MToyMB==",
    *(
        base64.b64encode(text).decode()
        for text in (
            b"0:20",
            b"1:0",
            b"1:1001",
            b"-1:20",
            b"1:20:3",
            b"1 :20",
            b"01:20",
            b"1:020",
            b"a:b",
            b"1;20",
            b"",
            b"\xff",
            b"[1,20]",
        )
    ),
]
GOOD_LIMITS = [
    "1",
    "2",
    "3",
    "7",
    "20",
    "50",
    "50.0",
    "999",
    "1000",
    "1001",
    "9999",
    "1.",
    "99999999999999999999",
]
BAD_LIMITS = [
    "0",
    "-1",
    "abc",
    "1.5",
    "0.0",
    "-0",
    "inf",
    "nan",
    "1,2",
    "0x10",
    "1_0",
    "٣",
    " ",
    "null",
]
BAD_VERSIONS = [
    "newest",
    "LATEST",
    "2025",
    "20250301",
    "20250301_0",
    "20250301_000",
    "20250301-00",
    "20250301_00 ",
    "v1",
    "null",
]
BAD_SLUGS = ["github_create_issue", "A B", "Ä", "A.B", "-A", "A\n", "'", "A" * 201, "{slug}", "A,B"]
ODD_QUERIES = [
    " ",
    "\t\n",
    "zzzzzz",
    "???",
    "createIssue",
    "HTTPServer2go",
    "éÉßı日本",
    "ÉCOLE caf",
    "api",
    "x" * 1000,
    "x" * 4001,
    "😀",
    "a&b=c;d+e%f#g",
]


class Asker:
    """Makes requests that a client, or a careless one, might send for a catalog."""

    def __init__(self, naive: ReferenceModel, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - nothing secret
        entries = [entry for items in naive.tools.values() for entry in items]
        self.toolkits = [*naive.toolkits]
        self.slugs = [*naive.tools]
        self.configs = [*naive.configs]
        self.tags = sorted({tag for entry in entries for tag in entry.tags})
        self.scopes = sorted({scope for entry in entries for scope in entry.scopes}) or ["repo"]
        self.versions = sorted({entry.version for entry in entries})
        self.words = sorted({word for entry in entries for word in entry.words})

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def one_of(self, values: Sequence[str], unusual: Sequence[str], chance: float = 0.05) -> str:
        """Mostly one of the values."""
        return self.random.choice(unusual if self.maybe(chance) or not values else values)

    def encoded(self, text: str, safe: str = "") -> str:
        """The text percent-encoded, here and there more than it needs be."""
        if self.maybe(0.05):
            return "".join(f"%{byte:02x}" for byte in text.encode())
        spelled = quote(text, safe=safe + ":/" if self.maybe(0.5) else safe)
        return spelled.replace("%20", "+") if self.maybe(0.5) else spelled

    def list_of(self, name: str, values: list[str]) -> list[str]:
        """A list parameter in some spelling, or several mixed."""
        pairs = []
        while values:
            count = self.random.randint(1, len(values))
            items, values = values[:count], values[count:]
            key = name + self.random.choice(
                ["", "", "", "[]", "%5B%5D", "%5b%5d", "[0]", "%5B12%5D"]
            )
            comma = self.random.choice([",", "%2C", "%2c", ",,", "%2C+", ", ".replace(" ", "%20")])
            pairs.append(
                f"{key}="
                + comma.join(self.encoded(value) for value in items)
                + self.random.choice(["", "", "", ","])
            )
        return pairs

    def pins(self, bad: float) -> list[str]:
        """`toolkit_versions`: plain, for some toolkits, or both."""
        pairs = []
        if self.maybe(0.4):
            pairs.append("toolkit_versions=" + self.encoded(self.version(bad)))
        for toolkit in {
            self.one_of(self.toolkits, ["nope", "GitHub", "a b"], bad)
            for _ in range(self.random.choice([0, 1, 1, 2, 4]))
        }:
            opening, closing = self.random.choice([("[", "]"), ("%5B", "%5D"), ("%5b", "%5d")])
            pairs.append(
                f"toolkit_versions{opening}{quote(toolkit)}{closing}="
                + self.encoded(self.version(bad))
            )
        return pairs

    def version(self, bad: float) -> str:
        return self.one_of(
            [*self.versions, "latest"], [*BAD_VERSIONS, "20991231_00", "00000000_07"], bad
        )

    def query(self) -> str:
        """Some words of the catalog, in several dresses; seldom something that is in no tool, or
        too long.
        """
        words = self.random.choices(self.words, k=self.random.choice([1, 1, 2, 3, 8]))
        text = self.random.choice([" ", "  ", "_", "-", ", ", ". "]).join(words)
        dressed = self.random.choice([text, text.upper(), text.title(), text.swapcase()])
        return self.one_of([dressed], [*ODD_QUERIES, f" {text} "], 0.15)

    def list_query(self, bad: float) -> list[str]:
        """The parameters of a list request."""
        items: list[str] = []
        draw = self.random
        if self.maybe(0.4):
            items += self.list_of(
                "toolkit_slug",
                self.several(
                    self.toolkits, ["nope", "Git Hub", "githb", "é"], bad, [1, 1, 1, 2, 3]
                ),
            )
        if self.maybe(0.12):
            items += self.list_of(
                "tool_slugs",
                self.several(self.slugs, ["NOPE", "nope", "A,B", "é"], 0.1, [1, 2, 5, 30, 200]),
            )
        if self.maybe(0.02):
            items.append(
                "tool_slugs="
                + ",".join(f"T{number}" for number in range(draw.choice([999, 1000, 1001])))
            )
        if self.maybe(0.15):
            items += self.list_of(
                "auth_config_ids",
                self.several(self.configs, ["ac_nope", "nope"], bad, [1, 1, 2, 3]),
            )
        if self.maybe(0.25):
            items += self.list_of(
                "tags", self.several(self.tags, ["nope", "IMPORTANT", "é b"], 0.1, [1, 1, 2, 4])
            )
        if self.maybe(0.15):
            items += self.list_of(
                "scopes", self.several(self.scopes, ["nope", "repo "], 0.1, [1, 2, 4])
            )
        for chance, name, good, unusual in (
            (0.15, "important", ["true", "false"], ["True", "1", "yes"]),
            (
                0.2,
                "include_deprecated",
                ["true", "false", "TRUE", "False", "0", "1"],
                ["no", "2", "tru"],
            ),
            (0.4, "limit", GOOD_LIMITS, BAD_LIMITS),
            (0.15, "cursor", [self.cursor()], BAD_CURSORS),
            (
                0.3,
                "sort_by",
                ["relevance", "slug", "name", "version"],
                ["Name", "relevance,slug", "created_at"],
            ),
            (0.3, "order", ["asc", "desc"], ["ASC", "descending"]),
        ):
            if self.maybe(chance):
                items.append(f"{name}=" + self.encoded(self.one_of(good, unusual, bad)))
        for chance, name in ((0.35, "query"), (0.05, "search")):
            if self.maybe(chance):
                items.append(f"{name}=" + self.encoded(self.query()))
        return items + (self.pins(bad) if self.maybe(0.3) else [])

    def cursor(self) -> str:
        number = self.random.choice([1, 1, 2, 2, 3, 5, 40, 10**15])
        page = f"{number}:{self.random.choice([1, 2, 3, 10, 20, 100, 1000])}"
        return base64.b64encode(page.encode()).decode()

    def several(
        self, values: Sequence[str], unusual: Sequence[str], bad: float, counts: list[int]
    ) -> list[str]:
        return [self.one_of(values, unusual, bad) for _ in range(self.random.choice(counts))]

    def finished(self, pairs: list[str], bad: float) -> str:
        """The pairs in any order, with what means nothing among them, and seldom with what is wrong
        as a whole.
        """
        names = [
            "tags",
            "limit",
            "cursor",
            "query",
            "toolkit_slug",
            "important",
            "tool_slugs",
            "toolkit_versions",
            "version",
            "sort_by",
        ]
        if self.maybe(0.2):
            pairs.append(self.random.choice(names) + self.random.choice(["=", "", "[]="]))
        if self.maybe(0.2):
            pairs.append(
                self.random.choice(
                    [
                        "utm=1",
                        "a[b][c]=d",
                        "limit[]=x",
                        "Tags=x",
                        "version=x",
                        "=",
                        "",
                        "%00=%00",
                        "a=b=c",
                    ]
                )
            )
        if self.maybe(bad * 0.2):
            pairs.append(self.random.choice(["tags=%ff", "x=%C3", "%E2%82=y"]))
        if self.maybe(bad) and not any(pair.startswith("limit") for pair in pairs):
            pairs += ["limit=3", self.random.choice(["limit=3", "limit=4"])]
        self.random.shuffle(pairs)
        return "&".join(pairs)

    def ask(self) -> tuple[str | None, str]:
        """The slug of a tool to get, or None to list, and a query string."""
        bad = self.random.choice([0.0, 0.0, 0.02, 0.1, 0.3])
        if self.maybe(0.7):
            return None, self.finished(self.list_query(bad), bad)
        pairs = self.pins(bad) if self.maybe(0.5) else []
        if self.maybe(0.5):
            pairs.append("version=" + self.encoded(self.version(bad)))
        slug = self.one_of(self.slugs, [self.random.choice(self.slugs)[:-1], *BAD_SLUGS], bad)
        query = self.finished(pairs, bad)
        # it means nothing to a list only
        return slug, re.sub("(^|&)version=x(&|$)", r"\1\2", query)


@dataclass
class Judge:
    """Holds each answer against the verdict, and counts what has come up, so that a test can tell
    that it has asked enough.
    """

    client: httpx.Client
    naive: ReferenceModel
    seen: Counter[str] = field(default_factory=Counter)

    def judge(
        self, slug: str | None, query: str, prefix: str, key: str, visible: set[str] | None
    ) -> None:
        path = f"{prefix}/tools" + ("" if slug is None else "/" + quote(slug, safe=""))
        headers = {"x-api-key": key}
        response = self.client.get(f"{path}?{query}" if query else path, headers=headers)
        request = response.request.url.query.decode()
        verdict = (
            self.naive.list_tools(request, visible)
            if slug is None
            else self.naive.get_tool(slug, request, visible)
        )
        try:
            if verdict.problems:
                self.refused(response, verdict)
            elif verdict.ranked:
                self.ranked(response, verdict, f"{path}?{without_cursor(query)}", headers)
            else:
                self.answered(response, verdict)
        except AssertionError as error:
            raise AssertionError(
                f"SEED={SEED} GET {path}?{query} (toolkits seen: {visible or 'all'}): {error}"
            ) from None

    def answered(self, response: httpx.Response, verdict: ExpectedAnswer) -> None:
        assert response.status_code == 200, response.text[:500]
        expected = verdict.body()
        if response.text != expected:  # perhaps only a number is spelled in another way
            assert dump_json(response.json()) == dump_json(json.loads(expected))
        self.seen["get" if verdict.size == 0 else "list"] += 1
        self.seen["further page"] += (
            verdict.number > 1 and verdict.number <= verdict.total_pages if verdict.size else 0
        )

    def refused(self, response: httpx.Response, verdict: ExpectedAnswer) -> None:
        status = min(problem[0] for problem in verdict.problems)
        assert response.status_code == status, f"{response.text[:500]}, expected {verdict.problems}"
        error = response.json()["error"]
        assert {*error} == {
            "message",
            "code",
            "slug",
            "status",
            "request_id",
            "suggested_fix",
            "errors",
        }
        assert (error["code"], error["status"], error["request_id"]) == (
            1000 + status,
            status,
            response.headers["x-request-id"],
        )
        assert error["message"]
        assert error["suggested_fix"]
        assert error["slug"] in {slug for group, slug, _ in verdict.problems if group == status}
        names = Counter(named_in(line) for line in error["errors"])
        assert names == Counter(parameter for _, _, parameter in verdict.problems), (
            f"{error['errors']}, expected {verdict.problems}"
        )
        self.seen[error["slug"]] += 1
        self.seen["several problems"] += len(verdict.problems) > 1

    def ranked(
        self, response: httpx.Response, verdict: ExpectedAnswer, first: str, headers: dict[str, str]
    ) -> None:
        """By relevance: each page holds some of the matching tools, comes twice the same, and all
        pages make up the whole set.
        """
        assert response.status_code == 200, response.text[:500]
        page = response.json()
        items = page.pop("items")
        assert page == verdict.frame()
        assert len(items) == max(
            0, min(verdict.size, len(verdict.entries) - (verdict.number - 1) * verdict.size)
        )
        bodies = {entry.slug: entry.body for entry in verdict.entries}
        assert_documents(items, bodies)
        repeated = self.client.get(str(response.request.url), headers=headers)
        assert repeated.content == response.content, "another answer to the same question"
        self.seen["ranked"] += 1
        if verdict.total_pages <= 8:
            self.walk(verdict, first, headers, bodies)

    def walk(
        self, verdict: ExpectedAnswer, first: str, headers: dict[str, str], bodies: dict[str, str]
    ) -> None:
        results: list[Any] = []
        for number in range(1, verdict.total_pages + 1):
            cursor = base64.b64encode(f"{number}:{verdict.size}".encode()).decode()
            page = self.client.get(f"{first}&cursor={quote(cursor)}", headers=headers).json()
            results += page["items"]
        assert_documents(results, bodies)
        assert {item["slug"] for item in results} == {*bodies}, (
            "the pages together are not the whole"
        )
        self.seen["walked"] += verdict.total_pages > 1


def assert_documents(items: list[Any], bodies: dict[str, str]) -> None:
    slugs = [item["slug"] for item in items]
    assert len(slugs) == len({*slugs}), f"a tool twice: {slugs}"
    assert {*slugs} <= {*bodies}, f"these do not match: { ({*slugs} - {*bodies}) }"
    for item in items:
        assert dump_json(item) == bodies[item["slug"]] or dump_json(item) == dump_json(
            json.loads(bodies[item["slug"]])
        )


def named_in(line: str) -> str:
    """The parameter that a line of `errors` starts with."""
    match = re.match(r"query string|[a-z_]+", line)
    return match[0] if match else line


def without_cursor(query: str) -> str:
    return "&".join(pair for pair in query.split("&") if not pair.startswith("cursor"))


def wait_for_key(client: httpx.Client, key: str) -> None:
    """A new key holds within a second."""
    for _ in range(50):
        if client.get("/api/v3/tools?limit=1", headers={"x-api-key": key}).status_code == 200:
            return
        time.sleep(0.1)
    raise AssertionError("the new key is not known after 5 seconds")


def compare(server: Server, catalog: Path, limited_to: list[str]) -> Counter[str]:
    """Ask REQUESTS questions, most with a key that sees everything and some with one that sees
    these toolkits; what came up.
    """
    naive = ReferenceModel(catalog)
    asker = Asker(naive, SEED)
    limited = create_key(server.keys_file, "--toolkit", ",".join(limited_to))
    with httpx.Client(
        base_url=server.url, timeout=30, headers={"accept-encoding": "identity"}
    ) as client:
        wait_for_key(client, limited)
        judge = Judge(client, naive)
        for number in range(REQUESTS):
            slug, query = asker.ask()
            key, visible = (limited, {*limited_to}) if number % 4 == 0 else (server.key, None)
            judge.judge(slug, query, PREFIXES[number % 2], key, visible)
    return judge.seen


def assert_enough(seen: Counter[str]) -> None:
    """The questions were not all of one kind."""
    few = {
        kind
        for kind in (
            "get",
            "list",
            "ranked",
            "walked",
            "further page",
            "several problems",
            *ALL_ERRORS,
        )
        if seen[kind] < 5
    }
    assert not few, f"hardly ever asked: {few} in {seen}"


def test_shipped_catalog_matches_the_reference(shipped: Server) -> None:
    """3,200 random requests get status, error slug and body of a second, simple implementation."""
    assert_enough(compare(shipped, SHIPPED_CATALOG, ["github", "slack", "openmeteo"]))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server of 930 imported tools, a third of them with more versions made here."""
    if not WIRE_TOOLS.is_file():
        pytest.skip("no shared/data/wire-tools.json beside this repository")
    folder = tmp_path_factory.mktemp("imported")
    catalog = folder / "catalog"
    run_successfully("import", "wire", WIRE_TOOLS, "--catalog", catalog)
    make_history(catalog)
    run_successfully("build", "--catalog", catalog, "--out", folder / "build", "--no-site")
    with start_server(folder / "build", folder) as server:
        yield server, catalog


def make_history(catalog: Path) -> None:
    """Give a third of the tools older or newer versions that say other things, some of them
    deprecated, and add auth configs.
    """
    draw = random.Random(0)  # noqa: S311 - nothing secret
    versions = [
        "00000000_00",
        "20240101_00",
        "20250301_00",
        "20250301_01",
        "20260101_00",
        "99999999_99",
    ]
    paths = sorted(catalog.glob("toolkits/*/*/*.yaml"))
    tools = [read_yaml(path) for path in paths]
    for path, tool in zip(paths, tools, strict=True):
        for version in draw.sample(versions, draw.choice([0, 0, 1, 2, 3])):
            other = draw.choice(tools)
            changed = {
                **tool,
                "name": draw.choice([tool, other])["name"],
                "description": draw.choice([tool, other])["description"],
            }
            changed["tags"] = draw.choice(
                [tool.get("tags", []), other.get("tags", []), ["important", "é b"]]
            )
            if draw.random() < 0.2:
                changed["description"] += " Café, École: 日本語API, Straße ½."
            changed["scopes"] = draw.sample(
                ["read", "write", "https://www.example.com/auth/all", "admin:*"], draw.randint(0, 3)
            )
            if draw.random() < 0.3:
                changed["deprecation"] = draw.choice([{}, {"reason": "Old."}])
            # JSON is YAML
            (path.parent / f"{version}.yaml").write_text(
                json.dumps(changed, ensure_ascii=False), encoding="utf-8"
            )
    for number in range(150):  # so that there are more than the 1000 that a page may hold
        extra = paths[0].parent.with_name(f"MORE_{number}") / "20250301_00.yaml"
        extra.parent.mkdir()
        extra.write_text(
            json.dumps(
                {"name": f"More {number % 10}", "description": "One of many.", "tags": ["many"]}
            )
        )
    (catalog / "auth_configs").mkdir(exist_ok=True)
    for number, toolkit in enumerate(sorted(folder.name for folder in catalog.glob("toolkits/*"))):
        slugs = sorted(
            folder.name for folder in (catalog / "toolkits" / toolkit).iterdir() if folder.is_dir()
        )
        limits: list[dict[str, list[str]]] = [
            {},
            {"tools": slugs[::2]},
            {"scopes": ["read", "write"]},
            {"scopes": []},
        ]
        config = {"toolkit": toolkit, **limits[number % 4], **limits[number // 4 % 4]}
        (catalog / "auth_configs" / f"ac_{toolkit}.yaml").write_text(
            json.dumps(config), encoding="utf-8"
        )


def test_imported_catalog_matches_the_reference(imported: tuple[Server, Path]) -> None:
    """3,200 random requests to 930 imported tools with many versions."""
    server, catalog = imported
    toolkits = sorted(folder.name for folder in catalog.glob("toolkits/*"))
    assert_enough(compare(server, catalog, toolkits[::3]))
