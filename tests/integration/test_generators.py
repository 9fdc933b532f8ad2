"""Clients that generators make from the OpenAPI document: in Python and in TypeScript."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.paths import DATA, ROOT, SHIPPED_CATALOG
from support.server import Server
from toolcatalog import openapi

GENERATORS = ROOT / ".venv" / "generators" / "bin"
NODE_FOLDER = DATA / "generators"
PROGRAM = """
import json, sys
from tool_catalog_client import AuthenticatedClient
from tool_catalog_client.api.toolkits import get_toolkit, list_toolkits
from tool_catalog_client.api.tools import get_tool, list_tool_slugs, list_tools

url, key = sys.argv[1:]
client = AuthenticatedClient(
    base_url=url, token=key, prefix="", auth_header_name="x-api-key",
    raise_on_unexpected_status=True,
)
with client:
    page = list_tools.sync(client=client, query="create an issue", toolkit_slug="github", limit=3)
    tool = get_tool.sync("GITHUB_CREATE_ISSUE", client=client)
    toolkits = list_toolkits.sync(client=client, limit=1000)
    toolkit = get_toolkit.sync("github", client=client)
    missing = get_tool.sync("GITHUB_CREATE_NOTHING", client=client)
    print(json.dumps({
        "found": [item.slug for item in page.items],
        "inputs": sorted(tool.input_parameters.additional_keys),
        "toolkits": len(toolkits.items),
        "homepage": toolkit.meta.app_url,
        "slugs": len(list_tool_slugs.sync(client=client)),
        "missing": missing.error.status,
    }))
"""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The OpenAPI document as a file."""
    file = tmp_path_factory.mktemp("openapi") / "openapi.json"
    file.write_text(json.dumps(openapi.build_document()))
    return file


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Run a command that must succeed; return what it prints."""
    result = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={"PATH": f"{GENERATORS}:{Path(sys.executable).parent}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


@pytest.mark.skipif(
    not (GENERATORS / "openapi-python-client").exists(),
    reason="openapi-python-client is not installed: run scripts/apart generators",
)
def test_generated_python_client(document: Path, shipped: Server, tmp_path: Path) -> None:
    """The generator reports no omissions, and the client works."""
    printed = run(
        "openapi-python-client",
        "generate",
        *("--path", document, "--output-path", tmp_path / "client", "--meta", "none"),
        cwd=tmp_path,
    )
    assert "arning" not in printed
    (tmp_path / "client").rename(tmp_path / "tool_catalog_client")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    python = GENERATORS / "python"
    answer: dict[str, Any] = json.loads(
        run(python, program, shipped.url, shipped.key, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    )
    assert answer["found"][0] == "GITHUB_CREATE_ISSUE"
    assert "title" in answer["inputs"]
    assert (answer["homepage"], answer["missing"]) == ("https://github.com", 404)
    assert answer["toolkits"] == len([*SHIPPED_CATALOG.glob("toolkits/*/toolkit.yaml")])
    assert answer["slugs"] == len([*SHIPPED_CATALOG.glob("toolkits/*/[A-Z]*")])


@pytest.mark.skipif(
    shutil.which("node") is None or not (NODE_FOLDER / "node_modules" / ".bin").is_dir(),
    reason="openapi-typescript is not installed: run scripts/install-clients tests/data/generators",
)
def test_generated_typescript_types(document: Path, tmp_path: Path) -> None:
    """The types compile; a wrong field does not."""
    for path in ("package.json", "program.ts"):
        shutil.copy(NODE_FOLDER / path, tmp_path)
    (tmp_path / "node_modules").symlink_to(NODE_FOLDER / "node_modules")
    tools = NODE_FOLDER / "node_modules" / ".bin"
    run(tools / "openapi-typescript", document, "-o", "types.d.ts", cwd=tmp_path)
    options = "--noEmit --strict --module nodenext --target es2022 --allowImportingTsExtensions"
    run(tools / "tsc", *options.split(), "program.ts", cwd=tmp_path)
