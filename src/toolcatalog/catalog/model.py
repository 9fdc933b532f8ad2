"""The catalog model: one frozen record for each kind of YAML file.

Nothing here checks, reads or
serves.

The shape is that of the YAML files; what clients see is in `snapshot`. Parameter descriptions stay
plain mappings in the author's form, because what they may hold is JSON Schema's affair;
`parameters` knows their twists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Parameters = Mapping[str, Mapping[str, Any]]
ROUTER = "router"  # the toolkit of the meta tools
UNKNOWN_TOOLKIT = ""  # the toolkit of an auth config whose file could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """catalog.yaml: what this catalog is."""

    title: str
    description: str = ""
    home: str = ""
    repository: str = ""
    # what rules of advice weigh in this catalog
    rules: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """toolkits/<slug>/toolkit.yaml"""

    slug: str
    name: str
    logo: str
    description: str = ""
    categories: tuple[str, ...] = ()
    no_auth: bool = False
    homepage: str = ""
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """A tool version that says `deprecation:` is deprecated, whatever stands below it."""

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
    no_auth: bool | None = None  # None: the toolkit's
    deprecation: Deprecation | None = None
    input_parameters: Parameters
    output_parameters: Parameters

    @property
    def summary(self) -> "ToolSummary":
        """The same for the other files."""
        replaced_by = self.deprecation.replaced_by if self.deprecation else None
        return ToolSummary(
            self.toolkit, self.slug, self.version, self.scopes, self.tags, replaced_by
        )

    @classmethod
    def from_value(
        cls, value: Mapping[str, Any], *, path: str, slug: str, toolkit: str, version: str
    ) -> "ToolVersion":
        """The record of a file's value that has passed its schema."""
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
            input_parameters=value.get("input_parameters", {}),
            output_parameters=value.get("output_parameters", {}),
        )


class ToolSummary(NamedTuple):
    """One tool version as far as the other files of a catalog are concerned. `replaced_by`: None
    where it is not deprecated.

    There may be a million of them, so it is the smallest record that there is.
    """

    toolkit: str
    slug: str
    version: str
    scopes: Sequence[str] = ()
    tags: Sequence[str] = ()
    replaced_by: str | None = None

    @property
    def path(self) -> str:
        """Where its file lies."""
        return f"toolkits/{self.toolkit}/{self.slug}/{self.version}.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaTool:
    """meta_tools/<slug>/<version>.yaml: a tool version file whose `template` may hold placeholders.
    `when` None: always.
    """

    path: str
    slug: str
    version: str
    template: Mapping[str, Any]
    when: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """auth_configs/<id>.yaml: which tools of a toolkit one set of credentials can use. None: no
    limit.
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
    """What a session says of one toolkit's tools; `tags` None: the session's own tags hold."""

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
    """All files of a catalog. Tool versions are sorted by slug and version, oldest first; the rest
    by name.
    """

    about: About
    toolkits: Mapping[str, Toolkit]
    tools: Sequence[ToolSummary]
    router: Toolkit | None = None
    meta_tools: tuple[MetaTool, ...] = ()
    auth_configs: tuple[AuthConfig, ...] = ()
    sessions: tuple[Session, ...] = ()
