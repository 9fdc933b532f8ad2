"""The catalog model: one frozen record for each kind of YAML file.

The records have the shape of the YAML files; `snapshot.format` has the shape that clients see. The
module contains no checks and no I/O. Parameter descriptions stay plain mappings as the author wrote
them, because their content is JSON Schema; `parameters` handles where they differ from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Parameters = Mapping[str, Mapping[str, Any]]
ROUTER = "router"  # the toolkit of the meta tools
UNKNOWN_TOOLKIT = ""  # the toolkit of an auth config whose file could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """catalog.yaml: title, description and settings of the catalog."""

    title: str
    description: str = ""
    home: str = ""
    repository: str = ""
    api: str = ""
    headline: str = ""
    accent: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    # severity overrides of lint rules
    rules: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """toolkits/<slug>/toolkit.yaml

    `logo` is a URL or empty. `logo_file` is the path of a logo in the catalog, or empty.
    `mcp_server` is as written, or None.
    """

    slug: str
    name: str
    logo: str = ""
    description: str = ""
    categories: tuple[str, ...] = ()
    no_auth: bool = False
    homepage: str = ""
    owners: tuple[str, ...] = ()
    mcp_server: Mapping[str, Any] | None = None
    logo_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A logo or a font, which the site publishes; `digest` is the SHA-256 of its bytes.

    `toolkit` is empty for the files of the catalog itself.
    """

    path: str
    toolkit: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """The `deprecation` field.

    Its presence marks a tool version as deprecated, even if it is empty.
    """

    reason: str = ""
    since: str = ""
    sunset: str = ""
    replaced_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolVersion:
    """toolkits/<toolkit>/<slug>/<version>.yaml"""

    path: str
    slug: str
    toolkit: str
    version: str
    name: str
    description: str
    scopes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    no_auth: bool | None = None  # None: as in the toolkit
    deprecation: Deprecation | None = None
    source: Mapping[str, str] | None = None  # method and path of an HTTP operation
    input_parameters: Parameters
    output_parameters: Parameters

    @property
    def summary(self) -> "ToolSummary":
        """The fields that checks of other files need."""
        replaced_by = self.deprecation.replaced_by if self.deprecation else None
        return ToolSummary(
            self.toolkit, self.slug, self.version, self.scopes, self.tags, replaced_by
        )

    @classmethod
    def from_value(
        cls, value: Mapping[str, Any], *, path: str, slug: str, toolkit: str, version: str
    ) -> "ToolVersion":
        """Create the record from a file's value that is valid against its schema."""
        return cls(
            path=path,
            slug=slug,
            toolkit=toolkit,
            version=version,
            name=value["name"],
            description=value["description"],
            scopes=tuple(value.get("scopes", ())),
            tags=tuple(value.get("tags", ())),
            no_auth=value.get("no_auth"),
            deprecation=Deprecation(**value["deprecation"]) if "deprecation" in value else None,
            source=value.get("source"),
            input_parameters=value.get("input_parameters", {}),
            output_parameters=value.get("output_parameters", {}),
        )


class ToolSummary(NamedTuple):
    """The fields of a tool version that other files of a catalog refer to.

    `replaced_by` is None if the version is not deprecated. A catalog may have a million of these,
    so the record is as small as possible.
    """

    toolkit: str
    slug: str
    version: str
    scopes: Sequence[str] = ()
    tags: Sequence[str] = ()
    replaced_by: str | None = None

    @property
    def path(self) -> str:
        """The path of its file."""
        return f"toolkits/{self.toolkit}/{self.slug}/{self.version}.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaTool:
    """meta_tools/<slug>/<version>.yaml: a tool version file with placeholders in its `template`.

    If `when` is None, every session offers it.
    """

    path: str
    slug: str
    version: str
    template: Mapping[str, Any]
    when: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """auth_configs/<id>.yaml: the tools of a toolkit that one set of credentials can use.

    `tools` or `scopes` of None means no limit.
    """

    path: str
    id: str
    toolkit: str
    tools: tuple[str, ...] | None = None
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """`enable` (None: everything) and `disable` of toolkits, tools or tags."""

    enable: tuple[str, ...] | None = None
    disable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSelection:
    """A session's selection from the tools of one toolkit.

    If `tags` is None, the tags of the session apply.
    """

    tools: Selection = Selection()
    tags: Selection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """sessions/<id>.yaml"""

    path: str
    id: str
    project: str = "default"
    user_id: str = "default"
    toolkits: Selection = Selection()
    tools: Mapping[str, ToolSelection]
    tags: Selection = Selection()
    auth_configs: Mapping[str, str]
    toolkit_versions: Mapping[str, str]
    manage_connections: bool = False
    meta_tools: tuple[str, ...] | None = None  # None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All files of a catalog.

    Tool versions are sorted by slug and version, oldest first; everything else is sorted by name.
    """

    about: About
    toolkits: Mapping[str, Toolkit]
    tools: Sequence[ToolSummary]
    router: Toolkit | None = None
    meta_tools: tuple[MetaTool, ...] = ()
    auth_configs: tuple[AuthConfig, ...] = ()
    sessions: tuple[Session, ...] = ()
