"""Slugs of imported tools and toolkits."""

import pytest

from toolcatalog.importers import slugs


@pytest.mark.parametrize(
    ("toolkit", "name", "slug"),
    [
        ("git", "git_log", "GIT_LOG"),
        ("mcp_git", "git_log", "MCP_GIT_LOG"),
        ("pagerduty", "pagerDutyListIncidents", "PAGERDUTY_LIST_INCIDENTS"),
        ("google-drive", "drive_files_list", "GOOGLE_DRIVE_FILES_LIST"),
        ("slack", "slack", "SLACK_SLACK"),
        ("weather", "weatherman", "WEATHER_WEATHERMAN"),
        ("time", "get_current_time", "TIME_GET_CURRENT_TIME"),
    ],
)
def test_no_word_is_repeated(toolkit: str, name: str, slug: str) -> None:
    """A tool name may start with words of the toolkit."""
    assert slugs.make_slugs(toolkit, [(name, name)]) == [slug]


def test_long_names_take_linear_time() -> None:
    """The prefix limits the words that can repeat it."""
    name = "_".join(["a"] * 200_000)
    assert slugs.plain_slug("a_a", name) == f"A_A_{'_'.join(['A'] * 199_998)}"


def test_tools_that_differ_only_in_the_prefix() -> None:
    """Both get a digest, independent of their order."""
    first, second = slugs.make_slugs("git", [("git_log", "git_log"), ("log", "log")])
    assert first != second
    assert {first[:8], second[:8]} == {"GIT_LOG_"}


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("PagerDuty API", "pagerduty"),
        ("Slack Web API", "slack"),
        ("GitHub v3 REST API", "github"),
        ("The API", "the_api"),
        ("", ""),
        ("日本", ""),
    ],
)
def test_toolkit_slug_from_title(title: str, slug: str) -> None:
    """The product without generic words; capitals within a brand separate nothing."""
    assert slugs.toolkit_slug_from_title(title) == slug


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("mcp-git", "git"),
        ("mcp-servers/everything", "everything"),
        ("Acme Weather/2", "acme_weather_2"),
        ("mcp-server", "mcp_server"),
        ("日本", ""),
    ],
)
def test_toolkit_slug_from_server(name: str, slug: str) -> None:
    """Without words for an MCP server."""
    assert slugs.toolkit_slug_from_server(name) == slug


@pytest.mark.parametrize(
    ("title", "name"), [("PagerDuty API", "PagerDuty"), ("API", "API"), ("Mapi", "Mapi")]
)
def test_product_name(title: str, name: str) -> None:
    """A title without `API` at its end."""
    assert slugs.product_name(title) == name
