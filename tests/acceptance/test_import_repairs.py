"""Imported files pass `check`: refused values are replaced or left out, and reported."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from support.command import run_successfully, run_toolcatalog
from toolcatalog.catalog import yaml_reader

KEY_BODY = "MIIEowIBAAKCAQEAq3Vn9zqkYlx0FhKQw2Jd8vTgLsRmXyBpZcNuHfWaEoGtDiSk"
PRIVATE_KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\n-----END RSA PRIVATE KEY-----"
STRIPE = "sk_live_" + "9aB3kQ7vX2mN5pR8tW1y"
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"title": "Certs", "description": f"Send {STRIPE} with each call."},
    "security": [],
}


def document(**operation: Any) -> dict[str, Any]:
    """An OpenAPI document of one operation."""
    path = {"post": {"operationId": "add", "responses": {}, **operation}}
    return {**DOCUMENT, "paths": {"/add": path}}


def imported(tmp_path: Path, value: Any, *options: object) -> tuple[dict[str, Any], str]:
    """Import a document with one tool, which passes `check`; return the tool and the messages."""
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(value))
    result = run_toolcatalog("import", "openapi", file, "--catalog", tmp_path / "catalog", *options)
    assert result.returncode == 0, result.stderr
    checked = run_toolcatalog("check", "--catalog", tmp_path / "catalog", "--format", "concise")
    assert checked.returncode == 0, checked.stdout
    (tool,) = (tmp_path / "catalog" / "toolkits").glob("*/*/*.yaml")
    parsed: dict[str, Any] = yaml_reader.parse_fast(tool.read_bytes())
    return parsed, result.stderr


def body(**properties: Any) -> dict[str, Any]:
    """A request body with these properties."""
    return {
        "content": {"application/json": {"schema": {"type": "object", "properties": properties}}}
    }


def test_patterns_beyond_the_limit_are_removed_at_once(tmp_path: Path) -> None:
    """Not one after another: each check of the rest takes a second."""
    large = {
        f"p{number}": {"type": "string", "pattern": f"\\p{{L}}{{{100 + number}}}"}
        for number in range(200)
    }
    tool, messages = imported(tmp_path, document(requestBody=body(**large)))
    assert len(tool["input_parameters"]) == 200
    assert "too many or too large patterns" in messages


def test_secrets_are_removed(tmp_path: Path) -> None:
    """A private key in a description, a key in an example, a password in a URL."""
    value = document(
        description=f"Add a key:\n{PRIVATE_KEY}\nIt is stored.",
        requestBody=body(
            token={"type": "string", "example": STRIPE},
            url={"type": "string", "description": "Like https://root:hunter22@db.acme.io/x."},
            mode={"type": "string", "enum": [STRIPE, "plain"], "default": STRIPE},
        ),
    )
    tool, output = imported(tmp_path, value)
    assert tool["description"] == "Add a key:\n<private-key>\nIt is stored."
    inputs = tool["input_parameters"]
    assert inputs["token"]["examples"] == ["<secret>"]
    assert inputs["url"]["description"] == "Like https://user:password@db.acme.io/x."
    assert inputs["mode"] == {"type": "string", "enum": ["plain"]}
    assert "a text that the rule `secret` refuses: replaced in part" in output
    assert "a text that the rule `secret` refuses: left out" in output
    toolkit = (tmp_path / "catalog/toolkits/certs/toolkit.yaml").read_text()
    assert "Send <secret> with each call." in toolkit


def test_hidden_characters_and_script_links_are_removed(tmp_path: Path) -> None:
    """With any parameter whose name contains a hidden character."""
    value = document(
        description="Add\u200b a key. See javascript:alert(1) for more.",
        requestBody=body(**{"a\u202eb": {"type": "string"}, "name": {"type": "string"}}),
    )
    tool, output = imported(tmp_path, value)
    assert tool["description"] == "Add a key. See (link removed) for more."
    assert [*tool["input_parameters"]] == ["name"]
    assert "the rule `hidden-character` refuses" in output


def test_large_definitions_are_reported(tmp_path: Path) -> None:
    """A tool of more than 32 KB is imported with a note."""
    parameters = {
        f"p{number}": {"type": "string", "description": "x" * 400} for number in range(90)
    }
    _, output = imported(tmp_path, document(requestBody=body(**parameters)))
    assert "the definition takes about" in output


def test_unknown_auth_means_auth_is_required(tmp_path: Path) -> None:
    """Unless the user passes `--no-auth`."""
    value = {key: inner for key, inner in document().items() if key != "security"}
    tool, output = imported(tmp_path, value)
    assert "no_auth" not in tool
    assert "authentication is taken as needed" in output
    (tmp_path / "open").mkdir()
    tool, output = imported(tmp_path / "open", value, "--no-auth")
    assert tool["no_auth"] is True
    assert "authentication is taken as needed" not in output


def test_source_is_kept_in_the_file(tmp_path: Path) -> None:
    """Method and path are in the file and the toolkit's index, not in the API."""
    tool, output = imported(tmp_path, document())
    assert tool["source"] == {"method": "POST", "path": "/add"}
    assert "method and path" not in output
    folder = tmp_path / "build"
    run_successfully("build", "--catalog", tmp_path / "catalog", "--out", folder, "--no-site")
    (served,) = json.loads((folder / "current/tools.json").read_bytes())
    assert "source" not in served
    (index,) = (folder / "current/toolkits/certs").glob("*.json")
    assert json.loads(index.read_bytes())["tools"][0]["source"] == tool["source"]


# Several files


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """Write files below a folder: the path of the first."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / next(iter(files))


FILES = {
    "api.yaml": """\
openapi: 3.0.0
info:
  title: Shop
  description: {$ref: 'texts.yaml#/intro'}
security: []
paths:
  /orders:
    get: {$ref: resources/orders.yaml#/list}
    post: {$ref: 'resources/orders.yaml#/create'}
""",
    "texts.yaml": "intro: Buy things.\n",
    "resources/orders.yaml": """\
list:
  operationId: listOrders
  parameters: [{$ref: ../shared/parameters.yaml#/page}]
  responses: {}
create:
  operationId: createOrder
  requestBody:
    content:
      application/json:
        schema: {$ref: '#/order'}
        example: {$ref: not-a-reference}
  responses: {}
order:
  type: object
  properties:
    parent: {$ref: '#/order'}
    price: {$ref: '../shared/money.json'}
""",
    "shared/parameters.yaml": "page: {name: page, in: query, schema: {type: integer}}\n",
    "shared/money.json": '{"type": "number", "description": "Euro."}\n',
}


def test_document_of_several_files(tmp_path: Path) -> None:
    """References work within and between files, also to strings."""
    source = write_files(tmp_path, FILES)
    run_successfully("import", "openapi", source, "--catalog", tmp_path / "catalog")
    kit = tmp_path / "catalog/toolkits/shop"
    assert "description: Buy things." in (kit / "toolkit.yaml").read_text()
    listing = yaml_reader.parse_fast((kit / "SHOP_LIST_ORDERS/00000000_00.yaml").read_bytes())
    assert listing["input_parameters"] == {"page": {"type": "integer"}}
    assert listing["source"] == {"method": "GET", "path": "/orders"}
    create = yaml_reader.parse_fast((kit / "SHOP_CREATE_ORDER/00000000_00.yaml").read_bytes())
    assert create["input_parameters"]["price"] == {"type": "number", "description": "Euro."}
    assert create["input_parameters"]["parent"]["type"] == "object"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "resources/orders.yaml",
            "list: {parameters: 5}\ncreate: {}\n",
            "resources/orders.yaml:1:20: #/list/parameters: `parameters` is not a list",
        ),
        (
            "resources/orders.yaml",
            "list: {$ref: ../gone.yaml}\ncreate: {}\n",
            "and there is no file gone.yaml in its folder",
        ),
        (
            "resources/orders.yaml",
            "list: {$ref: ../../../etc/passwd}\ncreate: {}\n",
            "which leads out of the folder of the document",
        ),
        *(
            (
                "resources/orders.yaml",
                f"list: {{$ref: ../{secret}}}\ncreate: {{}}\n",
                "which is not a JSON, YAML or Markdown file",
            )
            for secret in (".env", "id_rsa", ".git/config.yaml")
        ),
        (
            "resources/orders.yaml",
            "list: {$ref: 'https://example.com/a.yaml'}\ncreate: {}\n",
            "which is another document",
        ),
        ("resources/orders.yaml", "a: [\n", "resources/orders.yaml:2:1:"),
    ],
)
def test_problems_in_other_files_are_located(
    name: str, text: str, sentence: str, tmp_path: Path
) -> None:
    """With file and line."""
    folder = tmp_path / "a" / "b"
    source = write_files(folder, {**FILES, name: text})
    result = run_toolcatalog("import", "openapi", source, "--catalog", tmp_path / "catalog")
    assert (result.returncode, sentence in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "catalog").exists()


# URLs


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/openapi.json")
            self.end_headers()
            return
        self.send_response(200 if self.path == "/openapi.json" else 404)
        self.end_headers()
        self.wfile.write(json.dumps(document()).encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address() -> Any:
    """The URL of a small HTTP server with an OpenAPI document."""
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_url_is_downloaded_only_on_request(address: str, tmp_path: Path) -> None:
    command = ["import", "openapi", f"{address}/openapi.json", "--catalog", tmp_path / "catalog"]
    result = run_toolcatalog(*command)
    assert result.returncode == 2
    assert f"{address}/openapi.json is not downloaded: add --allow-network" in result.stderr
    result = run_toolcatalog(*command, "--allow-network")
    assert (result.returncode, "Imported 1 tool " in result.stderr) == (0, True), result.stderr


@pytest.mark.parametrize(
    ("path", "sentence"),
    [("/moved", "redirects to /openapi.json: give that address"), ("/gone", "answers 404")],
)
def test_url_without_a_document_is_refused(
    path: str, sentence: str, address: str, tmp_path: Path
) -> None:
    result = run_toolcatalog(
        "import",
        "openapi",
        f"{address}{path}",
        "--catalog",
        tmp_path / "catalog",
        "--allow-network",
    )
    assert (result.returncode, sentence in result.stderr) == (2, True), result.stderr


def test_remote_http_url_is_refused(tmp_path: Path) -> None:
    """Before anything is sent."""
    url = "http://192.0.2.1/openapi.json"
    result = run_toolcatalog("import", "openapi", url, "--catalog", tmp_path, "--allow-network")
    assert (result.returncode, "is not an https URL" in result.stderr) == (2, True), result.stderr
