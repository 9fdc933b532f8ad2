"""The three operations: a key and the facts of a request to the bytes of an answer and their tag.
Pure of HTTP machinery.

Both ways through the server, `front` and `app`, call these; neither has an operation of its own.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple, NoReturn

import orjson

from toolcatalog import names
from toolcatalog.keys import Key, KeyRing
from toolcatalog.server import questions
from toolcatalog.server.answers import Piece, tag_of
from toolcatalog.server.questions import Page, cursor
from toolcatalog.server.refusals import Refusal, Refused, unauthorized
from toolcatalog.server.view import View
from toolcatalog.store import Store


class Tagged(NamedTuple):
    """A body, in pieces, its tag, the query that was perhaps meant where nothing was found, and,
    where it is remembered, by which route.
    """

    pieces: list[Piece]
    tag: bytes
    suggested: str = ""
    route: str = ""


_VIEWS = 256  # sets of toolkits that keys are limited to


class Operations:
    """What the read API answers from one store, to the holders of these keys. Each raises Refused
    with all that is wrong.
    """

    def __init__(self, store: Store, keys: KeyRing) -> None:
        self.store = store
        self.keys = keys
        self._view = lru_cache(maxsize=_VIEWS)(partial(View, store))

    def tool(self, key: Key, slug: str, query: bytes) -> Tagged:
        """Get tool by slug: its document. Raises Refused with what is wrong with the question, or
        where the key may see no such tool.
        """
        question, refusals = questions.tool(query)
        found = self._view(key.toolkits).tool(slug, question)
        if isinstance(found, Refusal):
            raise Refused(found, *refusals)
        if refusals:
            raise Refused(*refusals)
        document, tag = self.store.document(found)
        return Tagged([document], tag)

    def tools(self, key: Key, query: bytes) -> Tagged:
        """List available tools: a page. Raises Refused with all that is wrong with the question."""
        question, refusals = questions.tools(query)
        view = self._view(key.toolkits)
        if problems := [*refusals, *view.refusals(question)]:
            raise Refused(*problems)
        numbers, total = view.tools(question)
        pieces, tag = page_of(*self.store.documents(numbers), question.page, total)
        return Tagged(pieces, tag, "" if total else view.suggestion(question))

    def encode(self, query: bytes) -> None:
        """Find out what a list's query means, before it is answered. May be called in any thread."""
        question, refusals = questions.tools(query)
        if question.filters.query and not refusals:
            self.store.encode(question.filters.query)

    def session(self, key: Key, id: str, query: bytes, body: bytes) -> Tagged:
        """List meta tools for a tool router session. Raises Refused with all that is wrong with the
        question, the session among it.
        """
        question, refusals = questions.session(id, query, body)
        if problems := [*refusals, *self._not_its_session(question.id, key)]:
            raise Refused(*problems)
        session = self.store.session(question.id)
        whole = session.answer if session else b""
        return Tagged(*_paged(whole, question.page)) if question.page else tagged(whole)

    def _not_its_session(self, id: str, key: Key) -> list[Refusal]:
        view = self._view(key.toolkits)
        found = view.session(id, key.project) if names.fits(names.SESSION_ID, id) else b""
        return [found] if isinstance(found, Refusal) else []


def stranger() -> NoReturn:
    """Refuse a request without a good key: raises Refused (401)."""
    raise Refused(unauthorized())


def tagged(body: bytes) -> Tagged:
    """A body and its tag, where none is at hand: it costs a hash of the whole body."""
    return Tagged([body], tag_of(body))


def page_of(
    items: Sequence[Piece], tag: bytes, page: Page, total: int
) -> tuple[list[Piece], bytes]:
    """A page of a list: its items, to be joined by commas, with their tag, among `total` items on
    all pages.
    """
    pages = -(-total // page.size)
    following = b'"%s"' % cursor(page.number + 1, page.size) if page.number < pages else b"null"
    about = b'],"next_cursor":%s,"total_pages":%d,"current_page":%d,"total_items":%d}' % (
        following,
        pages,
        page.number,
        total,
    )
    pieces: list[Piece] = [b","] * (2 * len(items) + 1)
    pieces[1::2], pieces[0], pieces[-1] = items, b'{"items":[', about
    return pieces if items else [b'{"items":[', about], tag_of(tag + about)


def _paged(whole: bytes, page: Page) -> tuple[list[Piece], bytes]:
    every = [orjson.dumps(item) for item in orjson.loads(whole)["items"]]
    items = every[page.start : page.start + page.size]
    return page_of(items, tag_of(b"".join(items)), page, len(every))
