"""Attacks on what others trust: texts of a catalog on every page, links in a folder, guesses of
keys; and that docs/explanation/security-model.md names tests that are there.

Requests that want to be read in two ways are in test_smuggling, hostile Markdown in test_markdown,
texts that hide in test_unseen and test_lints_security, damaged snapshots in test_store and
test_verifying.
"""

import json
import os
import re
import statistics
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route

from support.command import run_successfully, run_toolcatalog
from support.doc_references import find_missing_tests
from support.paths import ROOT
from support.server import create_key, start_server
from support.site_pages import EXTERNAL_URL
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.yaml_writer import to_yaml
from toolcatalog.keys import api_keys

pytest_plugins = ["support.browser"]
pytestmark = pytest.mark.xdist_group("browser")

# --- texts of a catalog, on every page

TEXT = (
    "mark\"'`></title></style></textarea></template></script><script>evil()</script><img src=x "
    "onerror=evil()><svg/onload=evil()>"
    "[a](javascript:evil()) ![b](https://evil.example/b) <javascript:evil()> "
    "[c](data:text/html;base64;x 'x\" onclick=\"evil()') <a href=//evil.example>d</a>"
    " [e](//evil.example) [f](java\tscript:evil()) &lt;script&gt; &#60;script&#62; {{ 7 * 7 }} "
    "{% raw %} ${evil()} --> ]]> %3Cscript%3E \\u003cscript\\u003e"
)
PROSE = (
    f"# {TEXT}\n\n- {TEXT}\n> {TEXT}\n\n```\n{TEXT}\n```\n\n<script>evil()</script>\n\n"
    f"[g]: javascript:evil()\n[g]\n"
)
PROSE = (
    f"# {TEXT}\n\n- {TEXT}\n> {TEXT}\n\n```\n{TEXT}\n```\n\n<script>evil()</script>\n\n"
    f"[g]: javascript:evil()\n[g]\n"
)
# names and labels have at most 200 characters
NAMES = (
    (
        "mark\"'`></title></style></textarea></template></script><script>evil()</script><img "
        "src=x onerror=evil()><svg/onload=evil()> {{ 7 * 7 }} ${evil()} --> ]]>"
    ),
    (
        "mark [a](javascript:evil()) <javascript:evil()> [c](data:text/html;base64;x 'x\" "
        "onclick=\"evil()') <a href=//evil.example>d</a> {% raw %} %3Cscript%3E \\u003cscript"
    ),
    (
        "mark ![b](https://evil.example/b) [e](//evil.example) [f](javascript:evil()) "
        "&lt;script&gt; &#60;script&#62;"
    ),
)
NAME = NAMES[0]
WORD = NAME
URL = "https://evil.example/)](javascript:evil())`{{7*7}}&lt;script&gt;%22%3E%3Cscript%3E"
# a path cannot have white space, quotes, `<` and `>`
PATH = "/" + re.sub('[\\s"<>]', "", TEXT)
PLAIN = {
    PATH: "/plain",
    TEXT: "plain",
    PROSE: "plain",
    **{name: f"plain{number or ''}" for number, name in enumerate(NAMES)},
    URL: "https://good.example/a",
}


def description(depth: int = 2) -> dict[str, Any]:
    """A parameter description with every key there is but `required`, and a hostile text in each
    that takes one.
    """
    output: dict[str, Any] = {
        "type": "string",
        "title": TEXT,
        "description": PROSE,
        "default": TEXT,
        "examples": [TEXT],
        "enum": [TEXT],
        "format": TEXT,
        "nullable": True,
    }
    limits = {
        "minimum": 1,
        "maximum": 2,
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 3,
        "minLength": 0,
        "maxLength": 9999,
        "minItems": 1,
        "maxItems": 2,
        "uniqueItems": True,
    }
    if not depth:
        return {**output, **limits}
    inner = description(depth - 1)
    nested = {
        "items": inner,
        "properties": {TEXT[:200]: inner},
        "additionalProperties": inner,
        "anyOf": [inner],
        "oneOf": [inner],
    }
    return {
        "type": "object",
        "title": TEXT,
        "description": PROSE,
        "format": TEXT,
        "pattern": "(?i)</script>",
        **nested,
        "nullable": True,
    }


def tool() -> dict[str, Any]:
    """A tool with every key that a tool can have."""
    return {
        "name": NAME,
        "description": PROSE,
        "scopes": [*NAMES, "../../x"],
        "tags": [*NAMES, "important", "a/../b"],
        "no_auth": False,
        "deprecation": {
            "reason": PROSE,
            "since": "2025-01-01",
            "sunset": "2026-01-01",
            "replaced_by": "MAIL_READ",
        },
        "input_parameters": {TEXT[:200]: {**description(), "required": True}},
        "output_parameters": {TEXT[:200]: description()},
        "source": {"method": "POST", "path": PATH},
    }


FILES: dict[str, tuple[str, Any]] = {
    "catalog.yaml": (
        "catalog",
        {
            "title": NAME,
            "description": PROSE,
            "home": URL,
            "repository": URL,
            "api": URL,
            "headline": NAME,
            "accent": "#0a6146",
            "links": dict.fromkeys(NAMES, URL),
            "rules": dict.fromkeys(
                ("hidden-character", "link-script", "link-data", "instruction-like"), "off"
            ),
        },
    ),
    "toolkits/mail/toolkit.yaml": (
        "toolkit",
        {
            "name": NAME,
            "logo": URL,
            "description": PROSE,
            "categories": [*NAMES],
            "no_auth": False,
            "homepage": URL,
            "owners": [*NAMES],
            "mcp_server": {
                "name": "mail.example/mail",
                "version": "1",
                "url": URL,
                "package": {"registry": "npm", "identifier": "@mark/mail"},
            },
        },
    ),
    "toolkits/mail/MAIL_SEND/20250101_00.yaml": ("tool", tool()),
    "toolkits/mail/MAIL_SEND/20250202_00.yaml": (
        "tool",
        {**tool(), "input_parameters": {"other": description(1)}},
    ),
    "toolkits/mail/MAIL_READ/20250101_00.yaml": ("tool", {"name": "Read", "description": TEXT}),
    "meta_tools/toolkit.yaml": ("toolkit", {"name": NAME, "logo": URL, "description": PROSE}),
    "meta_tools/FIND_TOOLS/20250101_00.yaml": (
        "meta_tool",
        {**tool(), "deprecation": {"reason": PROSE}, "when": "manage_connections"},
    ),
    "auth_configs/ac_mail.yaml": (
        "auth_config",
        {"toolkit": "mail", "tools": ["MAIL_SEND"], "scopes": [*NAMES, "../../x"]},
    ),
    "sessions/trs_mark.yaml": (
        "session",
        {
            "project": NAME,
            "user_id": NAME,
            "toolkits": {"enable": ["mail"]},
            "tools": {"mail": {"enable": ["MAIL_SEND"]}},
            "tags": {"enable": [WORD]},
            "auth_configs": {"mail": "ac_mail"},
            "toolkit_versions": {"mail": "20250202_00"},
            "manage_connections": {"enable": True},
            "meta_tools": ["FIND_TOOLS"],
        },
    ),
}


def plain(value: Any) -> Any:
    """The same without anything hostile."""
    if isinstance(value, dict):
        return {plain(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return PLAIN.get(value, "plain" if isinstance(value, str) and "mark" in value else value)


def written(folder: Path, make: Any) -> Path:
    """A catalog of those files, with its build and site."""
    for path, (_, value) in FILES.items():
        (folder / "catalog" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "catalog" / path).write_bytes(to_yaml(make(value)))
    run_successfully(
        "build",
        "--catalog",
        folder / "catalog",
        "--out",
        folder / "build",
        "--site",
        folder / "site",
    )
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("hostile"), lambda value: value)


class Page(HTMLParser):
    """The elements of a page with the names of their attributes, and every address in it."""

    ADDRESSES = frozenset(
        (
            "href",
            "src",
            "action",
            "formaction",
            "data",
            "poster",
            "srcset",
            "cite",
            "ping",
            "background",
            "xlink:href",
            "content",
        )
    )

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[tuple[str, ...]] = set()
        self.addresses: set[tuple[str, str]] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add((tag, *sorted({name for name, _ in attrs})))
        self.addresses |= {(name, value or "") for name, value in attrs if name in self.ADDRESSES}

    def handle_comment(self, data: str) -> None:
        self.elements.add(("comment", data))


def test_every_field_has_a_hostile_text() -> None:
    """The catalog of these tests has each key of each schema, so new fields are noticed."""
    allowed = {
        kind: {key for of, value in FILES.values() if of == kind for key in value}
        for kind in SCHEMAS
    }
    assert allowed == {kind: {*schema["properties"]} for kind, schema in SCHEMAS.items()}
    output: set[str] = set()
    todo = [{**description(), "required": True}]
    while todo:
        one = todo.pop()
        output |= {*one}
        todo += [
            inner
            for key in ("items", "additionalProperties")
            if isinstance(inner := one.get(key), dict)
        ]
        todo += [*one.get("properties", {}).values(), *one.get("anyOf", ()), *one.get("oneOf", ())]
    assert output == {*SCHEMAS["tool"]["$defs"]["input"]["properties"]}


# What Markdown may add to a page, and nothing else.
MARKDOWN = {
    ("p",),
    ("strong",),
    ("em",),
    ("code",),
    ("pre",),
    ("ul",),
    ("ol",),
    ("li",),
    ("blockquote",),
    ("br",),
    ("wbr",),  # where a long name may break
    ("a", "href", "rel"),
}


def test_catalog_texts_never_become_markup(hostile: Path, tmp_path: Path) -> None:
    """Pages of a hostile catalog have only elements, attributes and URL schemes of a plain one."""
    good = written(tmp_path, plain)
    references = {
        element
        for path in (good / "site").rglob("*.html")
        for element in Page(path.read_text()).elements
    } | MARKDOWN
    pages = [*(hostile / "site").rglob("*.html")]
    assert len(pages) > 15
    assert sum("evil()" in path.read_text() for path in pages) > 12
    for path in pages:
        page = Page(path.read_text())
        assert page.elements <= references, (path.name, page.elements - references)
        for name, address in page.addresses:
            scheme = re.match(r"\s*([a-z][a-z0-9+.-]*):", address, re.IGNORECASE)
            is_text = name == "content" and not address.startswith(("http", "//"))
            assert is_text or scheme is None or scheme[1].lower() in ("https", "http", "mailto"), (
                path.name,
                address,
            )
            assert name == "content" or not address.lstrip().startswith("//"), (path.name, address)


# --- the policy, where something got through nevertheless

TAMPERED = (
    "<script>window.evil = 1</script><img src=x onerror='window.evil = 2'><a id=link "
    "href='javascript:window.evil = 3'>x</a><p style='color: red'>"
    "<script src='https://away.example/x.js'></script><iframe "
    "src='https://away.example/'></iframe><base href='https://away.example/'>"
    "<form id=form action='https://away.example/' method=post></form><object "
    "data='https://away.example/x'></object><link rel=stylesheet "
    "href='https://away.example/x.css'>"
)
NOTE = (
    "window.blocked = []; document.addEventListener('securitypolicyviolation', (event) => "
    "window.blocked.push(event.effectiveDirective))"
)


def test_content_security_policy_blocks_injected_markup(
    hostile: Path, browser: Browser, tmp_path: Path
) -> None:
    """In Chromium, even if somebody edits a page."""
    page_file = hostile / "site" / "index.html"
    good = page_file.read_text()
    page_file.write_text(good.replace("</main>", f"{TAMPERED}</main>"))
    requests: list[str] = []

    def out(route: Route) -> None:
        requests.append(route.request.url)
        route.abort()

    try:
        with start_server(hostile / "build", tmp_path, "--site", hostile / "site") as server:
            context = browser.new_context()
            context.add_init_script(NOTE)
            context.route(EXTERNAL_URL, out)
            page = context.new_page()
            page.goto(server.url)
            page.evaluate(
                "document.getElementById('link').click(); "
                "document.getElementById('form').submit(); "
                "fetch('https://away.example/y').catch(() => 0)"
            )
            page.wait_for_function("window.blocked.length >= 9")
            blocked = set(page.evaluate("window.blocked"))
            assert page.evaluate("window.evil") is None
            assert {
                "script-src-elem",
                "script-src-attr",
                "style-src-attr",
                "style-src-elem",
                "frame-src",
                "base-uri",
                "form-action",
                "connect-src",
                "object-src",
            } <= blocked
            # logos lie elsewhere, and are asked for
            assert [url for url in requests if "away.example" in url] == []
            context.close()
    finally:
        page_file.write_text(good)


# --- links in a catalog


def small(folder: Path) -> Path:
    """A catalog with one tool, next to a secret file."""
    (folder / "secret.yaml").write_text("name: TOP SECRET\ndescription: Not of this catalog.\n")
    tool = folder / "catalog" / "toolkits" / "mail" / "MAIL_SEND" / "20250101_00.yaml"
    tool.parent.mkdir(parents=True)
    tool.write_text("name: Send\ndescription: Send a message to somebody by mail.\n")
    (folder / "catalog" / "toolkits" / "mail" / "toolkit.yaml").write_text(
        "name: Mail\nlogo: https://good.example/a.png\n"
    )
    (folder / "catalog" / "catalog.yaml").write_text("title: Small\n")
    return tool


def test_symlinks_in_a_catalog_read_nothing(tmp_path: Path) -> None:
    """To a file, folder, device or itself: one sentence, and no content of the target."""
    tool = small(tmp_path)
    targets = {
        "20250102_00.yaml": tmp_path / "secret.yaml",
        "20250103_00.yaml": Path("/dev/zero"),
        "20250104_00.yaml": Path("/proc/self/environ"),
        "20250105_00.yaml": Path("20250105_00.yaml"),
        "20250106_00.yaml": tmp_path,
    }
    for name, target in targets.items():
        (tool.parent / name).symlink_to(target)
    (tmp_path / "catalog" / "toolkits" / "linked").symlink_to(tmp_path)
    result = run_toolcatalog(
        "check", "--catalog", tmp_path / "catalog", "--format", "json", cwd=tmp_path
    )
    assert result.returncode == 1
    output = [
        (one["path"].rpartition("/")[2], one["rule"])
        for one in json.loads(result.stdout)
        if one["severity"] == "error"
    ]
    assert {*targets, "linked"} <= {name for name, _ in output}
    assert "SECRET" not in result.stdout + result.stderr
    build = run_toolcatalog(
        "build",
        "--catalog",
        tmp_path / "catalog",
        "--out",
        tmp_path / "build",
        "--no-site",
        cwd=tmp_path,
    )
    assert (build.returncode, (tmp_path / "build" / "current").exists()) == (1, False)


def test_hard_links_are_read_as_files(tmp_path: Path) -> None:
    """Git keeps none; nothing writes through them."""
    tool = small(tmp_path)
    os.link(tool, tmp_path / "beside.yaml")
    run_successfully(
        "build", "--catalog", tmp_path / "catalog", "--out", tmp_path / "build", "--no-site"
    )
    run_successfully(
        "deprecate", "MAIL_SEND", "--catalog", tmp_path / "catalog", "--reason", "It is old."
    )
    assert "It is old." in tool.read_text()
    assert "It is old." not in (tmp_path / "beside.yaml").read_text()


# --- guesses of keys

ROUNDS = 4000


def test_wrong_keys_take_the_same_time(tmp_path: Path) -> None:
    """Unknown, revoked and almost right keys; the difference of medians is below the noise.

    A right key may take less: its answer tells that it is right.
    """
    file = tmp_path / "keys.json"
    right, key = api_keys.create(file, "default", None, None)
    revoked, gone = api_keys.create(file, "default", None, None)
    api_keys.revoke(file, gone.id)
    for _ in range(50):
        api_keys.create(file, "default", None, None)
    ring = api_keys.KeyRing(file)
    assert ring.find(right.encode()) is not None
    wrong = {
        "revoked": revoked,
        "unknown": create_key(tmp_path / "other.json"),
        "one letter": right[:-1] + ("a" if right[-1] != "a" else "b"),
        "half": right[: len(right) // 2] + "x" * (len(right) - len(right) // 2),
    }
    secrets = {name: secret.encode() for name, secret in wrong.items()}
    assert not any(ring.find(secret) for secret in secrets.values())
    times: dict[str, list[int]] = {name: [] for name in secrets}
    names = [*secrets]
    for round_ in range(ROUNDS):
        first = round_ % len(names)
        for name in names[first:] + names[:first]:  # each in each place
            began = time.perf_counter_ns()
            ring.find(secrets[name])
            times[name].append(time.perf_counter_ns() - began)
    medians = {name: statistics.median(values) for name, values in times.items()}
    spread = statistics.quantiles(times["unknown"], n=10)
    noise = max(spread[-1] - spread[0], medians["unknown"] * 0.25)
    assert max(medians.values()) - min(medians.values()) < noise, (medians, noise)
    assert key.id in file.read_text()


# --- what docs/explanation/security-model.md says


def test_threat_model_names_existing_tests() -> None:
    """Or says that a threat is not mitigated."""
    folder = ROOT / "docs" / "explanation"
    pages = ("security-model.md", "security-of-operation.md")
    document = "\n".join((folder / page).read_text() for page in pages)
    threats = re.findall(r"(?ms)^- \*\*.*?(?=^- |^#|\Z)", document)
    assert len(threats) > 50
    assert find_missing_tests(document) == []
    assert [one for one in threats if "::" not in one and "*Not mitigated*" not in one] == []


def test_locked_packages_have_hashes() -> None:
    """Each line of a lock file has a SHA-256 and no URL."""
    for file in sorted((ROOT / "requirements").glob("*.txt")):
        blocks = re.split(r"\n(?=\S)", re.sub(r"(?m)^ *#.*\n", "", file.read_text()).strip())
        packages = [block for block in blocks if re.match(r"[a-z0-9]", block)]
        assert packages, file
        assert [
            block.partition(" ")[0]
            for block in packages
            if "--hash=sha256:" not in block or "://" in block
        ] == []
        assert [block for block in blocks if block.startswith("-")] == []
