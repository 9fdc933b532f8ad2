"""Tests of `api.operations`: the pages of any list request, with any key, equal those of a simple
model.
"""

import base64
import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.catalogs import add_toolkit
from support.paths import DATA
from support.snapshot_reader import read_documents
from toolcatalog.api.bodies import join_body
from toolcatalog.api.error_responses import RequestError
from toolcatalog.api.operations import Operations, render_list_page
from toolcatalog.api.query_params import MAX_PAGE_SIZE, Page
from toolcatalog.build.pipeline import build
from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.snapshot.mapped_files import FileSlices
from toolcatalog.store.open import open_build

GOLDEN = DATA / "golden"
KITS = ("kit0", "kit1", "kit2")
LATE = "20260101_00"  # a version of one toolkit alone
VERSIONS = ("20240101_00", "20240101_01", "20250101_00", "20250601_00")
TAGS, SCOPES = ("a", "b", "important", "c d"), ("read", "write", "admin")
ASKED = st.none() | st.sampled_from([*VERSIONS, "latest"])
CONFIGS = {  # id: toolkit, tools, scopes
    "ac_all": ("kit0", None, None),
    "ac_tools": ("kit1", ("KIT1_1", "KIT1_4"), None),
    "ac_scopes": ("kit0", None, ("read", "write")),
    "ac_both": ("kit2", ("KIT2_2", "KIT2_5", "KIT2_8"), ("read",)),
}


@dataclass(frozen=True)
class Asked:
    """What a list question says, and who asks: `seen` are the toolkits of the key, None for all."""

    seen: tuple[str, ...] | None
    toolkits: tuple[str, ...]
    configs: tuple[str, ...]
    tags: tuple[str, ...]
    scopes: tuple[str, ...]
    important: bool
    deprecated: bool
    everywhere: str | None
    pins: dict[str, str]
    sort_by: str
    order: str
    limit: int

    def query(self) -> bytes:
        """As a client sends it."""
        pairs = {
            "toolkit_slug": ",".join(self.toolkits),
            "auth_config_ids": ",".join(self.configs),
            "tags": ",".join(self.tags),
            "scopes": ",".join(self.scopes),
            "important": str(self.important).lower(),
            "include_deprecated": str(self.deprecated),
            "toolkit_versions": self.everywhere or "",
            "sort_by": self.sort_by,
            "order": self.order,
            "limit": str(self.limit),
            **{f"toolkit_versions[{toolkit}]": version for toolkit, version in self.pins.items()},
        }
        return urlencode(pairs).encode()


def expected(every: list[dict[str, Any]], asked: Asked) -> list[tuple[str, str]]:
    """Slug and version of all that a question finds, in its order: the decisions as a model.
    `every` is sorted by slug and version.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in every:
        at = asked.pins.get(one["toolkit"]["slug"], asked.everywhere)
        if at in (None, "latest") or one["version"] <= str(at):
            found[one["slug"]] = one
    some = [one for one in found.values() if passes(one, asked)]
    if asked.sort_by != "slug":
        # stable: ties stay by slug
        some.sort(key=lambda one: one[asked.sort_by], reverse=asked.order == "desc")
    elif asked.order == "desc":
        some.reverse()
    return [(one["slug"], one["version"]) for one in some]


def passes(one: dict[str, Any], asked: Asked) -> bool:
    """Whether a tool version is seen by the key and passes every filter."""
    toolkit = one["toolkit"]["slug"]
    return (
        (asked.seen is None or toolkit in asked.seen)
        and among(asked.toolkits, [toolkit])
        and (not asked.configs or any(usable(one, *CONFIGS[config]) for config in asked.configs))
        and among(asked.tags, one["tags"])
        and among(asked.scopes, one["scopes"])
        and (not asked.important or "important" in one["tags"])
        and (asked.deprecated or not one["is_deprecated"])
    )


def among(wanted: tuple[str, ...], has: list[str]) -> bool:
    """Whether one of those that are wanted is there, or none is wanted."""
    return not wanted or bool({*wanted} & {*has})


def usable(
    one: dict[str, Any], toolkit: str, tools: tuple[str, ...] | None, scopes: tuple[str, ...] | None
) -> bool:
    return (
        one["toolkit"]["slug"] == toolkit
        and (tools is None or one["slug"] in tools)
        and (scopes is None or {*one["scopes"]} <= {*scopes})
    )


class Answering:
    """The operations of a build, and every document of it, sorted by slug and version."""

    def __init__(self, operations: Operations, every: list[dict[str, Any]]) -> None:
        self.operations = operations
        self.every = every


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Answering:
    """Thirty tools in three toolkits and up to four versions, each version with tags, scopes and a
    deprecation of its own.
    """
    folder, draw = tmp_path_factory.mktemp("answering"), random.Random(4)  # noqa: S311 - nothing secret
    root = folder / "catalog"
    (root / "auth_configs").mkdir(parents=True)
    (root / "catalog.yaml").write_text("title: Any\n")
    for kit in KITS:
        add_toolkit(root, kit)
    for number in range(30):
        for version in draw.sample(VERSIONS, draw.randrange(1, 5)):
            write(root, f"KIT{number % 3}_{number}", version, draw)
    add_toolkit(root, "late")
    write(root, "LATE_ONE", LATE, draw)
    for id, (toolkit, tools, scopes) in CONFIGS.items():
        (root / f"auth_configs/{id}.yaml").write_text(
            json.dumps({"toolkit": toolkit, **present(tools=tools, scopes=scopes)})
        )
    build(root, folder / "build", None)
    found = sorted(
        map(json.loads, read_documents(folder / "build" / "current").values()),
        key=lambda one: (one["slug"], one["version"]),
    )
    return Answering(Operations(open_build(folder / "build")), found)


def present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def write(root: Path, slug: str, version: str, draw: random.Random) -> None:
    """A file of a tool version, all by chance."""
    tags, scopes = (draw.sample(names, draw.randrange(len(names))) for names in (TAGS, SCOPES))
    deprecation = {"reason": "Old."} if draw.random() < 0.2 else None
    value = present(
        name=f"Do {draw.choice('ABC')}",
        description="Does it.",
        tags=tags,
        scopes=scopes,
        deprecation=deprecation,
    )
    file = root / "toolkits" / slug.partition("_")[0].lower() / slug / f"{version}.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(value))


def key(seen: tuple[str, ...] | None) -> ApiKey:
    return ApiKey(
        id="key_a", project="p", toolkits=seen, sha256="", hint="", created="", lifetime=None
    )


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    """Any list question without a query whose names are there, and seen by the key."""

    def some(names: tuple[str, ...]) -> tuple[str, ...]:
        return (
            tuple(
                draw(
                    st.lists(
                        st.sampled_from(names), max_size=draw(st.sampled_from([0, 3])), unique=True
                    )
                )
            )
            if names
            else ()
        )

    kits = tuple(draw(st.lists(st.sampled_from(KITS), min_size=1, unique=True)))
    seen = draw(st.sampled_from([None, kits]))
    versions = st.sampled_from([*VERSIONS, "latest"])
    return Asked(
        seen=seen,
        toolkits=some(kits),
        configs=some(tuple(id for id, (kit, _, _) in CONFIGS.items() if kit in kits)),
        tags=some(TAGS),
        scopes=some(SCOPES),
        important=draw(st.booleans()),
        deprecated=draw(st.booleans()),
        everywhere=draw(st.none() | versions),
        pins=draw(st.dictionaries(st.sampled_from(kits), versions, max_size=2)),
        sort_by=draw(st.sampled_from(["slug", "name", "version"])),
        order=draw(st.sampled_from(["asc", "desc"])),
        limit=draw(st.integers(1, 12)),
    )


def body(operations: Operations, seen: tuple[str, ...] | None, query: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(join_body(operations.list_tools(key(seen), query).body))
    return found


@given(asked=questions())
def test_any_question_is_answered_as_the_model_says(asked: Asked, answering: Answering) -> None:
    """All pages, one after another by their cursors: what the filters let through, in order, each
    once, and the counts that go with it.
    """
    wanted, query, items, number = (
        expected(answering.every, asked),
        asked.query(),
        list[tuple[str, str]](),
        1,
    )
    while True:
        answer = body(answering.operations, asked.seen, query)
        items += [(one["slug"], one["version"]) for one in answer["items"]]
        assert (answer["current_page"], answer["total_items"], answer["total_pages"]) == (
            number,
            len(wanted),
            -(-len(wanted) // asked.limit),
        )
        if answer["next_cursor"] is None:
            break
        number, query = (
            number + 1,
            asked.query() + b"&" + urlencode({"cursor": answer["next_cursor"]}).encode(),
        )
    assert items == wanted
    assert number == max(1, answer["total_pages"])


@given(number=st.integers(0, 29), version=ASKED, everywhere=ASKED, pin=ASKED)
def test_any_version_of_any_tool(
    number: int, version: str | None, everywhere: str | None, pin: str | None, answering: Answering
) -> None:
    """Get: the version that is named, else the newest one that is not newer than the toolkit's pin;
    404 where there was none by then.
    """
    toolkit, slug = f"kit{number % 3}", f"KIT{number % 3}_{number}"
    own = [one for one in answering.every if one["slug"] == slug]
    asked = {
        "version": version,
        "toolkit_versions": everywhere,
        f"toolkit_versions[{toolkit}]": pin,
    }
    if version in (None, "latest"):
        at = None if version else (pin or everywhere)
        found = [one for one in own if at in (None, "latest") or one["version"] <= str(at)][-1:]
    else:
        found = [one for one in own if one["version"] == version]
    query = urlencode({name: value for name, value in asked.items() if value}).encode()
    if found:
        assert (
            json.loads(join_body(answering.operations.get_tool(key(None), slug, query).body))
            == found[0]
        )
    else:
        with pytest.raises(RequestError) as refused:
            answering.operations.get_tool(key((toolkit,)), slug, query)
        (refusal,) = refused.value.errors
        assert (refusal.status, refusal.slug) == (404, "tool_version_not_found")
        assert refusal.fix == f"Use latest, or one of {', '.join(one['version'] for one in own)}."


@given(
    numbers=st.lists(st.integers(0, 31), min_size=1, max_size=8),
    everywhere=ASKED,
    pins=st.dictionaries(st.sampled_from(KITS), ASKED, max_size=2),
    seen=st.none() | st.just(("kit0", "kit1")),
    limit=st.integers(1, 5),
)
def test_tools_by_name(
    numbers: list[int],
    everywhere: str | None,
    pins: dict[str, str | None],
    seen: tuple[str, ...] | None,
    limit: int,
    answering: Answering,
) -> None:
    """Slugs are answered in the order in which they are named, each once, at its effective version;
    unknown and hidden ones are left out.
    """
    slugs = [*dict.fromkeys(f"KIT{number % 3}_{number}" for number in numbers)]
    if seen:
        pins = {toolkit: version for toolkit, version in pins.items() if toolkit in seen}
    found = [
        [
            one
            for one in answering.every
            if one["slug"] == slug
            and is_effective(one, pins.get(slug.partition("_")[0].lower()) or everywhere)
        ][-1:]
        for slug in slugs
        if seen is None or slug.partition("_")[0].lower() in seen
    ]
    wanted = [(one["slug"], one["version"]) for some in found for one in some]
    versions = {
        "toolkit_versions": everywhere,
        **{f"toolkit_versions[{toolkit}]": version for toolkit, version in pins.items()},
    }
    query = urlencode(
        {"tool_slugs": ",".join(slugs), "limit": limit}
        | {name: value for name, value in versions.items() if value}
    )
    answer = body(answering.operations, seen, query.encode())
    assert [(one["slug"], one["version"]) for one in answer["items"]] == wanted[:limit]
    assert answer["total_items"] == len(wanted)


def is_effective(one: dict[str, Any], at: str | None) -> bool:
    return at in (None, "latest") or one["version"] <= str(at)


@pytest.mark.parametrize(
    ("seen", "slug", "query", "status", "line"),
    [
        (None, "KIT0_0", "version=20230101_00", 404, "version: KIT0_0 has no version 20230101_00."),
        (
            None,
            "KIT0_0",
            f"toolkit_versions[kit0]={LATE}",
            404,
            f"toolkit_versions: toolkit kit0 has no version {LATE}.",
        ),
        (
            None,
            "KIT0_0",
            "toolkit_versions=20230101_00",
            404,
            "toolkit_versions: toolkit kit0 has no version 20230101_00.",
        ),
        (
            None,
            "LATE_ONE",
            "toolkit_versions=20240101_00",
            404,
            "toolkit_versions: LATE_ONE is not yet in toolkit late at 20240101_00.",
        ),
        (("kit1",), "KIT0_0", "", 404, "tool_slug: there is no tool KIT0_0."),
        (None, "KIT0_99", "", 404, "tool_slug: there is no tool KIT0_99."),
        (None, "kit0_0", "", 400, "tool_slug: 'kit0_0' is not a tool slug."),
    ],
)
def test_a_tool_that_is_not_there(
    seen: tuple[str, ...] | None,
    slug: str,
    query: str,
    status: int,
    line: str,
    answering: Answering,
) -> None:
    """What is asked for and is not there is named, with the versions that there are; a tool that
    the key may not see is as none.
    """
    with pytest.raises(RequestError) as refused:
        answering.operations.get_tool(key(seen), slug, query.encode())
    (refusal,) = refused.value.errors
    assert (refusal.status, refusal.message) == (status, line)
    if "toolkit kit0" in line:
        assert refusal.fix == f"Use latest, or one of {', '.join(VERSIONS)}."
    assert seen is None or "KIT0" not in refusal.fix


def test_a_version_of_another_toolkit_is_one_for_all(answering: Answering) -> None:
    """`toolkit_versions=V` for every toolkit: a version that any toolkit has will do, and each tool
    is as it was by then.
    """
    newest = [one for one in answering.every if one["slug"] == "KIT0_0"][-1]
    found = answering.operations.get_tool(key(None), "KIT0_0", f"toolkit_versions={LATE}".encode())
    assert json.loads(join_body(found.body)) == newest


def test_a_session_by_pages(tmp_path: Path) -> None:
    """The meta tools of a session, so many at a time, are those of the session; another project's
    session is not for the key.
    """
    build(GOLDEN / "sessions" / "catalog", tmp_path / "build", None)
    operations = Operations(open_build(tmp_path / "build"))
    owner = replace(key(None), project="default")
    whole = json.loads(join_body(operations.list_session_tools(owner, "trs_all", b"", b"").body))
    assert [*whole] == ["items"]
    assert len(whole["items"]) == 3
    for size in (1, 2, 3, 4):
        pages = -(-3 // size)
        for number in range(1, pages + 2):
            query = urlencode(
                {"cursor": base64.b64encode(b"%d:%d" % (number, size)).decode()}
            ).encode()
            page = json.loads(
                join_body(operations.list_session_tools(owner, "trs_all", query, b"").body)
            )
            assert page["items"] == whole["items"][(number - 1) * size : number * size]
            assert (page["total_items"], page["total_pages"], page["next_cursor"] is None) == (
                3,
                pages,
                number >= pages,
            )
    for asker, id, status in (
        (owner, "trs_some", 403),
        (owner, "trs_none", 404),
        (owner, "ses_none", 400),
    ):
        with pytest.raises(RequestError) as refused:
            operations.list_session_tools(asker, id, b"", b"")
        assert [refusal.status for refusal in refused.value.errors] == [status]


@given(st.integers(1, 10**6), st.integers(1, MAX_PAGE_SIZE), st.integers(0, 10**6))
def test_a_page_names_the_next_one_where_there_is_one(number: int, size: int, total: int) -> None:
    """Any page of a list of any length: a cursor to the next one while there is one, and none on
    the last, or behind it.
    """
    documents, none = (
        FileSlices(memoryview(b"12"), [0, 1], [1, 2]),
        FileSlices(memoryview(b""), [], []),
    )
    body, tag = render_list_page(documents, b"tag", Page(number, size), total)
    answer = json.loads(join_body(body))
    following = (
        base64.b64encode(b"%d:%d" % (number + 1, size)).decode() if number * size < total else None
    )
    pages = (total + size - 1) // size
    assert answer == {
        "items": [1, 2],
        "next_cursor": following,
        "total_pages": pages,
        "current_page": number,
        "total_items": total,
    }
    assert tag != render_list_page(documents, b"other", Page(number, size), total)[1]
    assert tag != render_list_page(documents, b"tag", Page(number, size), total + 1)[1]
    assert join_body(render_list_page(none, b"tag", Page(number, size), total)[0]).startswith(
        b'{"items":[],"next_cursor":'
    )


@pytest.mark.parametrize(
    ("seen", "query", "status"),
    [
        (("kit0",), "toolkit_slug=kit1", 403),
        (("kit0",), "toolkit_slug=nope", 404),
        (("kit0",), "auth_config_ids=ac_tools", 403),
        (("kit0",), "auth_config_ids=ac_nope", 404),
        (("kit0",), "toolkit_versions[nope]=20240101_00", 400),
        (None, "toolkit_versions=20230101_00", 400),
        (None, "toolkit_versions[kit0]=20230101_00", 400),
        (None, "cursor=abc", 400),
    ],
)
def test_what_is_not_there_or_not_for_the_key(
    seen: tuple[str, ...] | None, query: str, status: int, answering: Answering
) -> None:
    """A name that is unknown is told apart from one of a toolkit that the key may not use."""
    with pytest.raises(RequestError) as refused:
        answering.operations.list_tools(key(seen), query.encode())
    assert [refusal.status for refusal in refused.value.errors] == [status]
