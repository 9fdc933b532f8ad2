"""The API operations: get, list and session tools for one API key, as bytes with an ETag.

Both ways through the server, `front` and `app`, call these; neither has an operation of its own.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple, NoReturn

import orjson

from toolcatalog import names
from toolcatalog.keys.api_keys import ApiKey, KeyRing
from toolcatalog.server import questions
from toolcatalog.server.answers import BodyChunk, compute_tag
from toolcatalog.server.questions import Page, encode_cursor
from toolcatalog.server.refusals import ErrorDetail, RequestError, unauthorized
from toolcatalog.server.view import CatalogView
from toolcatalog.store.store import Store


class OperationResult(NamedTuple):
    """A body, in pieces, its tag, the query that was perhaps meant where nothing was found, and,
    where it is remembered, by which route.
    """

    chunks: list[BodyChunk]
    tag: bytes
    suggestion: str = ""
    route: str = ""


_VIEW_CACHE_SIZE = 256  # sets of toolkits that keys are limited to


class Operations:
    """What the read API answers from one store, to the holders of these keys. Each raises Refused
    with all that is wrong.
    """

    def __init__(self, store: Store, keys: KeyRing) -> None:
        self.store = store
        self.keys = keys
        self._get_view = lru_cache(maxsize=_VIEW_CACHE_SIZE)(partial(CatalogView, store))

    def get_tool(self, key: ApiKey, slug: str, query: bytes) -> OperationResult:
        """Get tool by slug: its document. Raises Refused with what is wrong with the question, or
        where the key may see no such tool.
        """
        question, refusals = questions.parse_tool_params(query)
        found = self._get_view(key.toolkits).find_tool(slug, question)
        if isinstance(found, ErrorDetail):
            raise RequestError(found, *refusals)
        if refusals:
            raise RequestError(*refusals)
        document, tag = self.store.read_document(found)
        return OperationResult([document], tag)

    def list_tools(self, key: ApiKey, query: bytes) -> OperationResult:
        """List available tools: a page. Raises Refused with all that is wrong with the question."""
        question, refusals = questions.parse_list_params(query)
        view = self._get_view(key.toolkits)
        if problems := [*refusals, *view.validate(question)]:
            raise RequestError(*problems)
        numbers, total = view.list_tools(question)
        pieces, tag = render_list_page(*self.store.read_documents(numbers), question.page, total)
        return OperationResult(pieces, tag, "" if total else view.suggest_query(question))

    def encode_query(self, query: bytes) -> None:
        """Find out what a list's query means, before it is answered. May be called in any thread."""
        question, refusals = questions.parse_list_params(query)
        if question.filters.query and not refusals:
            self.store.encode_query(question.filters.query)

    def list_session_tools(
        self, key: ApiKey, session_id: str, query: bytes, body: bytes
    ) -> OperationResult:
        """List meta tools for a tool router session. Raises Refused with all that is wrong with the
        question, the session among it.
        """
        question, refusals = questions.parse_session_params(session_id, query, body)
        if problems := [*refusals, *self._check_session(question.id, key)]:
            raise RequestError(*problems)
        session = self.store.get_session(question.id)
        whole = session.answer if session else b""
        return (
            OperationResult(*_paginate(whole, question.page)) if question.page else tag_body(whole)
        )

    def _check_session(self, session_id: str, key: ApiKey) -> list[ErrorDetail]:
        view = self._get_view(key.toolkits)
        found = (
            view.get_session(session_id, key.project)
            if names.is_valid(names.SESSION_ID, session_id)
            else b""
        )
        return [found] if isinstance(found, ErrorDetail) else []


def raise_unauthorized() -> NoReturn:
    """Refuse a request without a good key: raises Refused (401)."""
    raise RequestError(unauthorized())


def tag_body(body: bytes) -> OperationResult:
    """A body and its tag, where none is at hand: it costs a hash of the whole body."""
    return OperationResult([body], compute_tag(body))


def render_list_page(
    items: Sequence[BodyChunk], tag: bytes, page: Page, total: int
) -> tuple[list[BodyChunk], bytes]:
    """A page of a list: its items, to be joined by commas, with their tag, among `total` items on
    all pages.
    """
    pages = -(-total // page.size)
    following = (
        b'"%s"' % encode_cursor(page.number + 1, page.size) if page.number < pages else b"null"
    )
    about = b'],"next_cursor":%s,"total_pages":%d,"current_page":%d,"total_items":%d}' % (
        following,
        pages,
        page.number,
        total,
    )
    pieces: list[BodyChunk] = [b","] * (2 * len(items) + 1)
    pieces[1::2], pieces[0], pieces[-1] = items, b'{"items":[', about
    return pieces if items else [b'{"items":[', about], compute_tag(tag + about)


def _paginate(body: bytes, page: Page) -> tuple[list[BodyChunk], bytes]:
    every = [orjson.dumps(item) for item in orjson.loads(body)["items"]]
    items = every[page.start : page.start + page.size]
    return render_list_page(items, compute_tag(b"".join(items)), page, len(every))
