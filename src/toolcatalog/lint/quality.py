"""Lint rules for quality: descriptions, parameter texts, deprecations and replacements.

The rules check only what can be detected with hardly any false positives. Good prose cannot be
measured, but an empty description can be found.
"""

import re
import string
from collections.abc import Iterator, Mapping
from functools import lru_cache

from toolcatalog.catalog.model import Catalog, ToolVersion
from toolcatalog.errors import Finding
from toolcatalog.lint.rule import CatalogRule, ToolRule, iter_newest
from toolcatalog.lint.views import ParameterNode, ToolView

_MIN_WORDS = 3  # words: a shorter text is only a title
_BRIEF_WORDS = 8  # words: a shorter text cannot say when to use the tool
_LONG_ENOUGH = 120  # characters: longer texts are not classified; they have enough words
_MAX_REPLACEMENTS = 20  # tools in a chain of replacements
_MAX_LENGTH = 1024  # characters that OpenAI allows in a function's description
_DESCRIPTION_POINTER = ("description",)
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation + string.whitespace))
_FILLER = re.compile(
    r"\s*(this (tool|function|endpoint|action)\b|(a )?(tool|function) (to|for|that|which)\b|use"
    r" this (tool|function) to\b"
    r"|(allows|enables|lets) (you|users|the user|an agent|agents)\b)",
    re.IGNORECASE,
)
_DEPRECATED = re.compile(r"\W*deprecated\b", re.IGNORECASE)


def check_description_empty(view: ToolView) -> Iterator[Finding]:
    """A tool's description is not empty."""
    tool = view.tool
    if _description_problem(tool) == "description-empty":
        help = "say what the tool does, when to use it and when not"
        yield Finding(
            path=tool.path,
            pointer=_DESCRIPTION_POINTER,
            rule="description-empty",
            message="the description is empty",
            help=help,
        )


def check_description_repeats_name(view: ToolView) -> Iterator[Finding]:
    """A tool's description is more than its name or slug repeated."""
    tool = view.tool
    if _description_problem(tool) == "description-repeats-name":
        message = "the description only repeats the name"
        help = "say what the name does not: what comes back, when to use the tool and when not"
        yield Finding(
            path=tool.path,
            pointer=_DESCRIPTION_POINTER,
            rule="description-repeats-name",
            message=message,
            help=help,
        )


def check_description_short(view: ToolView) -> Iterator[Finding]:
    """A tool's description is long enough to say what the tool does."""
    tool = view.tool
    if _description_problem(tool) == "description-short":
        message, expected = (
            "the description is too short to say what the tool does",
            f"a sentence of {_MIN_WORDS} words at least",
        )
        help = "say what it does and to what"
        yield Finding(
            path=tool.path,
            pointer=_DESCRIPTION_POINTER,
            rule="description-short",
            message=message,
            expected=expected,
            help=help,
        )


def check_description_brief(view: ToolView) -> Iterator[Finding]:
    """A tool's description has room to say when to use the tool, and when not."""
    tool = view.tool
    if _description_problem(tool) == "description-brief":
        message = "the description says what the tool does, but hardly when to use it and when not"
        help = "add when to choose it, and which tool to take instead where it does not fit"
        yield Finding(
            path=tool.path,
            pointer=_DESCRIPTION_POINTER,
            rule="description-brief",
            message=message,
            help=help,
        )


def _description_problem(tool: ToolVersion) -> str:
    return _classify_description(tool.name, tool.slug, tool.description)


@lru_cache(maxsize=4)  # four rules call it for the same tool in turn
def _classify_description(name: str, slug: str, text: str) -> str:
    """Return the rule for the worst defect of a description, or an empty string.

    Words are counted in ASCII text only: many languages do not put spaces between them.
    """
    if len(text) > _LONG_ENOUGH:
        return ""
    words = len(text.split())
    if words == 0:
        return "description-empty"
    if _normalize(text) in (_normalize(name), _normalize(slug)):
        return "description-repeats-name"
    if words >= _BRIEF_WORDS or not text.isascii():
        return ""
    return "description-short" if words < _MIN_WORDS else "description-brief"


def _normalize(text: str) -> str:
    """Return a text without white space and punctuation, case-folded."""
    return text.translate(_PUNCTUATION).casefold()


def check_description_long(view: ToolView) -> Iterator[Finding]:
    """A tool's description is not longer than providers allow."""
    tool = view.tool
    if len(tool.description) > _MAX_LENGTH:
        message = f"the description has {len(tool.description):,} characters"
        expected, help = (
            f"at most {_MAX_LENGTH:,} characters",
            "keep what helps to choose the tool; say details at the parameters",
        )
        yield Finding(
            path=tool.path,
            pointer=_DESCRIPTION_POINTER,
            rule="description-long",
            message=message,
            expected=expected,
            help=help,
        )


def check_description_filler(view: ToolView) -> Iterator[Finding]:
    """A tool's description does not begin with words that fit every tool."""
    tool = view.tool
    match = _FILLER.match(tool.description)
    if match:
        message = f"the description starts with `{match[0].strip()}`, which is true of every tool"
        yield Finding(
            path=tool.path,
            pointer=_DESCRIPTION_POINTER,
            rule="description-filler",
            message=message,
            help="start with what it does: a verb",
        )


def check_deprecation_unmarked(view: ToolView) -> Iterator[Finding]:
    """A tool whose name or description says that it is deprecated has a `deprecation`."""
    tool = view.tool
    if tool.deprecation is not None:
        return
    for key, text in (("description", tool.description), ("name", tool.name)):
        if _DEPRECATED.match(text):
            message = f"the {key} calls the tool deprecated, but there is no `deprecation`"
            help = "add `deprecation:` with `reason` and `replaced_by`; clients and the site use it"
            yield Finding(
                path=tool.path,
                pointer=(key,),
                rule="deprecation-unmarked",
                message=message,
                help=help,
            )
            return


def check_deprecation_unexplained(view: ToolView) -> Iterator[Finding]:
    """A deprecated tool has a reason or a replacement."""
    tool = view.tool
    deprecation = tool.deprecation
    if deprecation is not None and not deprecation.reason.strip() and not deprecation.replaced_by:
        message = "the tool is deprecated without a reason and without a replacement"
        help = "add `replaced_by`, or a `reason` that says what to do instead"
        yield Finding(
            path=tool.path,
            pointer=("deprecation",),
            at_key=True,
            rule="deprecation-unexplained",
            message=message,
            help=help,
        )


def check_parameters_described(view: ToolView) -> Iterator[Finding]:
    """Each named input, including nested ones, has a description."""
    tool = view.tool
    for node in view.inputs:
        if node.name and _lacks_description(node):
            message = f"the parameter `{node.name}` has no description"
            help = "say what the value means and what a good one looks like"
            yield _finding_at(tool, node, "parameter-undescribed", message, help)


def check_outputs_described(view: ToolView) -> Iterator[Finding]:
    """Each named output, including nested ones, has a description."""
    tool = view.tool
    for node in view.outputs:
        if node.name and _lacks_description(node):
            message = f"the output `{node.name}` has no description"
            yield _finding_at(
                tool,
                node,
                "output-undescribed",
                message,
                "say what the value means, so that an agent need not guess",
            )


def check_parameter_repeats_name(view: ToolView) -> Iterator[Finding]:
    """The description of a named input is more than its name repeated."""
    tool = view.tool
    for node in view.inputs:
        text = node.description.get("description", "")
        if (
            node.name
            and text
            and len(text) <= 2 * len(node.name) + 2
            and _normalize(text) == _normalize(node.name)
        ):
            message = f"the description of `{node.name}` only repeats the name"
            help = "say what the name does not: the form, the unit, where the value comes from"
            yield _finding_at(tool, node, "parameter-repeats-name", message, help)


def _lacks_description(node: ParameterNode) -> bool:
    text = node.description.get("description")
    return not text or text.isspace()


def _finding_at(
    tool: ToolVersion, node: ParameterNode, rule: str, message: str, help: str
) -> Finding:
    """Return a finding at a parameter's description, or at its name if it has none."""
    has_description = "description" in node.description
    pointer = (*node.pointer, "description") if has_description else node.pointer
    return Finding(
        path=tool.path,
        pointer=pointer,
        at_key=not has_description,
        rule=rule,
        message=message,
        help=help,
    )


TOOL_RULES: tuple[ToolRule, ...] = (
    ToolRule("description-empty", "warning", check_description_empty),
    ToolRule("description-repeats-name", "warning", check_description_repeats_name),
    ToolRule("description-short", "warning", check_description_short),
    ToolRule("description-brief", "note", check_description_brief),
    ToolRule("description-long", "warning", check_description_long),
    ToolRule("description-filler", "note", check_description_filler),
    ToolRule("deprecation-unmarked", "warning", check_deprecation_unmarked),
    ToolRule("deprecation-unexplained", "warning", check_deprecation_unexplained),
    ToolRule("parameter-undescribed", "warning", check_parameters_described),
    ToolRule("output-undescribed", "note", check_outputs_described),
    ToolRule("parameter-repeats-name", "note", check_parameter_repeats_name),
)


def check_replacement_not_deprecated(catalog: Catalog) -> Iterator[Finding]:
    """The replacement of a deprecated tool is not itself deprecated in its newest version."""
    deprecated_slugs = {
        tool.slug: tool.replaced_by for tool in iter_newest(catalog) if tool.replaced_by is not None
    }
    for tool in catalog.tools:
        replacement = tool.replaced_by
        if replacement and replacement != tool.slug and replacement in deprecated_slugs:
            message, final = (
                f"the replacement `{replacement}` is deprecated itself",
                _final_replacement(replacement, deprecated_slugs),
            )
            help = (
                f"name `{final}`, which replaces it"
                if final and final != tool.slug
                else "name a tool that is in use, or none"
            )
            pointer = ("deprecation", "replaced_by")
            yield Finding(
                path=tool.path,
                pointer=pointer,
                rule="replacement-deprecated",
                message=message,
                help=help,
            )


def _final_replacement(slug: str, deprecated: Mapping[str, str]) -> str:
    """Return the last tool in a chain of replacements.

    Returns an empty string if the last tool is deprecated, or the chain is a cycle or very long.
    """
    for _ in range(_MAX_REPLACEMENTS):
        if slug not in deprecated:
            return slug
        slug = deprecated[slug]
    return ""


CATALOG_RULES: tuple[CatalogRule, ...] = (
    CatalogRule("replacement-deprecated", "warning", check_replacement_not_deprecated),
)
