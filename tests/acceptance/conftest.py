"""Fixtures for tests with real client libraries and the shipped catalog."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from support.api_clients import CLIENT_LIBRARIES, ApiClient, ClientLibrary
from support.paths import SHIPPED_CATALOG
from support.reference_model import ReferenceModel, ReferenceVersion, read_yaml
from support.server import Server, create_key


@pytest.fixture(scope="session")
def clients(
    shipped: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[ClientLibrary, ApiClient]]:
    """The clients that can be driven here, started together."""
    folder = tmp_path_factory.mktemp("clients")
    started = {
        kind: ApiClient(kind, shipped, folder / f"{index}.log")
        for index, kind in enumerate(CLIENT_LIBRARIES)
        if not kind.missing_reason()
    }
    hellos = {kind: client.read_answer() for kind, client in started.items()}
    assert hellos == {kind: {"client": kind.name} for kind in started}
    yield started
    for client in started.values():
        client.stop()


@pytest.fixture(
    scope="session", params=CLIENT_LIBRARIES, ids=lambda kind: kind.name.replace(" ", "-")
)
def client(request: pytest.FixtureRequest, clients: Mapping[ClientLibrary, ApiClient]) -> ApiClient:
    if reason := request.param.missing_reason():
        pytest.skip(f"{request.param.name}: {reason}")
    return clients[request.param]


@pytest.fixture(scope="session")
def catalog() -> ReferenceModel:
    return ReferenceModel(SHIPPED_CATALOG)


@pytest.fixture(scope="session")
def newest(catalog: ReferenceModel) -> list[ReferenceVersion]:
    """The newest version of every tool, by slug."""
    return [catalog.tools[slug][-1] for slug in sorted(catalog.tools)]


@pytest.fixture(scope="session")
def sessions() -> dict[str, Any]:
    return {path.stem: read_yaml(path) for path in sorted(SHIPPED_CATALOG.glob("sessions/*.yaml"))}


@pytest.fixture(scope="session")
def visible_toolkits() -> tuple[str, ...]:
    """The toolkits of the limited key."""
    return ("github", "slack")


@pytest.fixture(scope="session")
def keys(
    shipped: Server,
    sessions: dict[str, Any],
    visible_toolkits: tuple[str, ...],
    clients: Mapping[ClientLibrary, ApiClient],
) -> dict[str, str | None]:
    """A key of every project that owns a session, of `nobody`, which owns none, and the `limited`
    one; the server knows them.
    """
    projects = sorted(
        {session.get("project", "default") for session in sessions.values()} - {"default"}
    )
    result: dict[str, str | None] = {
        project: create_key(shipped.keys_file, "--project", project)
        for project in [*projects, "nobody"]
    }
    result["limited"] = create_key(shipped.keys_file, "--toolkit", ",".join(visible_toolkits))
    any_client, deadline = next(iter(clients.values())), time.monotonic() + 30
    # a change holds within a second
    while "error" in any_client.call("tools", {"limit": 1}, key=result["limited"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return {"default": shipped.key, **result, "unknown": "tc_" + "0" * 36, "none": None}
