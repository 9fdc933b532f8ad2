"""A hook of MkDocs: pages from outside docs/, and the links to and from them.

The pages of the rules lie next to the code that checks them, and the contributor's files at the
root of the repository. Both become pages of the site.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
RULES = "src/toolcatalog/validation/rulebook"
ROOT_PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def _page_paths() -> dict[str, str]:
    """Return the path in the site of each page from outside docs/, by its own path."""
    rules = {
        f"{RULES}/{path.name}": f"reference/rules/{path.name}"
        for path in sorted((ROOT / RULES).glob("*.md"))
    }
    return rules | {name: name.lower() for name in ROOT_PAGES}


PAGES = _page_paths()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for source, target in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - required
    """Rewrite links between docs/ and the rest of the repository to links of the site.

    A file that is no page, such as a unit of systemd, is named by its path.
    """
    target = page.file.src_uri
    sources = {path: source for source, path in PAGES.items()}
    source = sources.get(target, f"docs/{target}")

    def rewrite(match: re.Match[str]) -> str:
        text, link, anchor = match[1], match[2], match[3] or ""
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        path = PAGES.get(linked, linked.removeprefix("docs/"))
        if path == linked:
            return f"{text} (`{linked}`)" if (ROOT / linked).exists() else match[0]
        return f"[{text}]({posixpath.relpath(path, posixpath.dirname(target) or '.')}{anchor})"

    return _LINK.sub(rewrite, markdown)
