"""The API operations: get and list tools, toolkits and session tools, as answers with a tag.

This module does not depend on HTTP. What a key may see, and the errors for everything else, are
those of `api.catalog_view`.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NoReturn

import orjson

from toolcatalog import names
from toolcatalog.api import content_coding, mcp_registry, query_params
from toolcatalog.api.answers import GZIP, Answer, compute_tag
from toolcatalog.api.bodies import Body, make_body
from toolcatalog.api.catalog_view import CatalogView
from toolcatalog.api.content_coding import MIN_SIZE
from toolcatalog.api.error_responses import ErrorDetail, RequestError, unauthorized
from toolcatalog.api.mcp_registry import McpRegistry
from toolcatalog.api.query_params import Page, SessionParams, encode_cursor
from toolcatalog.api.toolkit_list import ToolkitList
from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.snapshot.gzip_fragments import Fragments, gzip_ends
from toolcatalog.snapshot.mapped_files import FileSlices
from toolcatalog.store.store import Store

_LARGE_SESSION = 1 << 18  # bytes of the answer
_VIEW_CACHE_SIZE = 256  # different sets of toolkits to which keys are limited


class Operations:
    """The read API on one store.

    Each operation raises RequestError with all problems of the request. With `gzip`, the answer is
    compressed if the snapshot has its documents compressed.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._get_view = lru_cache(maxsize=_VIEW_CACHE_SIZE)(partial(CatalogView, store))
        self._get_registry = lru_cache(maxsize=_VIEW_CACHE_SIZE)(partial(McpRegistry, store))
        self._get_toolkits = lru_cache(maxsize=_VIEW_CACHE_SIZE)(partial(ToolkitList, store))

    def get_tool(self, key: ApiKey, slug: str, query: bytes, *, gzip: bool = False) -> Answer:
        """Return the document of a tool.

        Raises RequestError if the query string is invalid or the key can see no such tool.
        """
        params, errors = query_params.parse_tool_params(query)
        tool_id = self._get_view(key.toolkits).find_tool(slug, params)
        if isinstance(tool_id, ErrorDetail):
            raise RequestError(tool_id, *errors)
        if errors:
            raise RequestError(*errors)
        fragment = self.store.read_fragment(tool_id) if gzip else None
        if fragment is not None and fragment.size >= MIN_SIZE:
            return Answer(_gzip_body(b"", fragment, b""), self.store.read_tag(tool_id), GZIP)
        document, tag = self.store.read_document(tool_id)
        return Answer(bytes(document), tag)

    def list_tools(self, key: ApiKey, query: bytes, *, gzip: bool = False) -> Answer:
        """Return a page of the list of tools.

        Raises RequestError with all problems of the request.
        """
        params, errors = query_params.parse_list_params(query)
        view = self._get_view(key.toolkits)
        if errors := [*errors, *view.validate(params)]:
            raise RequestError(*errors)
        tool_ids, total = view.list_tools(params)
        suggestion = "" if total else view.suggest_query(params)
        compressed = self.store.read_fragments(tool_ids) if gzip else None
        if compressed is not None and compressed[0].size >= MIN_SIZE:
            fragments, tag = compressed
            end = _render_page_end(params.page, total)
            body = _gzip_body(_PAGE_START, fragments, end)
            return Answer(body, compute_tag(tag + end), GZIP, suggestion)
        documents, tag = self.store.read_documents(tool_ids)
        body, tag = render_list_page(documents, tag, params.page, total)
        return Answer(body, tag, suggestion=suggestion)

    def list_slugs(self, key: ApiKey, query: bytes, *, gzip: bool = False) -> Answer:  # noqa: ARG002 - as the other operations
        """Return the slugs of all tools as a JSON array."""
        return tag_body(orjson.dumps(self.store.list_slugs(key.toolkits)), gzip=gzip)

    def list_toolkits(self, key: ApiKey, query: bytes, *, gzip: bool = False) -> Answer:
        """Return a page of the list of toolkits.

        Raises RequestError with all problems of the request.
        """
        params, errors = query_params.parse_toolkit_list_params(query)
        if errors:
            raise RequestError(*errors)

        items, total = self._get_toolkits(key.toolkits).select(params)
        return tag_body(_render_page(items, params.page, total), gzip=gzip)

    def list_categories(self, key: ApiKey, query: bytes, *, gzip: bool = False) -> Answer:
        """Return a page of the categories of toolkits.

        Raises RequestError with all problems of the request.
        """
        page, errors = query_params.parse_page_params(query)
        if errors:
            raise RequestError(*errors)

        categories = self._get_toolkits(key.toolkits).categories
        items = categories[page.start : page.start + page.size]
        return tag_body(_render_page(items, page, len(categories)), gzip=gzip)

    def get_toolkit(self, key: ApiKey, slug: str, query: bytes, *, gzip: bool = False) -> Answer:
        """Return the document of a toolkit.

        Raises RequestError with all problems of the request.
        """
        version, errors = query_params.parse_version_params(query)
        toolkit = self._get_view(key.toolkits).find_toolkit(slug, version)
        if isinstance(toolkit, ErrorDetail):
            raise RequestError(toolkit, *errors)
        if errors:
            raise RequestError(*errors)
        document = self._get_toolkits(key.toolkits).render_toolkit(toolkit, version)
        return tag_body(orjson.dumps(document), gzip=gzip)

    def list_servers(self, key: ApiKey, query: bytes, *, gzip: bool = False) -> Answer:
        """Return a page of the list of MCP servers that toolkits name.

        Raises RequestError with all problems of the request.
        """
        params, errors = query_params.parse_server_list_params(query)
        if errors:
            raise RequestError(*errors)
        registry = self._get_registry(key.toolkits)
        return tag_body(orjson.dumps(registry.render_page(params)), gzip=gzip)

    def get_server(
        self,
        key: ApiKey,
        name: str,
        version: str | None,
        query: bytes,  # noqa: ARG002 - as the other operations
        *,
        gzip: bool = False,
    ) -> Answer:
        """Return an MCP server in one version, or the list of its versions (None).

        Raises RequestError if the key can see no such server.
        """
        found = self._get_registry(key.toolkits).find(name, version)
        if isinstance(found, ErrorDetail):
            raise RequestError(found)
        value = mcp_registry.render_list([found]) if version is None else found.value
        return tag_body(orjson.dumps(value), gzip=gzip)

    def list_session_tools(
        self, key: ApiKey, session_id: str, query: bytes, body: bytes, *, gzip: bool = False
    ) -> Answer:
        """Return the meta tools of a tool router session.

        Raises RequestError with all problems of the request, including those of the session.
        """
        params, errors = query_params.parse_session_params(session_id, query, body)
        session = self._find_session(key, params)
        problems = [*errors, *([session] if isinstance(session, ErrorDetail) else [])]
        if isinstance(session, ErrorDetail) or problems:
            raise RequestError(*problems)
        return _render_session(session, params.page, gzip=gzip)

    def is_large_session(self, session_id: str) -> bool:
        """Return whether it takes more than some milliseconds to list the tools of a session."""
        if not names.is_valid(names.SESSION_ID, session_id):
            return False
        session = self.store.get_session(session_id)
        return session is not None and len(session.answer) > _LARGE_SESSION

    def _find_session(self, key: ApiKey, params: SessionParams) -> bytes | ErrorDetail:
        """Return the response body of a session, or an error; empty if the id is malformed."""
        if not names.is_valid(names.SESSION_ID, params.id):
            return b""
        return self._get_view(key.toolkits).get_session(params.id, key.project)


def raise_unauthorized(*, has_key: bool, has_authorization: bool = False) -> NoReturn:
    """Raise RequestError (401) for a request without a valid key."""
    raise RequestError(unauthorized(has_key=has_key, has_authorization=has_authorization))


def tag_body(body: bytes, *, gzip: bool = False) -> Answer:
    """Return a body as an answer; hashes the whole body, and compresses it with `gzip`."""
    tag = compute_tag(body)
    if gzip and len(body) >= MIN_SIZE:
        return Answer(content_coding.compress(body), tag, GZIP)
    return Answer(body, tag)


def render_list_page(
    documents: FileSlices, tag: bytes, page: Page, total: int
) -> tuple[Body, bytes]:
    """Return a list page of tools, and its tag.

    `tag` is that of the documents, and `total` is the number of tools on all pages.
    """
    end = _render_page_end(page, total)
    return make_body(_PAGE_START, documents, b",", end), compute_tag(tag + end)


def _render_page(items: Sequence[Any], page: Page, total: int) -> bytes:
    """Return the body of a list page of small items."""
    return _PAGE_START + orjson.dumps(items)[1:-1] + _render_page_end(page, total)


_PAGE_START = b'{"items":['


def _render_page_end(page: Page, total: int) -> bytes:
    pages = -(-total // page.size)
    cursor = b'"%b"' % encode_cursor(page.number + 1, page.size) if page.number < pages else b"null"
    return b'],"next_cursor":%b,"total_pages":%d,"current_page":%d,"total_items":%d}' % (
        cursor,
        pages,
        page.number,
        total,
    )


def _render_session(body: bytes, page: Page | None, *, gzip: bool) -> Answer:
    if page is None:
        return tag_body(body, gzip=gzip)
    every = orjson.loads(body)["items"]
    items = every[page.start : page.start + page.size]
    return tag_body(_render_page(items, page, len(every)), gzip=gzip)


def _gzip_body(prefix: bytes, fragments: Fragments, suffix: bytes) -> Body:
    start, end = gzip_ends(prefix, fragments, suffix)
    return make_body(start, fragments.chunks, b"", end)
