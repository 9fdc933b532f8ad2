"""Query strings and bodies to typed questions, or to everything that is wrong with them. Pure;
knows no catalog.

Every spelling that the client libraries use is read alike: lists by commas, by repetition and by
`[]`, mixed; objects by brackets, percent-encoded or not; an empty value is an absent one; an
unknown parameter is ignored.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import parse_qsl

import orjson

from toolcatalog import names, versions
from toolcatalog.server.refusals import Refusal, invalid
from toolcatalog.store import Filters, Pins

MOST_ITEMS = 1000  # on a page, and in each list of names that a request contains
DEFAULT_ITEMS = 20
LONGEST_QUERY = 1000  # characters
LARGEST_BODY = 64 * 1024  # bytes
_MOST_FIELDS = 5000
SORTS = ("relevance", "slug", "name", "version")
ORDERS = ("asc", "desc")

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,9})?")
_CURSOR = re.compile(r"([1-9][0-9]{0,17}):([1-9][0-9]{0,3})")
_INDEXED = re.compile(r"(\w+)\[[0-9]*\]")
_BRACKETS = re.compile(r"toolkit_versions\[([^\]]*)\]")


class Page(NamedTuple):
    """A page asked for: its number, from 1, and how many items a page has."""

    number: int
    size: int

    @property
    def start(self) -> int:
        """How many items go before the page."""
        return (self.number - 1) * self.size


def cursor(number: int, size: int) -> bytes:
    """A page as a cursor: "a base64 encoded string of the page number and the page size"."""
    return binascii.b2a_base64(b"%d:%d" % (number, size), newline=False)


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """Get one tool in which version: `version` None where none is asked for by the parameter of
    that name.
    """

    version: str | None
    pins: Pins


@dataclass(frozen=True, slots=True)
class SessionQuestion:
    """List a session's meta tools: all of them where no page is asked for."""

    id: str
    page: Page | None


class ListQuestion(NamedTuple):
    """List tools: every parameter, well formed; whether what it names exists is not asked here.
    Slugs go before filters.
    """

    slugs: tuple[str, ...] | None
    filters: Filters
    pins: Pins
    page: Page
    sort_by: str
    descending: bool


def tool(query: bytes) -> tuple[ToolQuestion, Sequence[Refusal]]:
    """Read the query string of get: the question, and all that is wrong with it."""
    reader = _Reader(query)
    asked = reader.text("version")
    version, pins = reader.version("version", asked), reader.pins()
    # `version` wins
    return ToolQuestion(version, Pins() if asked == versions.LATEST else pins), tuple(
        reader.problems
    )


def no_slug(slug: str) -> Refusal:
    """What is wrong with the path of get where its last part is no tool slug."""
    capitals = slug.upper().replace(" ", "_")
    example = (
        f": try {capitals}."
        if names.fits(names.TOOL_SLUG, capitals)
        else ", as in GITHUB_CREATE_ISSUE."
    )
    wanted = (
        f"Slugs have capital letters, digits, `_` and `-`, and at most {names.LONGEST} characters"
    )
    return _not("tool_slug", slug, "a tool slug", wanted + example)


def tools(query: bytes) -> tuple[ListQuestion, Sequence[Refusal]]:
    """Read the query string of list: the question, and all that is wrong with it."""
    reader = _Reader(query)
    text = reader.query()
    sort_by = reader.choice("sort_by", SORTS) or ("relevance" if text else "slug")
    order = reader.choice("order", ORDERS) or (
        "desc" if sort_by in ("relevance", "version") else "asc"
    )
    slugs = reader.words("tool_slugs") or None
    filters = Filters(
        toolkits=reader.words("toolkit_slug") or None,
        auth_configs=reader.words("auth_config_ids"),
        tags=reader.words("tags"),
        scopes=reader.words("scopes"),
        important=reader.choice("important", ("true", "false")) == "true",
        deprecated=reader.boolean("include_deprecated", True),
        query=text,
    )
    question = ListQuestion(slugs, filters, reader.pins(), reader.page(), sort_by, order == "desc")
    return question, tuple(reader.problems)


def session(id: str, query: bytes, body: bytes) -> tuple[SessionQuestion, Sequence[Refusal]]:
    """Read the path, query string and body of the session operation: the question, and all that is
    wrong with it.
    """
    reader = _Reader(query)
    if not names.fits(names.SESSION_ID, id):
        reader.refuse(
            "session_id", id, "a session id", "Session ids start with `trs_`, as in trs_support."
        )
    if fault := _body_fault(body):
        reader.problems.append(invalid(f"body: {fault}.", "Send a JSON object, or no body."))
    paged = reader.text("limit") is not None or reader.text("cursor") is not None
    return SessionQuestion(id, reader.page() if paged else None), reader.problems


def _body_fault(body: bytes) -> str:
    """What is wrong with the optional body of a GET. Its fields are all ignored."""
    if len(body) > LARGEST_BODY:
        return "more than 64 KiB"
    try:
        value = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        return "not JSON"
    return "" if isinstance(value, dict) else "not a JSON object"


def _not(name: str, value: str, wanted: str, fix: str) -> Refusal:
    shown = value if len(value) <= 80 else value[:77] + "..."
    return invalid(f"{name[:120]}: {shown!r} is not {wanted}.", fix)


class _Reader:
    """One query string. Each method reads one parameter, notes what is wrong with it and then gives
    the default.
    """

    def __init__(self, query: bytes) -> None:
        self.problems: list[Refusal] = []
        self.values: dict[str, list[str]] = {}  # by the name as it is written
        self.lists: dict[str, list[str]] = {}  # by the name without `[]` or `[0]`
        for name, value in self._pairs(query) if query else ():
            if value:
                indexed = _INDEXED.fullmatch(name) if "[" in name else None
                self.values.setdefault(name, []).append(value)
                self.lists.setdefault(indexed[1] if indexed else name, []).append(value)

    def _pairs(self, query: bytes) -> list[tuple[str, str]]:
        try:
            return parse_qsl(
                query.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
            )
        except UnicodeDecodeError:
            self.problems.append(
                invalid("query string: not UTF-8.", "Percent-encode the parameters as UTF-8.")
            )
        except ValueError:
            self.problems.append(
                invalid(
                    f"query string: more than {_MOST_FIELDS} parameters.",
                    "Join values by commas, or send fewer.",
                )
            )
        return []

    def refuse(self, name: str, value: str, wanted: str, fix: str) -> None:
        self.problems.append(_not(name, value, wanted, fix))

    def text(self, name: str) -> str | None:
        """The value of a parameter that is given once; None where it is absent or empty."""
        values = self.values.get(name)
        if values is None:
            return None
        if len(different := {*values}) > 1:
            self.problems.append(
                invalid(
                    f"{name[:120]}: given {len(different)} times with different values.",
                    f"Send {name[:120]} once.",
                )
            )
        return values[0]

    def words(self, name: str) -> tuple[str, ...]:
        """The values of a list parameter in every spelling, in the order given, each once."""
        values = self.lists.get(name)
        if values is None:
            return ()
        found = [word.strip() for value in values for word in value.split(",")]
        words = tuple(dict.fromkeys(word for word in found if word))
        return () if self.is_too_long(name, len(words)) else words

    def is_too_long(self, name: str, count: int) -> bool:
        """Refuse a list of more than 1000 values; its caller then looks at none of them."""
        if count > MOST_ITEMS:
            self.problems.append(
                invalid(
                    f"{name}: {count} values, at most {MOST_ITEMS} are allowed.",
                    f"Send at most {MOST_ITEMS} values of {name} in a request.",
                )
            )
        return count > MOST_ITEMS

    def choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        value = self.text(name)
        if value is None or value in choices:
            return value
        self.refuse(
            name,
            value,
            "one of " + ", ".join(choices),
            f"Set {name} to one of {', '.join(choices)}, or leave it out.",
        )
        return None

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false", "1", "0"):
            self.refuse(
                name, value, "true or false", f"Set {name} to true or false, or leave it out."
            )
            return default
        return value.lower() in ("true", "1")

    def query(self) -> str:
        """The text searched for, empty where there is none. `query` goes before `search`; white
        space alone is nothing.
        """
        texts = {}
        for name in ("query", "search"):
            texts[name] = (self.text(name) or "").strip()
            if len(texts[name]) > LONGEST_QUERY:
                line = (
                    f"{name}: {len(texts[name])} characters, at most {LONGEST_QUERY} are allowed."
                )
                self.problems.append(
                    invalid(line, f"Shorten {name} to {LONGEST_QUERY} characters.")
                )
        return texts["query"] or texts["search"]

    def page(self) -> Page:
        size, cursor = self.limit(), self.text("cursor")
        return Page(1, size) if cursor is None else self.cursor(cursor)

    def limit(self) -> int:
        """Items on a page: a whole number from 1, also written as `50.0`; more than 1000 counts as
        1000.
        """
        value = self.text("limit")
        if value is None:
            return DEFAULT_ITEMS
        # a float would round 0.99999999999999999999 to 1
        number = Decimal(value) if _NUMBER.fullmatch(value) else Decimal(0)
        if number < 1 or number != number.to_integral_value():
            self.refuse(
                "limit",
                value,
                "a whole number from 1",
                f"Set limit to a number from 1 to {MOST_ITEMS}, or leave it out.",
            )
            return DEFAULT_ITEMS
        return MOST_ITEMS if number > MOST_ITEMS else int(number)

    def cursor(self, value: str) -> Page:
        """The page that a cursor names; its page size wins over `limit`."""
        try:
            match = _CURSOR.fullmatch(
                base64.b64decode(value.encode("ascii"), validate=True).decode("ascii")
            )
        except (binascii.Error, UnicodeError):
            match = None
        page = Page(int(match[1]), int(match[2])) if match else None
        if (
            page is None
            or page.size > MOST_ITEMS
            or cursor(page.number, page.size) != value.encode()
        ):
            self.refuse(
                "cursor",
                value,
                "a cursor of this API",
                "Use next_cursor of the page before, or leave cursor out for the first page.",
            )
            return Page(1, DEFAULT_ITEMS)
        return page

    def version(self, name: str, value: str | None) -> str | None:
        """A version, or None for the newest."""
        if value is None or value == versions.LATEST:
            return None
        if versions.is_version(value):
            return value
        self.refuse(name, value, "a version", "Use `latest`, or a version like 20251027_00.")
        return None

    def pins(self) -> Pins:
        """`toolkit_versions`: a plain value for every toolkit, a bracket for one toolkit, or both,
        where the bracket goes before.
        """
        everywhere = self.version("toolkit_versions", self.text("toolkit_versions"))
        keys = {
            bracket[1]: key
            for key in self.values
            if "[" in key and (bracket := _BRACKETS.fullmatch(key))
        }
        if self.is_too_long("toolkit_versions", len(keys)):
            keys = {}
        toolkits = {toolkit: self.version(key, self.text(key)) for toolkit, key in keys.items()}
        return Pins(everywhere=everywhere, toolkits=toolkits)
