"""What an agent asks a catalog over MCP, and what it is answered: four tools over one snapshot.
Pure; no HTTP, and nothing of the SDK.

A search gives a line for each tool and a reading gives everything, because a model pays for each
word that it reads. What goes wrong with a call is an answer in words, which a model can mend, and
never a trace. The tools of the catalog themselves are told of and never run.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import orjson

from toolcatalog import providers, snapshot, unseen
from toolcatalog.entries import summary
from toolcatalog.server import offers
from toolcatalog.server.offers import Arguments, Definition
from toolcatalog.server.questions import ListQuestion, Page, ToolQuestion
from toolcatalog.server.refusals import Refusal, Refused
from toolcatalog.server.view import View
from toolcatalog.store import Filters, Pins, Store
from toolcatalog.versions import LATEST


class Seen(NamedTuple):
    """What whoever asks may see: of a store these toolkits (None: all), and the sessions of this
    project (None: of any).
    """

    store: Store
    toolkits: Collection[str] | None = None
    project: str | None = None

    @property
    def view(self) -> View:
        """The same, as the API's questions are asked of it."""
        return View(self.store, self.toolkits)


class Said(NamedTuple):
    """An answer in words for a model, and as a value for programs; that is None where the call went
    wrong.
    """

    text: str
    value: dict[str, Any] | None = None


# What there is


def definitions(seen: Seen, session: str = "") -> list[Definition]:
    """The tools that are listed: the catalog's own, and behind them a session's meta tools. Raises
    Refused where it cannot be seen.
    """
    return [*offers.OFFERED, *(session_tools(seen, session) if session else ())]


def session_tools(seen: Seen, id: str) -> list[Definition]:
    """A session's meta tools as MCP tools, as `export mcp --session` makes them. Raises Refused
    where the session cannot be seen.
    """
    found = seen.view.session(id, seen.project)
    if isinstance(found, Refusal):
        raise Refused(found)
    tools = [snapshot.tool_of(document, None) for document in orjson.loads(found)["items"]]
    fitted = (providers.fitted(tool)["mcp"].definition for tool in tools)
    return [definition for definition in fitted if definition]


# What is answered


def answer(seen: Seen, name: str, arguments: Arguments, session: str = "") -> Said | None:
    """What a call is answered, mistakes included; None where no tool has this name. An empty
    argument is an absent one, as in the API.

    A tool of the catalog, or of the session that is listed, is one that is known and not run.
    """
    asked, given = _ASKED.get(name), offers.given(arguments)
    if faults := offers.faults(name, given):
        return Said("\n".join(faults))
    try:
        return asked(seen, given) if asked else _described_only(seen, name, session)
    except Refused as refused:
        return refusing(seen, *refused.refusals)


def refusing(seen: Seen, *refusals: Refusal) -> Said:
    """Refusals of the API as an answer to an agent."""
    return Said("\n".join(_sentence(seen, refusal) for refusal in refusals))


def encode(seen: Seen, name: str, arguments: Arguments) -> None:
    """Find out what a search means, before it is answered. May be called in any thread."""
    given = offers.given(arguments)
    if name == "search_tools" and not offers.faults(name, given):
        seen.store.encode(given["query"].strip())


def _search(seen: Seen, arguments: Arguments) -> Said:
    view, toolkit, query = seen.view, arguments.get("toolkit"), arguments["query"].strip()
    filters = Filters(toolkits=(toolkit,) if toolkit else None, query=query)
    question = ListQuestion(
        None, filters, Pins(), Page(1, int(arguments.get("limit", offers.USUAL))), "relevance", True
    )
    if problems := view.refusals(question):
        raise Refused(*problems)
    numbers, total = view.tools(question)
    tools = [_row(orjson.loads(seen.store.document(number)[0])) for number in numbers.tolist()]
    if tools:
        shown = f"{total:,} tools found" + (
            f", the best {len(tools)}" if len(tools) < total else ""
        )
        return Said("\n".join([f"{shown}:", *map(_line, tools)]), {"tools": tools, "total": total})
    suggested = view.suggestion(question)
    mend = (
        f"Did you mean: {suggested}"
        if suggested
        else "Try other words" + (", or all toolkits." if toolkit else ".")
    )
    return Said(
        f"No tool was found. {mend}",
        {"tools": [], "total": 0, **({"suggestion": suggested} if suggested else {})},
    )


def _get(seen: Seen, arguments: Arguments) -> Said:
    version = arguments.get("version", LATEST)
    found = seen.view.tool(
        arguments["slug"], ToolQuestion(None if version == LATEST else version, Pins())
    )
    if isinstance(found, Refusal):
        raise Refused(found)
    document = bytes(seen.store.document(found)[0])
    return Said(document.decode(), orjson.loads(document))


def _toolkits(seen: Seen, arguments: Arguments) -> Said:
    known = seen.store.toolkits()
    every = known if seen.toolkits is None else [slug for slug in known if slug in seen.toolkits]
    start = bisect_right(every, arguments.get("after", ""))
    page = every[start : start + int(arguments.get("limit", offers.USUAL_TOOLKITS))]
    toolkits = [{"slug": slug, "tools": _size(seen.store, slug)} for slug in page]
    is_last = start + len(page) >= len(every)
    lines = [
        f"{len(every):,} toolkits:"
        if is_last and not start
        else f"{len(page):,} of {len(every):,} toolkits:"
    ]
    lines += [f"{one['slug']} ({one['tools']} tools)" for one in toolkits]
    more = {} if is_last else {"next": page[-1]}
    lines += [] if is_last else [f"There are more after {page[-1]}."]
    return Said("\n".join(lines), {"toolkits": toolkits, "total": len(every), **more})


def _session(seen: Seen, arguments: Arguments) -> Said:
    value = {"tools": session_tools(seen, arguments["session_id"])}
    return Said(snapshot.dump(value).decode(), value)


def _size(store: Store, toolkit: str) -> int:
    return len(store.matching(Filters(toolkits=(toolkit,)), Pins()).numbers)


def _row(document: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as a search shows it. What cannot be seen is named: a reader of the list would not
    know of it, and a model would.
    """
    return {
        "slug": document["slug"],
        "name": _one_line(document["name"]),
        "description": _one_line(summary(document["description"])),
        "toolkit": document["toolkit"]["slug"],
        "version": document["version"],
        "deprecated": document["is_deprecated"],
    }


def _line(tool: Mapping[str, Any]) -> str:
    about = f"{tool['version']}, deprecated" if tool["deprecated"] else tool["version"]
    return f"{tool['slug']} ({about}) {tool['name']}: {tool['description']}"


def _one_line(text: str) -> str:
    return unseen.visible(" ".join(text.split()))


# What went wrong


def _described_only(seen: Seen, name: str, session: str) -> Said | None:
    """What is answered to a call of a tool that the catalog describes; None where it does not."""
    refused = f"{name} was not run: this catalog describes tools and does not run them."
    entry = seen.store.tool(name)
    if entry and (seen.toolkits is None or entry.toolkit in seen.toolkits):
        return Said(f"{refused} Read it with get_tool, and call it where it lives.")
    of_session = session_tools(seen, session) if session else []
    if any(tool["name"] == name for tool in of_session):
        return Said(
            f"{refused} It is a meta tool of session {session}: call it where that session's "
            "tools are run."
        )
    return None


_HELP = {  # where the API's own advice speaks of its paths
    "tool_not_found": "Find tools with search_tools.",
    "toolkit_not_found": "See list_toolkits for those that are there.",
}


def _sentence(seen: Seen, refusal: Refusal) -> str:
    """A refusal of the API in words for an agent, who knows no parameters of HTTP and, without a
    project, has no key.
    """
    _, _, line = refusal.line.partition(": ")
    fix = refusal.fix.replace(", as Retry-After says", "")
    if not fix.startswith("Did you mean"):
        fix = _HELP.get(refusal.slug, fix)
    if refusal.slug == "forbidden" and seen.project is None:
        fix = _HELP["toolkit_not_found"]
        line = (
            "that session allows toolkits that are not shown here."
            if refusal.line.startswith("session_id")
            else "that toolkit is not among those that are shown here."
        )
    # an id stays as it is
    begins = line[:1].upper() if line.partition(" ")[0].isalpha() else line[:1]
    return f"{begins}{line[1:]} {fix}"


_ASKED: dict[str, Callable[[Seen, Arguments], Said]] = {
    "search_tools": _search,
    "get_tool": _get,
    "list_toolkits": _toolkits,
    "list_session_tools": _session,
}
