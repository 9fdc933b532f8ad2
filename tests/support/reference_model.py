"""The decisions read a second time, in the plainest way, as an oracle for
`property/test_differential`.

Reads the YAML files itself and answers get and list with lists and loops. It imports nothing of
toolcatalog, so that a mistake there is not repeated here. Relevance alone has no second reading:
where it gives the order, an answer is a set of tools.
"""

import base64
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from urllib.parse import unquote_to_bytes

import Stemmer
import yaml

from support.paths import ROOT

JSON_LITERAL = re.compile(r"null|true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
STEMMER = Stemmer.Stemmer("english")
DOCS = ROOT / "docs" / "explanation" / "search.md"
STOP_WORDS = {
    *re.findall(r"<!-- silent -->\s+(.*?)\s+<!-- /silent -->", DOCS.read_text(), re.DOTALL)[
        0
    ].split()
}
# what users say, and what tools are called instead; "a_b" is a pair of words
SYNONYM_LINES = [
    [words.split() for words in line.split(":")]
    for table in re.findall(
        '= """\n(.*?)"""',
        (ROOT / "src" / "toolcatalog" / "search" / "query" / "synonyms.py").read_text(),
        re.DOTALL,
    )
    for line in table.replace("\n    ", " ").splitlines()
]
# a whole sentence in a character: they unfold to eighteen and eight, and say nothing to a search
LIGATURES = "\ufdfa\ufdfb"
TOOL_SLUG = re.compile(r"[A-Z0-9_][A-Z0-9_-]*")
VERSION = re.compile(r"[0-9]{8}_[0-9]{2}")


class Loader(yaml.CBaseLoader):
    """Every scalar a string, but for plain ones that are JSON literals; an empty one is null; keys
    are always strings.
    """

    def construct_scalar(self, node: yaml.ScalarNode) -> Any:
        if node.style or not JSON_LITERAL.fullmatch(node.value):
            return None if not node.style and node.value == "" else node.value
        return json.loads(node.value)

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: ARG002
    ) -> dict[Any, Any]:
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


@dataclass
class ReferenceVersion:
    """One version of one tool."""

    slug: str
    version: str
    toolkit: str
    name: str
    tags: list[str]
    scopes: list[str]
    deprecated: bool
    words: set[str]
    terms: set[str]
    body: str


@dataclass
class ExpectedAnswer:
    """What must come: either `problems` (status, slug, the parameter named first in the line), or
    `site.lists`.

    Of a list they are all entries of all pages, in order unless `ranked`; of get it is the one, and
    `size` is 0.
    """

    problems: list[tuple[int, str, str]] = field(default_factory=list)
    entries: list[ReferenceVersion] = field(default_factory=list)
    ranked: bool = False
    number: int = 1
    size: int = 0

    @property
    def total_pages(self) -> int:
        return (len(self.entries) + self.size - 1) // self.size

    def frame(self) -> dict[str, Any]:
        """A list page without its items."""
        following = (
            base64.b64encode(f"{self.number + 1}:{self.size}".encode()).decode()
            if self.number < self.total_pages
            else None
        )
        return {
            "next_cursor": following,
            "total_pages": self.total_pages,
            "current_page": self.number,
            "total_items": len(self.entries),
        }

    def body(self) -> str:
        """The JSON of the answer, byte for byte."""
        if self.size == 0:
            return self.entries[0].body
        page = self.entries[(self.number - 1) * self.size : self.number * self.size]
        return (
            '{"items":['
            + ",".join(entry.body for entry in page)
            + "],"
            + dump_json(self.frame())[1:]
        )


def dump_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def extract_words(text: str) -> list[str]:
    """The words of a text without those that docs/explanation/search.md says are silent."""
    return [word for word in extract_spellings(text) if word not in STOP_WORDS]


def extract_spellings(text: str) -> list[str]:
    """Runs of Latin letters, of other letters or of digits, with camelCase and snake_case taken
    apart, folded to lower case.

    Without accents; Chinese and Japanese in pairs of characters.
    """
    results = [""]
    text = "".join(" " if char in LIGATURES else char for char in text)
    text = unicodedata.normalize(
        "NFC",
        "".join(
            char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char)
        ),
    )
    for index, char in enumerate(text):
        previous, current = text[index - 1 : index] if index else "", text[index + 1 : index + 2]
        hump = is_capital(char) and (
            is_small(previous) or (is_capital(previous) and is_small(current))
        )
        if hump or script_class(char) != script_class(previous):
            results.append("")
        elif script_class(char) == "dense" and len(results[-1]) == 2:
            results.append(previous)
        if script_class(char):
            results[-1] += char
    return [word.casefold()[:64] for word in results if word]


def extract_terms(*texts: str) -> list[str]:
    """The stems of the words."""
    return [STEMMER.stemWord(word) for text in texts for word in extract_words(text)]


def are_related(first: str, second: str) -> bool:
    """Tell whether the shorter of two words begins the longer one, and is not much shorter."""
    shorter, longer = sorted((first, second), key=len)
    return (
        all(map(is_word, (first, second)))
        and longer.startswith(shorter)
        and 0.6 * len(longer) <= len(shorter) < len(longer)
    )


def is_word(term: str) -> bool:
    return len(term) >= 4 and not term.isdigit() and script_class(term[0]) != "dense"


def list_one_edit_words(word: str) -> set[str]:
    """Return the words that differ by one letter, or by two swapped ones."""
    results = set()
    for index in range(len(word) + 1):
        for end in (index, index + 1):
            results |= {word[:index] + letter + word[end:] for letter in ascii_lowercase}
        results |= {
            word[:index] + word[index + 1 :],
            word[:index] + word[index : index + 2][::-1] + word[index + 2 :],
        }
    kept = word[:1] if len(word) <= 7 else ""
    return {result for result in results if result.startswith(kept)} - {word}


def find_synonyms(text: str) -> set[str]:
    """The terms that the words of a query, and pairs of them in one sentence, stand for."""
    results = set()
    for part in re.split(r"(?i)(?<=[.!?;])\s+|\n+|,\s*(?:and|then|also)\s+|\s+and\s+then\s+", text):
        words = extract_spellings(part)
        stems = [STEMMER.stemWord(word) for word in words]
        used = set()
        for index, stem in enumerate(stems):
            for other in range(index + 1, min(index + 5, len(words))):
                if targets := synonyms_of_pair(stem, words[other]):
                    used |= {index, other}
                    results |= targets
        for index, stem in enumerate(stems):
            if index not in used:
                results |= synonyms_of_word(stem)
    return results


def synonyms_of_pair(stem: str, second: str) -> set[str]:
    pairs = [
        (left, pair.split("_")) for left, right in SYNONYM_LINES for pair in right if "_" in pair
    ]
    return {
        STEMMER.stemWord(word)
        for left, pair in pairs
        if [STEMMER.stemWord(pair[0]), pair[1]] == [stem, second]
        for word in left
    }


def synonyms_of_word(stem: str) -> set[str]:
    return {
        STEMMER.stemWord(word)
        for left, right in SYNONYM_LINES
        if stem in {STEMMER.stemWord(word) for word in left + right}
        for word in left
    }


def has_synonyms(word: str) -> bool:
    stem = STEMMER.stemWord(word)
    return any(
        stem == STEMMER.stemWord(item.split("_")[0])
        for line in SYNONYM_LINES
        for items in line
        for item in items
    )


def matches_slug(text: str, slug: str) -> bool:
    """Tell whether a query is a slug, or begins it."""
    runs = re.findall("[A-Za-z0-9]+", text)
    if len(text) > 200 or len(runs) > 10:
        return False
    end = "" if "_" in text or text.isupper() else "_"
    slugs = [item for item in ("_".join(runs).upper(), text.upper()) if TOOL_SLUG.fullmatch(item)]
    return any(slug == item or slug.startswith(item + end) for item in slugs)


def script_class(char: str) -> str:
    """What runs are made of; empty for what is in no word."""
    if not char.isalnum():
        return ""
    if char.isdecimal():
        return "digit"
    if (
        "\u3041" <= char <= "\u30ff"
        or "\u3400" <= char <= "\u9fff"
        or "\uf900" <= char <= "\ufaff"
        or char >= "\U00020000"
    ):
        return "dense"
    latin = (
        char.isalpha() and char not in "ªº" and (char < "\u02b0" or "\u1e00" <= char <= "\u1eff")
    )
    return "latin" if latin else "other"


def is_capital(char: str) -> bool:
    return "A" <= char <= "Z"


def is_small(char: str) -> bool:
    return "a" <= char <= "z"


def served_parameters(parameters: dict[str, Any], inputs: bool) -> dict[str, Any]:
    """A map of parameters as served: `required` on all of them or on none."""
    return {
        name: served_parameter(group, inputs, required=inputs) for name, group in parameters.items()
    }


def served_parameter(parameter: dict[str, Any], inputs: bool, required: bool) -> dict[str, Any]:
    served = {"type": served_type(parameter), "description": parameter.get("description", "")}
    if required:
        served["required"] = parameter.get("required", False)
    for key, value in parameter.items():
        if key == "properties":
            served[key] = served_parameters(value, inputs)
        elif key in ("anyOf", "oneOf"):
            served[key] = [served_parameter(branch, inputs, required=False) for branch in value]
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            served[key] = served_parameter(value, inputs, required=False)
        elif key not in ("type", "description", "required"):
            served[key] = value
    return served


def served_type(parameter: dict[str, Any]) -> str:
    """The type: the author's, else that of the first branch; `number` where some branches are
    integers and all others numbers.
    """
    if "type" in parameter:
        return str(parameter["type"])
    kinds = [
        served_type(branch) for branch in [*parameter.get("anyOf", []), *parameter.get("oneOf", [])]
    ]
    return "number" if set(kinds) == {"integer", "number"} else kinds[0]


def make_document(
    slug: str, version: str, versions: list[str], toolkit: dict[str, Any], tool: dict[str, Any]
) -> dict[str, Any]:
    return {
        "slug": slug,
        "name": tool["name"],
        "description": tool["description"],
        "toolkit": {
            "slug": toolkit["slug"],
            "name": toolkit["name"],
            "logo": toolkit.get("logo", ""),
        },
        "input_parameters": served_parameters(tool.get("input_parameters", {}), inputs=True),
        "output_parameters": served_parameters(tool.get("output_parameters", {}), inputs=False),
        "no_auth": tool.get("no_auth", toolkit.get("no_auth", False)),
        "available_versions": versions,
        "version": version,
        "scopes": tool.get("scopes", []),
        "tags": tool.get("tags", []),
        "is_deprecated": "deprecation" in tool,
        "deprecated": {
            "displayName": tool["name"],
            "version": version,
            "available_versions": versions,
            "is_deprecated": "deprecation" in tool,
            "toolkit": {"logo": toolkit.get("logo", "")},
        },
    }


def read_yaml(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = yaml.load(path.read_bytes(), Loader=Loader)  # noqa: S506
    return value


class ReferenceModel:
    """A catalog folder, read."""

    def __init__(self, catalog: Path) -> None:
        self.toolkits: dict[str, list[str]] = {}
        self.tools: dict[str, list[ReferenceVersion]] = {}
        self.configs = {
            path.stem: read_yaml(path) for path in sorted(catalog.glob("auth_configs/*.yaml"))
        }
        for path in sorted(catalog.glob("toolkits/*/toolkit.yaml")):
            toolkit = {"slug": path.parent.name, **read_yaml(path)}
            folders = sorted(folder for folder in path.parent.iterdir() if folder.is_dir())
            for folder in folders:
                self.tools[folder.name] = list(read_versions(folder, toolkit))
            results = {entry.version for folder in folders for entry in self.tools[folder.name]}
            self.toolkits[path.parent.name] = sorted(results)
        self.vocabulary = {
            term for items in self.tools.values() for entry in items for term in entry.terms
        }

    def get_tool(self, slug: str, query: str, visible: set[str] | None) -> ExpectedAnswer:
        """Get tool by slug."""
        request = QueryString(query)
        asked = request.single_value("version")
        version, pins = request.version("version", asked), request.version_pins()
        if not TOOL_SLUG.fullmatch(slug) or len(slug) > 200:
            request.add_problem(400, "invalid_request", "tool_slug")
            return ExpectedAnswer(problems=request.problems)
        entries = self.tools.get(slug, [])
        if not entries or not is_visible(entries[0].toolkit, visible):
            request.add_problem(404, "tool_not_found", "tool_slug")
            return ExpectedAnswer(problems=request.problems)
        toolkit = entries[0].toolkit
        if version is not None:
            results = [entry for entry in entries if entry.version == version]
            parameter = "version"
        elif asked == "latest":
            results, parameter = entries, "version"
        else:
            index = pins[toolkit] if toolkit in pins else pins.get("")
            there = self.toolkits[toolkit] if toolkit in pins else self.all_versions(visible)
            results = (
                []
                if index is not None and index not in there
                else [entry for entry in entries if index is None or entry.version <= index]
            )
            parameter = "toolkit_versions"
        if not results:
            request.add_problem(404, "tool_version_not_found", parameter)
        return ExpectedAnswer(problems=request.problems, entries=results[-1:])

    def list_tools(self, query: str, visible: set[str] | None) -> ExpectedAnswer:
        """List tools."""
        request = QueryString(query)
        number, size = request.page()
        text = request.search_text()
        sort_by = request.choice("sort_by", ["relevance", "slug", "name", "version"]) or (
            "relevance" if text else "slug"
        )
        order = request.choice("order", ["asc", "desc"]) or (
            "desc" if sort_by in ("relevance", "version") else "asc"
        )
        slugs, toolkits, configs = (
            request.list_values("tool_slugs"),
            request.list_values("toolkit_slug"),
            request.list_values("auth_config_ids"),
        )
        tags, scopes, pins = (
            request.list_values("tags"),
            request.list_values("scopes"),
            request.version_pins(),
        )
        important = request.choice("important", ["true", "false"]) == "true"
        deprecated = request.boolean("include_deprecated")
        if len(slugs) > 1000:
            request.add_problem(400, "invalid_request", "tool_slugs")
        self.check_pins(request, pins, visible)
        if not slugs:
            self.check_names(request, toolkits, configs, visible)
        if request.problems:
            return ExpectedAnswer(problems=request.problems)
        force = self.effective_versions(pins, visible)
        if slugs:
            by_slug = {entry.slug: entry for entry in force}
            return ExpectedAnswer(
                entries=[by_slug[slug] for slug in slugs if slug in by_slug],
                number=number,
                size=size,
            )
        expected = self.expand_query(text)
        results = []
        for entry in force:
            ok = not toolkits or entry.toolkit in toolkits
            ok = ok and (
                not configs
                or any(self.is_usable(entry, self.configs[config]) for config in configs)
            )
            ok = ok and (not tags or any(tag in entry.tags for tag in tags))
            ok = ok and (not scopes or any(scope in entry.scopes for scope in scopes))
            ok = ok and ("important" in entry.tags or not important)
            ok = ok and (deprecated or not entry.deprecated)
            if ok and (not text or expected & entry.terms or matches_slug(text, entry.slug)):
                results.append(entry)
        return ExpectedAnswer(
            entries=sort_entries(results, sort_by, order),
            ranked=sort_by == "relevance" and text != "",
            number=number,
            size=size,
        )

    def expand_query(self, text: str) -> set[str]:
        """The terms that a tool must hold one of: those of the query, their relatives, and what
        unknown ones may be misspellings of.
        """
        request = {STEMMER.stemWord(word): word for word in reversed(extract_words(text))}
        existing = [term for term in request if term in self.vocabulary]
        unknown = [
            term for term in dict.fromkeys(extract_terms(text)) if term not in self.vocabulary
        ][:5]
        result, letters = {*existing}, 48
        for term in existing:
            related = sorted(
                (abs(len(other) - len(term)), other)
                for other in self.vocabulary
                if are_related(term, other)
            )
            result |= {other for _, other in related[:12]}
        for term in unknown:
            longer = [other for other in sorted(self.vocabulary) if other.startswith(term)][:16]
            result |= {
                other
                for other in [*longer, *self.vocabulary]
                if are_related(term, other) and (other in longer or len(other) < len(term))
            }
            word = request[term]
            if is_word(word) and 5 <= len(word) <= min(letters, 24) and not has_synonyms(word):
                letters -= len(request[term])
                result |= {
                    STEMMER.stemWord(word) for word in list_one_edit_words(request[term])
                } & self.vocabulary
        return result | (find_synonyms(text) & self.vocabulary)

    def effective_versions(
        self, pins: dict[str, str | None], visible: set[str] | None
    ) -> list[ReferenceVersion]:
        """Of each tool that may be seen the version in force, by slug."""
        results = []
        for slug in sorted(self.tools):
            toolkit = self.tools[slug][0].toolkit
            index = pins[toolkit] if toolkit in pins else pins.get("")
            following = (
                self.tools[slug]
                if index is None
                else [entry for entry in self.tools[slug] if entry.version <= index]
            )
            if following and is_visible(toolkit, visible):
                results.append(following[-1])
        return results

    def is_usable(self, entry: ReferenceVersion, config: dict[str, Any]) -> bool:
        listing = "tools" not in config or entry.slug in config["tools"]
        granted = "scopes" not in config or all(scope in config["scopes"] for scope in entry.scopes)
        return entry.toolkit == config["toolkit"] and listing and granted

    def all_versions(self, visible: set[str] | None) -> set[str]:
        return {
            version
            for toolkit in self.toolkits
            if is_visible(toolkit, visible)
            for version in self.toolkits[toolkit]
        }

    def check_pins(
        self, query: "QueryString", pins: dict[str, str | None], visible: set[str] | None
    ) -> None:
        for toolkit, version in pins.items():
            if version is None:
                continue
            of_toolkit = self.toolkits.get(toolkit, []) if is_visible(toolkit, visible) else []
            there = self.all_versions(visible) if toolkit == "" else of_toolkit
            if version not in there:
                query.add_problem(400, "invalid_request", "toolkit_versions")

    def check_names(
        self,
        query: "QueryString",
        toolkits: list[str],
        configs: list[str],
        visible: set[str] | None,
    ) -> None:
        for toolkit in toolkits:
            if toolkit not in self.toolkits:
                query.add_problem(404, "toolkit_not_found", "toolkit_slug")
            elif not is_visible(toolkit, visible):
                query.add_problem(403, "forbidden", "toolkit_slug")
        for config in configs:
            if config not in self.configs:
                query.add_problem(404, "auth_config_not_found", "auth_config_ids")
            elif not is_visible(self.configs[config]["toolkit"], visible):
                query.add_problem(403, "forbidden", "auth_config_ids")


def is_visible(toolkit: str, visible: set[str] | None) -> bool:
    return visible is None or toolkit in visible


def read_versions(folder: Path, toolkit: dict[str, Any]) -> Iterator[ReferenceVersion]:
    """The versions of one tool, oldest first."""
    paths = sorted(folder.glob("*.yaml"))
    versions = [path.stem for path in paths]
    for path in paths:
        tool = read_yaml(path)
        yield ReferenceVersion(
            slug=folder.name,
            version=path.stem,
            toolkit=toolkit["slug"],
            name=tool["name"],
            tags=tool.get("tags", []),
            scopes=tool.get("scopes", []),
            deprecated="deprecation" in tool,
            words={
                word
                for text in searchable_texts(folder.name, toolkit, tool)
                for word in extract_words(text)
            },
            terms={*extract_terms(*searchable_texts(folder.name, toolkit, tool))},
            body=dump_json(make_document(folder.name, path.stem, versions, toolkit, tool)),
        )


def searchable_texts(slug: str, toolkit: dict[str, Any], tool: dict[str, Any]) -> Iterator[str]:
    """All that a tool is found by."""
    # the slugs of other tools of the toolkit say what those do
    others = rf"\b{re.escape(toolkit['slug'].upper())}_[A-Z0-9_]+"
    description = re.sub(others, " ", tool["description"])
    yield from (slug, tool["name"], description, toolkit["slug"], toolkit["name"])
    yield from parameter_texts(tool.get("input_parameters", {}))


def parameter_texts(parameters: dict[str, Any]) -> Iterator[str]:
    for name, item in parameters.items():
        yield name
        yield from description_texts(item)


def description_texts(parameter: dict[str, Any]) -> Iterator[str]:
    yield parameter.get("description", "")
    yield from parameter_texts(parameter.get("properties", {}))
    for inner in [
        parameter.get("items"),
        parameter.get("additionalProperties"),
        *parameter.get("anyOf", ()),
        *parameter.get("oneOf", ()),
    ]:
        if isinstance(inner, dict):
            yield from description_texts(inner)


def sort_entries(
    entries: list[ReferenceVersion], sort_by: str, order: str
) -> list[ReferenceVersion]:
    """In the order asked for; ties by slug, whichever way the order goes. Without a query all are
    equally relevant.
    """
    by_slug = sorted(entries, key=lambda entry: entry.slug)
    if sort_by == "relevance":
        return by_slug
    return sorted(by_slug, key=lambda entry: str(getattr(entry, sort_by)), reverse=order == "desc")


class QueryString:
    """A query string, and what is wrong with it. A malformed parameter is a problem and then as if
    absent.
    """

    def __init__(self, query: str) -> None:
        self.problems: list[tuple[int, str, str]] = []
        self.pairs: list[tuple[str, str]] = []
        try:
            for part in query.split("&"):
                key, _, value = part.partition("=")
                self.pairs.append((decode_percent(key), decode_percent(value)))
        except UnicodeDecodeError:
            self.pairs = []
            self.add_problem(400, "invalid_request", "query string")

    def add_problem(self, status: int, slug: str, parameter: str) -> None:
        self.problems.append((status, slug, parameter))

    def single_value(self, name: str) -> str | None:
        """A parameter that has one value; an empty value is an absent one."""
        values = [value for key, value in self.pairs if key == name and value != ""]
        if len(set(values)) > 1:
            self.add_problem(400, "invalid_request", name.partition("[")[0])
        return values[0] if values else None

    def list_values(self, name: str) -> list[str]:
        """A list parameter: commas, repetition and `[]` alike, mixed."""
        results: list[str] = []
        for key, value in self.pairs:
            if re.sub(r"\[[0-9]*\]$", "", key) == name:
                for word in value.split(","):
                    if word.strip() and word.strip() not in results:
                        results.append(word.strip())
        return results

    def choice(self, name: str, allowed: list[str]) -> str | None:
        value = self.single_value(name)
        if value is not None and value not in allowed:
            self.add_problem(400, "invalid_request", name)
            return None
        return value

    def boolean(self, name: str) -> bool:
        value = (self.single_value(name) or "true").lower()
        if value not in ("true", "false", "1", "0"):
            self.add_problem(400, "invalid_request", name)
        return value not in ("false", "0")

    def search_text(self) -> str:
        """What is searched for: `query` wins over `search`; nothing but white space is as if
        absent.
        """
        texts = [(self.single_value(name) or "").strip() for name in ("query", "search")]
        for name, text in zip(("query", "search"), texts, strict=True):
            if len(text) > 4000:
                self.add_problem(400, "invalid_request", name)
        return texts[0] or texts[1]

    def page(self) -> tuple[int, int]:
        size, cursor = self.limit(), self.single_value("cursor")
        if cursor is None:
            return 1, size
        try:
            number, size = (
                int(part)
                for part in base64.b64decode(cursor, validate=True).decode("ascii").split(":")
            )
        except ValueError:
            number, size = 0, 0
        if (
            number < 1
            or not 1 <= size <= 1000
            or base64.b64encode(f"{number}:{size}".encode()).decode() != cursor
        ):
            self.add_problem(400, "invalid_request", "cursor")
            return 1, 20
        return number, size

    def limit(self) -> int:
        value = self.single_value("limit")
        if value is None:
            return 20
        document = re.fullmatch(r"0*([1-9][0-9]*)(\.0*)?", value)
        if not document:
            self.add_problem(400, "invalid_request", "limit")
            return 20
        return min(int(document[1]), 1000)

    def version(self, name: str, value: str | None) -> str | None:
        if value is None or value == "latest":
            return None
        if not VERSION.fullmatch(value):
            self.add_problem(400, "invalid_request", name)
            return None
        return value

    def version_pins(self) -> dict[str, str | None]:
        """The version asked for of each toolkit that is named, and under "" that of all others;
        None is the newest.
        """
        results = {"": self.version("toolkit_versions", self.single_value("toolkit_versions"))}
        for key, value in self.pairs:
            bracket = re.fullmatch(r"toolkit_versions\[(.+)\]", key)
            if bracket and value != "" and bracket[1] not in results:
                results[bracket[1]] = self.version("toolkit_versions", self.single_value(key))
        return results


def decode_percent(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8")
