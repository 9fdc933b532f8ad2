"""Query parameters: query strings and bodies to typed requests, cursors, and validation errors.

Every spelling that client libraries use is accepted. Lists may be separated by commas, repeated,
written with `[]`, or any mix of these. Objects use brackets, percent-encoded or not. An empty value
counts as absent, and an unknown parameter is ignored.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import orjson

from toolcatalog import names, versions
from toolcatalog.api.error_responses import ErrorDetail, invalid_request
from toolcatalog.store.store import Filters, VersionPins

MAX_PAGE_SIZE = 1000  # items of a page
MAX_NAMES = 1000  # values of all list parameters of a request together
DEFAULT_PAGE_SIZE = 20
MAX_QUERY_LENGTH = 4000  # characters
MAX_BODY_SIZE = 64 * 1024  # bytes
_MAX_FIELDS = 5000
SORT_KEYS = ("relevance", "slug", "name", "version")
SORT_ORDERS = ("asc", "desc")

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,9})?")
_CURSOR = re.compile(r"([1-9][0-9]{0,17}):([1-9][0-9]{0,3})")
_INDEXED = re.compile(r"(\w+)\[[0-9]*\]")
_BRACKETS = re.compile(r"toolkit_versions\[([^\]]*)\]")


class Page(NamedTuple):
    """A requested page: its number, from 1, and its number of items."""

    number: int
    size: int

    @property
    def start(self) -> int:
        """The number of items before the page."""
        return (self.number - 1) * self.size


def encode_cursor(number: int, size: int) -> bytes:
    """Return the cursor of a page.

    A cursor is "a base64 encoded string of the page number and the page size".
    """
    return binascii.b2a_base64(b"%d:%d" % (number, size), newline=False)


@dataclass(frozen=True, slots=True)
class ToolParams:
    """The parameters of get: the version of the tool.

    `version` is None if the parameter `version` is absent or asks for the newest.
    """

    version: str | None
    pins: VersionPins


_NO_PINS = VersionPins()
_NEWEST_VERSION = ToolParams(None, _NO_PINS)


@dataclass(frozen=True, slots=True)
class SessionParams:
    """The parameters of a session's list of meta tools.

    `page` is None if the request asks for all of them.
    """

    id: str
    page: Page | None


class ListParams(NamedTuple):
    """The parameters of list, all well formed; whether the named items exist is not checked here.

    If `slugs` is given, the filters are ignored.
    """

    slugs: tuple[str, ...] | None
    filters: Filters
    pins: VersionPins
    page: Page
    sort_by: str
    descending: bool


class ToolkitListParams(NamedTuple):
    """The parameters of the list of toolkits."""

    category: str | None
    words: tuple[str, ...]
    only_custom: bool
    include_deprecated: bool
    by_usage: bool
    page: Page


class ServerListParams(NamedTuple):
    """The parameters of the list of MCP servers; `version` None means any."""

    search: str
    version: str | None
    updated_since: datetime | None
    page: Page


def parse_tool_params(query: bytes) -> tuple[ToolParams, Sequence[ErrorDetail]]:
    """Parse the query string of get; return the parameters and all errors."""
    if not query:
        return _NEWEST_VERSION, ()
    reader = _QueryReader(query)
    asked = reader.read_text("version")
    version, pins = reader.parse_version("version", asked), reader.read_pins()
    reader.check_name_count()
    # `version` takes precedence over the pins
    pins = _NO_PINS if asked == versions.LATEST else pins
    return ToolParams(version, pins), tuple(reader.errors)


def invalid_slug_error(slug: str) -> ErrorDetail:
    """Return the error for a path of get whose last part is not a tool slug."""
    capitals = slug.upper().replace(" ", "_")
    example = (
        f": try {capitals}."
        if names.is_valid(names.TOOL_SLUG, capitals)
        else ", as in GITHUB_CREATE_ISSUE."
    )
    wanted = (
        f"Slugs have capital letters, digits, `_` and `-`, and at most {names.MAX_LENGTH} "
        f"characters"
    )
    return _invalid_parameter("tool_slug", slug, "a tool slug", wanted + example)


def parse_list_params(query: bytes) -> tuple[ListParams, Sequence[ErrorDetail]]:
    """Parse the query string of list; return the parameters and all errors."""
    reader = _QueryReader(query)
    text = reader.read_query()
    sort_by = reader.read_choice("sort_by", SORT_KEYS) or ("relevance" if text else "slug")
    order = reader.read_choice("order", SORT_ORDERS) or (
        "desc" if sort_by in ("relevance", "version") else "asc"
    )
    slugs = reader.read_list("tool_slugs") or None
    filters = Filters(
        toolkits=reader.read_list("toolkit_slug") or None,
        auth_configs=reader.read_list("auth_config_ids"),
        tags=reader.read_list("tags"),
        scopes=reader.read_list("scopes"),
        only_important=reader.read_choice("important", ("true", "false")) == "true",
        include_deprecated=reader.read_boolean("include_deprecated", True),
        query=text,
    )
    question = ListParams(
        slugs, filters, reader.read_pins(), reader.read_page(), sort_by, order == "desc"
    )
    reader.check_name_count()
    return question, tuple(reader.errors)


def parse_toolkit_list_params(query: bytes) -> tuple[ToolkitListParams, Sequence[ErrorDetail]]:
    """Parse the query string of the list of toolkits; return the parameters and all errors."""
    reader = _QueryReader(query)
    managed_by = reader.read_choice("managed_by", ("composio", "all", "project"))
    type = reader.read_choice("type", ("native", "custom", "all"))
    params = ToolkitListParams(
        category=reader.read_text("category"),
        words=tuple(dict.fromkeys(reader.read_search("search").casefold().split())),
        only_custom=managed_by == "project" or type == "custom",
        include_deprecated=reader.read_boolean("include_deprecated", True),
        by_usage=reader.read_choice("sort_by", ("usage", "alphabetically")) == "usage",
        page=reader.read_page(),
    )
    return params, reader.errors


def parse_server_list_params(query: bytes) -> tuple[ServerListParams, Sequence[ErrorDetail]]:
    """Parse the query string of the list of MCP servers; return the parameters and all errors."""
    reader = _QueryReader(query)
    params = ServerListParams(
        search=reader.read_search("search").casefold(),
        version=reader.read_text("version"),
        updated_since=reader.read_time("updated_since"),
        page=reader.read_page(),
    )
    return params, reader.errors


def parse_page_params(query: bytes) -> tuple[Page, Sequence[ErrorDetail]]:
    """Parse the query string of a list without filters; return the page and all errors."""
    reader = _QueryReader(query)
    return reader.read_page(), reader.errors


def parse_version_params(query: bytes) -> tuple[str | None, Sequence[ErrorDetail]]:
    """Parse the query string of a toolkit; return the version (None: the newest) and all errors."""
    reader = _QueryReader(query)
    return reader.parse_version("version", reader.read_text("version")), reader.errors


def parse_session_params(
    session_id: str, query: bytes, body: bytes
) -> tuple[SessionParams, Sequence[ErrorDetail]]:
    """Parse the path, query string and body of the session operation.

    Returns the parameters and all errors.
    """
    reader = _QueryReader(query)
    if not names.is_valid(names.SESSION_ID, session_id):
        reader.add_error(
            "session_id",
            session_id,
            "a session id",
            "Session ids start with `trs_`, as in trs_support.",
        )
    if fault := _validate_body(body):
        reader.errors.append(invalid_request(f"body: {fault}.", "Send a JSON object, or no body."))
    paged = reader.read_text("limit") is not None or reader.read_text("cursor") is not None
    return SessionParams(session_id, reader.read_page() if paged else None), reader.errors


def _validate_body(body: bytes) -> str:
    """Return what is wrong with the optional body of a GET, or an empty string.

    All of its fields are ignored.
    """
    if len(body) > MAX_BODY_SIZE:
        return "more than 64 KiB"
    try:
        value = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        return "not JSON"
    return "" if isinstance(value, dict) else "not a JSON object"


def _invalid_parameter(name: str, value: str, expected: str, fix: str) -> ErrorDetail:
    shown = value if len(value) <= 80 else value[:77] + "..."
    return invalid_request(f"{name[:120]}: {shown!r} is not {expected}.", fix)


def _decode_pair(pair: bytes) -> tuple[str, str]:
    """Return the name and the value of a parameter. Raises UnicodeDecodeError."""
    name, _, value = pair.partition(b"=")
    return _decode_text(name), _decode_text(value)


def _decode_text(text: bytes) -> str:
    decoded = text.replace(b"+", b" ").decode()
    return unquote_to_bytes(decoded).decode() if "%" in decoded else decoded


class _QueryReader:
    """Reads one query string.

    Each method reads one parameter. If the parameter is invalid, the method records an error and
    returns the default.
    """

    def __init__(self, query: bytes) -> None:
        self.errors: list[ErrorDetail] = []
        self.name_counts: dict[str, int] = {}  # values of each list parameter that was read
        self.values: dict[str, list[str]] = {}  # by the exact name
        self.list_values: dict[str, list[str]] = {}  # by the name without `[]` or `[0]`
        for name, value in self._parse_pairs(query) if query else ():
            if value:
                indexed = _INDEXED.fullmatch(name) if "[" in name else None
                self.values.setdefault(name, []).append(value)
                self.list_values.setdefault(indexed[1] if indexed else name, []).append(value)

    def _parse_pairs(self, query: bytes) -> list[tuple[str, str]]:
        """Return the decoded names and values, as `urllib.parse.parse_qsl` does."""
        pairs = query.split(b"&", _MAX_FIELDS)
        if len(pairs) > _MAX_FIELDS:
            self.errors.append(
                invalid_request(
                    f"query string: more than {_MAX_FIELDS} parameters.",
                    "Join values by commas, or send fewer.",
                )
            )
            return []
        try:
            return [_decode_pair(pair) for pair in pairs if pair]
        except UnicodeDecodeError:
            self.errors.append(
                invalid_request(
                    "query string: not UTF-8.", "Percent-encode the parameters as UTF-8."
                )
            )
        return []

    def add_error(self, name: str, value: str, expected: str, fix: str) -> None:
        self.errors.append(_invalid_parameter(name, value, expected, fix))

    def read_text(self, name: str) -> str | None:
        """Return the value of a single-valued parameter; None if it is absent or empty."""
        values = self.values.get(name)
        if values is None:
            return None
        if len(different := {*values}) > 1:
            self.errors.append(
                invalid_request(
                    f"{name[:120]}: given {len(different)} times with different values.",
                    f"Send {name[:120]} once.",
                )
            )
        return values[0]

    def read_list(self, name: str) -> tuple[str, ...]:
        """Return the distinct values of a list parameter in the given order."""
        values = self.list_values.get(name)
        if values is None:
            return ()
        found = [word.strip() for value in values for word in value.split(",")]
        words = tuple(dict.fromkeys(word for word in found if word))
        return words if self.has_room_for(name, len(words)) else ()

    def has_room_for(self, name: str, count: int) -> bool:
        """Count the values of a list parameter; return whether they are few enough.

        Otherwise the caller ignores its values, and `check_name_count` records the error.
        """
        self.name_counts[name] = count
        return self._total_of(name) <= MAX_NAMES

    def _total_of(self, name: str) -> int:
        """Return how many values count together with those of a list parameter.

        With `tool_slugs` all filters are ignored, so its values count on their own.
        """
        slugs = self.name_counts.get("tool_slugs", 0)
        return slugs if name == "tool_slugs" else sum(self.name_counts.values()) - slugs

    def check_name_count(self) -> None:
        """Record an error if `tool_slugs`, or all other lists together, have over 1000 values."""
        if sum(self.name_counts.values()) <= MAX_NAMES:
            return
        filters = [name for name in self.name_counts if name != "tool_slugs"]
        for parameters in (["tool_slugs"], filters):
            total = self._total_of(parameters[0]) if parameters else 0
            if total > MAX_NAMES:
                lists = ", ".join(parameters)
                self.errors.append(
                    invalid_request(
                        f"{lists}: {total} values, at most {MAX_NAMES} are allowed.",
                        f"Send at most {MAX_NAMES} values of {lists} in a request.",
                    )
                )

    def read_choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        value = self.read_text(name)
        if value is None or value in choices:
            return value
        self.add_error(
            name,
            value,
            "one of " + ", ".join(choices),
            f"Set {name} to one of {', '.join(choices)}, or leave it out.",
        )
        return None

    def read_boolean(self, name: str, default: bool) -> bool:
        value = self.read_text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false", "1", "0"):
            self.add_error(
                name, value, "true or false", f"Set {name} to true or false, or leave it out."
            )
            return default
        return value.lower() in ("true", "1")

    def read_time(self, name: str) -> datetime | None:
        value = self.read_text(name)
        try:
            time = datetime.fromisoformat(value) if value else None
        except ValueError:
            time = None
        if value and (time is None or time.tzinfo is None):
            fix = f"Set {name} to a time such as 2025-10-27T00:00:00Z, or leave it out."
            self.add_error(name, value, "an RFC 3339 time", fix)
            return None
        return time

    def read_query(self) -> str:
        """Return the search text, stripped; empty if there is none.

        `query` takes precedence over `search`.
        """
        query, search = self.read_search("query"), self.read_search("search")
        return query or search

    def read_search(self, name: str) -> str:
        """Return a search text, stripped; empty if it is absent or too long."""
        text = (self.read_text(name) or "").strip()
        if len(text) <= MAX_QUERY_LENGTH:
            return text
        line = f"{name}: {len(text)} characters, at most {MAX_QUERY_LENGTH} are allowed."
        fix = f"Shorten {name} to {MAX_QUERY_LENGTH} characters."
        self.errors.append(invalid_request(line, fix))
        return ""

    def read_page(self) -> Page:
        size, cursor = self.read_limit(), self.read_text("cursor")
        return Page(1, size) if cursor is None else self.decode_cursor(cursor)

    def read_limit(self) -> int:
        """Return the page size: a whole number from 1, also written as `50.0`.

        More than 1000 counts as 1000.
        """
        value = self.read_text("limit")
        if value is None:
            return DEFAULT_PAGE_SIZE
        # a float would round 0.99999999999999999999 to 1
        number = Decimal(value) if _NUMBER.fullmatch(value) else Decimal(0)
        if number < 1 or number != number.to_integral_value():
            self.add_error(
                "limit",
                value,
                "a whole number from 1",
                f"Set limit to a number from 1 to {MAX_PAGE_SIZE}, or leave it out.",
            )
            return DEFAULT_PAGE_SIZE
        return MAX_PAGE_SIZE if number > MAX_PAGE_SIZE else int(number)

    def decode_cursor(self, value: str) -> Page:
        """Return the page of a cursor; its page size takes precedence over `limit`."""
        try:
            match = _CURSOR.fullmatch(
                base64.b64decode(value.encode("ascii"), validate=True).decode("ascii")
            )
        except (binascii.Error, UnicodeError):
            match = None
        page = Page(int(match[1]), int(match[2])) if match else None
        if (
            page is None
            or page.size > MAX_PAGE_SIZE
            or encode_cursor(page.number, page.size) != value.encode()
        ):
            self.add_error(
                "cursor",
                value,
                "a cursor of this API",
                "Use next_cursor of the page before, or leave cursor out for the first page.",
            )
            return Page(1, DEFAULT_PAGE_SIZE)
        return page

    def parse_version(self, name: str, value: str | None) -> str | None:
        """Return a version, or None for the newest."""
        if value is None or value == versions.LATEST:
            return None
        if versions.is_version(value):
            return value
        self.add_error(name, value, "a version", "Use `latest`, or a version like 20251027_00.")
        return None

    def read_pins(self) -> VersionPins:
        """Return the version pins of `toolkit_versions`.

        A plain value applies to every toolkit, a bracket to one toolkit. A bracket takes
        precedence.
        """
        if not any("toolkit_versions" in name for name in self.values):
            return _NO_PINS
        everywhere = self.parse_version("toolkit_versions", self.read_text("toolkit_versions"))
        keys = {
            bracket[1]: key
            for key in self.values
            if "[" in key and (bracket := _BRACKETS.fullmatch(key))
        }
        if keys and not self.has_room_for("toolkit_versions", len(keys)):
            keys = {}
        toolkits = {
            toolkit: self.parse_version(key, self.read_text(key)) for toolkit, key in keys.items()
        }
        return VersionPins(default=everywhere, toolkits=toolkits)
