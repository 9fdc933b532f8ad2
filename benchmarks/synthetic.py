"""A synthetic catalog: `python -m benchmarks.synthetic FOLDER --tools N [--seed S] [--files-only]`.

Files have about 3 KB, with varied words, realistic parameters, toolkits of 200 tools, versions,
tags, scopes, and deprecations; there are some sessions, auth configs, and meta tools. The same
number and seed give the same bytes. It is text without a YAML library: a million tools take a few
minutes.
"""

import argparse
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parameters import ParameterPool
from benchmarks.vocabulary import ADJECTIVES, NOUNS, SCOPES, TAGS, VERBS, Vocabulary, make_words

TOOLS_IN_TOOLKIT = 200
VERSIONS = ("20250301_00", "20250715_00", "20251027_00")
_DEPRECATED_SHARE = 0.08
_CHANGED_SHARE = 0.25  # tools with a second version
_CHANGED_AGAIN_SHARE = 0.2  # of those, where the toolkit has three versions: with a third one
_SESSION_COUNT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Toolkit:
    slug: str
    versions: Sequence[str]
    tools: Sequence[tuple[str, str]]  # slug, display name
    deprecated: Mapping[str, str]  # slug to the slug that takes its place


class _CatalogWriter:
    """Writes the text of the files."""

    def __init__(self, seed: int, files_only: bool) -> None:
        self.seed = seed
        self.files_only = files_only
        self.words = Vocabulary(seed)
        self.parameters = ParameterPool(seed, self.words)

    def toolkit(self, slug: str, count: int) -> _Toolkit:
        """Create a toolkit with names of `count` tools."""
        rng = random.Random(f"toolkit {self.seed} {slug}")
        tools: dict[str, str] = {}
        while len(tools) < count:
            noun = (
                rng.choice(NOUNS)
                if rng.random() < 0.5
                else f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"
            )
            name = f"{VERBS[min(int(rng.expovariate(0.08)), len(VERBS) - 1)]} {noun}"
            tools.setdefault(f"{slug}_{name.replace(' ', '_')}".upper(), name)
        slugs = [*tools]
        deprecated = rng.sample(slugs, round(count * _DEPRECATED_SHARE))
        current = [tool for tool in slugs if tool not in deprecated]
        return _Toolkit(
            slug=slug,
            versions=VERSIONS[:1] if self.files_only else VERSIONS[: rng.choice((2, 3))],
            tools=[*tools.items()],
            deprecated={tool: rng.choice(current) for tool in deprecated},
        )

    def files(self, toolkit: _Toolkit) -> Iterator[tuple[str, str, str]]:
        """Yield the files of a toolkit's tools: slug, version, text."""
        for slug, name in toolkit.tools:
            rng = random.Random(f"tool {self.seed} {slug}")
            versions = _versions(rng, toolkit.versions)
            inputs, outputs = (
                self.parameters.draw(rng, rng.randint(4, 8)),
                self.parameters.draw(rng, rng.randint(3, 7)),
            )
            head = self._head(rng, toolkit.slug, name)
            for number, version in enumerate(versions):
                last = number == len(versions) - 1
                replaced_by = toolkit.deprecated.get(slug) if last else None
                yield (
                    slug,
                    version,
                    head + _deprecation(replaced_by) + _parameters(rng, inputs, outputs),
                )
                # the next version has one more parameter and a longer description
                inputs = inputs | self.parameters.draw(rng, 1)
                head = head.replace("\nscopes:", f" {self._sentence(rng, 5, 9)}\nscopes:", 1)

    def _head(self, rng: random.Random, toolkit: str, name: str) -> str:
        tags = [
            tag
            for tag, share in (("important", 0.06), ("readOnlyHint", 0.4), ("destructiveHint", 0.1))
            if rng.random() < share
        ]
        tags += rng.sample(TAGS[3:], rng.choice((1, 2, 2, 3)))
        sentences = f"{self._sentence(rng, 10, 25)} {self._sentence(rng, 8, 20)}"
        scopes = rng.sample(SCOPES, rng.choice((0, 1, 1, 2)))
        return (
            f"name: {name.capitalize()}\n"
            f"description: {name.capitalize()} in {toolkit}. {sentences}\n"
            f"scopes: [{', '.join(scopes)}]\ntags: [{', '.join(tags)}]\n"
        )

    def _sentence(self, rng: random.Random, min_words: int, max_words: int) -> str:
        return " ".join(self.words.draw(rng, rng.randint(min_words, max_words))).capitalize() + "."


def _versions(rng: random.Random, of_toolkit: Sequence[str]) -> Sequence[str]:
    if len(of_toolkit) == 1 or rng.random() >= _CHANGED_SHARE:
        return of_toolkit[:1] if rng.random() < 0.8 else of_toolkit[-1:]  # one in five came later
    return of_toolkit if rng.random() < _CHANGED_AGAIN_SHARE else of_toolkit[:2]


def _deprecation(replaced_by: str | None) -> str:
    if replaced_by is None:
        return ""
    return (
        "deprecation:\n  reason: A newer call does more.\n  since: 2026-01-15\n"
        f"  sunset: 2027-01-15\n  replaced_by: {replaced_by}\n"
    )


def _parameters(rng: random.Random, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    required = "    required: true\n"
    input_lines = [
        f"  {name}:\n{text}{required if number < 2 or rng.random() < 0.1 else ''}"
        for number, (name, text) in enumerate(inputs.items())
    ]
    output_lines = [f"  {name}:\n{text}" for name, text in outputs.items()]
    return f"input_parameters:\n{''.join(input_lines)}output_parameters:\n{''.join(output_lines)}"


def write_catalog(folder: Path, tools: int, seed: int = 1, files_only: bool = False) -> int:
    """Write a catalog into a folder that does not exist; return the number of its tool files.

    `files_only` means one version of each tool, and neither sessions nor meta tools, so that there
    are exactly as many files as tools. The folder gets its name when it is complete.
    """
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    author = _CatalogWriter(seed, files_only)
    slugs = make_words(random.Random(f"toolkits {seed}"), max(1, tools // TOOLS_IN_TOOLKIT), ())
    toolkits = [
        author.toolkit(slug, tools // len(slugs) + (number < tools % len(slugs)))
        for number, slug in enumerate(slugs)
    ]
    _write_file(
        part, "catalog.yaml", "title: Synthetic catalog\ndescription: Made for measuring.\n"
    )
    files = sum(
        _write_toolkit(part / "toolkits" / toolkit.slug, toolkit, author) for toolkit in toolkits
    )
    if not files_only:
        _write_sessions(part, toolkits[:_SESSION_COUNT])
    part.rename(folder)
    return files


def _write_toolkit(folder: Path, toolkit: _Toolkit, author: _CatalogWriter) -> int:
    logo = f"https://example.com/{toolkit.slug}.png"
    about = f"name: {toolkit.slug.capitalize()}\nlogo: {logo}\n"
    about += f"description: The tools of {toolkit.slug}.\n"
    _write_file(folder, "toolkit.yaml", f"{about}categories: [synthetic]\nowners: [nobody]\n")
    count = 0
    for slug, version, text in author.files(toolkit):
        tool_folder = folder / slug
        tool_folder.mkdir(exist_ok=True)
        with open(tool_folder / f"{version}.yaml", "w", encoding="utf-8") as file:
            file.write(text)
        count += 1
    return count


def _write_sessions(folder: Path, toolkits: Sequence[_Toolkit]) -> None:
    """Write a session and two auth configs for each toolkit, and the sessions' meta tools."""
    for toolkit in toolkits:
        slugs = ", ".join(slug for slug, _ in toolkit.tools[:10])
        _write_file(
            folder / "auth_configs",
            f"ac_{toolkit.slug}_some.yaml",
            f"toolkit: {toolkit.slug}\ntools: [{slugs}]\n",
        )
        _write_file(
            folder / "auth_configs",
            f"ac_{toolkit.slug}_read.yaml",
            f"toolkit: {toolkit.slug}\nscopes: ['files:read', 'users:read']\n",
        )
        config = f"auth_configs: {{{toolkit.slug}: ac_{toolkit.slug}_some}}\n"
        session = (
            "project: default\nuser_id: bench\n"
            f"toolkits: {{enable: [{toolkit.slug}]}}\n{config}"
            "manage_connections: {enable: true}\n"
        )
        _write_file(folder / "sessions", f"trs_{toolkit.slug}.yaml", session)
    meta = folder / "meta_tools"
    _write_file(
        meta, "toolkit.yaml", "name: Router\nlogo: https://example.com/router.png\nno_auth: true\n"
    )
    for slug, text in _META_TOOLS.items():
        _write_file(meta / slug, f"{VERSIONS[0]}.yaml", text)


def _write_file(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


_META_TOOLS = {
    "ROUTER_SEARCH_TOOLS": """\
name: Search tools
description: Find the tools of this session that can do a job.
tags: [search, readOnlyHint]
input_parameters:
  use_case: {type: string, description: What shall be done., required: true}
output_parameters:
  tools:
    type: array
    description: Slugs of tools that fit.
    items: {type: string, description: One slug., enum: {$session: tools}}
""",
    "ROUTER_RUN_TOOL": """\
name: Run a tool
description: Run one tool of this session.
input_parameters:
  tool_slug: {type: string, description: The tool to run., required: true, enum: {$session: tools}}
  arguments: {type: object, description: What it takes., additionalProperties: true}
""",
    "ROUTER_CONNECT": """\
name: Connect an account
description: Connect an account to a toolkit of this session.
when: manage_connections
input_parameters:
  toolkit: {type: string, description: The toolkit., required: true, enum: {$session: toolkits}}
""",
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.synthetic", description="Write a synthetic catalog."
    )
    parser.add_argument("folder", type=Path, help="a folder that does not exist")
    parser.add_argument("--tools", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--files-only",
        action="store_true",
        help="one version of each tool, for the build benchmark",
    )
    arguments = parser.parse_args()
    if arguments.folder.exists():
        parser.error(f"{arguments.folder} exists: name another folder, or remove it")
    count = write_catalog(arguments.folder, arguments.tools, arguments.seed, arguments.files_only)
    print(f"{count:,} files of tools")


if __name__ == "__main__":
    main()
