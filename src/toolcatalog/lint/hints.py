"""Lint rules for hint tags: read-only, destructive, idempotent and `important`."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from toolcatalog.catalog.model import Catalog, ToolVersion
from toolcatalog.errors import Finding
from toolcatalog.lint.rule import CatalogRule, ToolRule, iter_active
from toolcatalog.lint.views import ToolView

READ_ONLY = "readOnlyHint"
DESTRUCTIVE = "destructiveHint"
IMPORTANT = "important"
_MIN_TOOLS = 5  # tools: users can look through a toolkit of this size
_DESTRUCTIVE_VERBS = ("DELETE", "REMOVE", "DESTROY", "ERASE", "PURGE", "WIPE")
_READING_VERBS = ("GET", "LIST", "SEARCH", "FETCH", "FIND", "RETRIEVE")
# After one of these verbs another verb is not the action: CREATE_REMOVE_TOKEN removes nothing.
_OTHER_VERBS = (
    "ADD", "APPROVE", "BLOCK", "CANCEL", "CHANGE", "CLOSE", "COPY", "CREATE", "DISABLE", "EDIT",
    "ENABLE", "INSERT", "MARK", "MERGE", "MODIFY", "MOVE", "PATCH", "POST", "PUT", "REJECT",
    "RENAME", "REPLACE", "REQUEST", "RESET", "RESTORE", "RUN", "SEND", "SET", "START", "STOP",
    "SUBMIT", "SYNC", "TRASH", "UNBLOCK", "UNDO", "UPDATE", "UPLOAD", "UPSERT", "WRITE",
)  # fmt: skip
_VERB_EFFECTS = {
    **dict.fromkeys(_DESTRUCTIVE_VERBS, "destroys"),
    **dict.fromkeys(_READING_VERBS, "reads"),
    **dict.fromkeys(_OTHER_VERBS, ""),
}


def check_hint_missing(view: ToolView) -> Iterator[Finding]:
    """A tool that deletes or removes has `destructiveHint`."""
    tool = view.tool
    verb = _verb_of_tool(tool)
    if _VERB_EFFECTS.get(verb) == "destroys" and DESTRUCTIVE not in tool.tags:
        message = f"a tool that does {verb} has no tag `{DESTRUCTIVE}`"
        help = f"add `{DESTRUCTIVE}` to `tags`: clients ask the user before such a call"
        pointer, at_key = (("tags",), True) if tool.tags else ((), False)
        yield Finding(
            path=tool.path,
            pointer=pointer,
            at_key=at_key,
            rule="hint-missing",
            message=message,
            help=help,
        )


def check_hint_contradiction(view: ToolView) -> Iterator[Finding]:
    """Hint tags agree with each other and with the tool's verb.

    A tool that only reads is not destructive, and a tool that destroys is not read-only.
    """
    tool = view.tool
    if READ_ONLY in tool.tags and DESTRUCTIVE in tool.tags:
        yield _contradiction(
            tool, DESTRUCTIVE, f"the tool has both `{READ_ONLY}` and `{DESTRUCTIVE}`"
        )
        return
    verb = _verb_of_tool(tool)
    if READ_ONLY in tool.tags and _VERB_EFFECTS.get(verb) == "destroys":
        yield _contradiction(tool, READ_ONLY, f"a tool that does {verb} has the tag `{READ_ONLY}`")
    elif DESTRUCTIVE in tool.tags and _VERB_EFFECTS.get(verb) == "reads":
        yield _contradiction(
            tool, DESTRUCTIVE, f"a tool that does {verb} has the tag `{DESTRUCTIVE}`"
        )


def _contradiction(tool: ToolVersion, tag: str, message: str) -> Finding:
    help = "keep the one that is true; if the tag is right, the slug misleads"
    return Finding(
        path=tool.path,
        pointer=("tags", tool.tags.index(tag)),
        rule="hint-contradiction",
        message=message,
        help=help,
    )


def _verb_of_tool(tool: ToolVersion) -> str:
    return _find_verb(tool.toolkit, tool.slug, tool.name)


@lru_cache(maxsize=4)  # both rules call it for the same tool in turn
def _find_verb(toolkit: str, slug: str, name: str) -> str:
    """Return the first known verb of the slug, without the toolkit's prefix, or else of the name.

    Returns an empty string if there is none.
    """
    without_prefix = (
        slug[len(toolkit) :] if slug.casefold().startswith(toolkit.casefold()) else slug
    )
    return _first_verb(without_prefix.replace("-", "_").split("_")) or _first_verb(
        name.upper().split()
    )


def _first_verb(words: list[str]) -> str:
    return next((word for word in words if word in _VERB_EFFECTS), "")


def check_important_none(catalog: Catalog) -> Iterator[Finding]:
    """A toolkit with more than _MIN_TOOLS tools features at least one of them."""
    for toolkit, tools, important in _count_important(catalog):
        if not important:
            message = f"none of the {tools:,} tools is tagged `{IMPORTANT}`"
            help = (
                "tag those that most people need: clients that ask for a toolkit as a whole show"
                " only these"
            )
            yield Finding(
                path=f"toolkits/{toolkit}/toolkit.yaml",
                rule="important-none",
                message=message,
                help=help,
            )


def check_important_many(catalog: Catalog) -> Iterator[Finding]:
    """A toolkit with more than _MIN_TOOLS tools features at most half of them."""
    for toolkit, tools, important in _count_important(catalog):
        if important > tools / 2:
            message, expected = (
                f"{important:,} of the {tools:,} tools are tagged `{IMPORTANT}`",
                "half of them at most",
            )
            help = "leave the tag on those that most people need"
            yield Finding(
                path=f"toolkits/{toolkit}/toolkit.yaml",
                rule="important-many",
                message=message,
                expected=expected,
                help=help,
            )


def _count_important(catalog: Catalog) -> Iterator[tuple[str, int, int]]:
    """Yield slug, number of tools and number of important tools of each larger toolkit.

    Only toolkits with a toolkit.yaml and more than _MIN_TOOLS active tools are included.
    """
    tools: Counter[str] = Counter()
    important: Counter[str] = Counter()
    for tool in iter_active(catalog):
        tools[tool.toolkit] += 1
        if IMPORTANT in tool.tags:
            important[tool.toolkit] += 1
    return (
        (slug, tools[slug], important[slug])
        for slug in sorted(tools)
        if tools[slug] > _MIN_TOOLS and slug in catalog.toolkits
    )


TOOL_RULES: tuple[ToolRule, ...] = (
    ToolRule("hint-missing", "warning", check_hint_missing),
    ToolRule("hint-contradiction", "warning", check_hint_contradiction),
)
CATALOG_RULES: tuple[CatalogRule, ...] = (
    CatalogRule("important-none", "warning", check_important_none),
    CatalogRule("important-many", "note", check_important_many),
)
