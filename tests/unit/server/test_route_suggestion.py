"""The path that a client probably meant."""

import pytest

from toolcatalog.server.route_suggestion import suggest_route

TEMPLATES = (
    "/api/v3/tools",
    "/api/v3/tools/enum",
    "/api/v3/tools/{slug}",
    "/api/v3/toolkits/{slug}",
    "/api/v3/tool_router/session/{id}/tools",
    "/api/v3.1/tools",
    "/openapi.json",
    "/healthz",
)


@pytest.mark.parametrize(
    ("path", "suggestion"),
    [
        ("/api/v3/tool", "/api/v3/tools"),
        ("/api/v3/tools/", "/api/v3/tools"),
        ("/API/V3/Tools", "/api/v3/tools"),
        ("/tools", "/api/v3/tools"),
        ("/tools/GITHUB_X", "/api/v3/tools/GITHUB_X"),
        ("/api/v3/tool/GITHUB_X", "/api/v3/tools/GITHUB_X"),
        ("/api/v3/toolkit/github", "/api/v3/toolkits/github"),
        ("/api/v3/tools/enums", "/api/v3/tools/enum"),
        ("/api/v3/tool_router/sessions/trs_a/tools", "/api/v3/tool_router/session/trs_a/tools"),
        ("/health", "/healthz"),
        ("/openapi.yaml", "/openapi.json"),
        ("/nothing/like/it", ""),
        ("/", ""),
        ("/" * 5000, ""),
        ("/" + "a" * 100_000, ""),
    ],
)
def test_suggest_route(path: str, suggestion: str) -> None:
    """A misspelled or missing segment is replaced, a slug or id is kept."""
    assert suggest_route(path, TEMPLATES, "/api/v3") == suggestion
