"""Sample tools and strategies for parameter descriptions."""

from typing import Any

from hypothesis import strategies as st

from toolcatalog import names, versions
from toolcatalog.exports import definitions
from toolcatalog.parameters import TYPES, to_served_inputs, to_served_outputs
from toolcatalog.snapshot.format import Tool

TOOL = Tool(
    slug="MAIL_SEND",
    toolkit="mail",
    version="20250101_00",
    available_versions=("20250101_00",),
    name="Send a mail",
    description="Send “it” & <wait>.",
    scopes=("send",),
    tags=("mail", "openWorldHint", "destructiveHint"),
    no_auth=False,
    deprecation=None,
    input_parameters=to_served_inputs(
        {
            "to": {
                "type": "array",
                "required": True,
                "items": {"type": "string", "format": "email"},
                "minItems": 2,
            },
            "head": {
                "type": "object",
                "nullable": True,
                "description": "What stands above.",
                "title": "Head",
                "properties": {
                    "topic": {"type": "string", "required": True, "minLength": 1},
                    "size": {"type": "integer", "default": 3},
                },
                "additionalProperties": {
                    "type": "object",
                    "properties": {"required": {"type": "number", "required": True}},
                },
            },
            "when": {
                "anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}],
                "nullable": True,
                "examples": [7],
            },
            "one": {
                "oneOf": [{"type": "integer", "nullable": True}, {"type": "string"}],
                "nullable": True,
                "title": "One",
                "enum": [1, "a"],
            },
            "state": {
                "type": "string",
                "enum": ["open", "closed"],
                "nullable": True,
                "default": None,
            },
        }
    ),
    output_parameters=to_served_outputs(
        {
            "id": {"type": "string", "description": "Its id."},
            "copies": {"type": "object", "properties": {"n": {"type": "integer"}}},
        }
    ),
)


# Whatever can be written and served

NAMES = st.sampled_from(["a", "b", "required", "nullable", "description", "a.b", "x`y", ""])
TEXTS = st.sampled_from(["", "A", "B `c`"])
VALUES = st.recursive(
    st.sampled_from(["", "a", "b", "2025-01-15", 0, 1, 7, -1, 1.5, True, False, None]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_LIMITS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "string": {
        "minLength": st.integers(0, 6),
        "maxLength": st.integers(6, 9),
        "pattern": st.sampled_from(["^a", "b$"]),
        "format": st.sampled_from(["date", "email", "x"]),
    },
    "number": {
        "minimum": st.integers(-3, 2),
        "maximum": st.integers(3, 9),
        "exclusiveMinimum": st.sampled_from([-4, 0.5]),
        "exclusiveMaximum": st.sampled_from([3.5, 10]),
    },
    "array": {
        "minItems": st.integers(0, 3),
        "maxItems": st.integers(3, 5),
        "uniqueItems": st.booleans(),
    },
    "boolean": {},
    "object": {},
}
_LIMITS["integer"] = _LIMITS["number"]
SAYING = {
    "description": TEXTS,
    "title": TEXTS,
    "examples": st.lists(VALUES, max_size=2),
    "default": VALUES,
    "enum": st.lists(VALUES, min_size=1, max_size=3),
}


@st.composite
def described(
    draw: st.DrawFn, named: bool = True, depth: int = 2, but: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """A description as an author may write it, without keys of `but`; `examples`, `default` and
    `enum` need not fit, which nothing here asks.
    """
    kind = draw(st.sampled_from(TYPES))
    inner = described(False, depth - 1, but) if depth else st.just({"type": "string"})
    extra = {
        **SAYING,
        **_LIMITS[kind],
        "nullable": st.booleans(),
        **({"required": st.booleans()} if named else {}),
    }
    branches = {}
    if depth and draw(st.integers(0, 3)) == 0:
        key = draw(st.sampled_from(sorted({"anyOf", "oneOf"} - but)))
        branches = {key: draw(st.lists(inner, min_size=1, max_size=3))}
    elif kind == "array":
        extra["items"] = inner
    elif kind == "object":
        extra["properties"] = parameters(depth - 1, but) if depth else st.just({})
        extra["additionalProperties"] = st.booleans() | inner
    optional = {key: how for key, how in extra.items() if key not in but}
    return (
        draw(st.fixed_dictionaries({} if branches else {"type": st.just(kind)}, optional=optional))
        | branches
    )


def parameters(
    depth: int = 2, but: frozenset[str] = frozenset()
) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(NAMES, described(True, depth, but), max_size=3)


def tools() -> st.SearchStrategy[Tool]:
    """Any served tool."""
    words = st.lists(
        st.sampled_from(["x", "y", "important", *definitions.HINT_TAGS]), max_size=3, unique=True
    ).map(tuple)
    deprecations = st.none() | st.fixed_dictionaries(
        dict.fromkeys(("reason", "since", "sunset", "replaced_by"), TEXTS)
    )
    return st.builds(
        Tool,
        slug=st.from_regex(names.TOOL_SLUG, fullmatch=True),
        toolkit=st.just("kit"),
        version=st.from_regex(versions.PATTERN, fullmatch=True),
        available_versions=st.just(()),
        name=TEXTS,
        description=TEXTS,
        scopes=words,
        tags=words,
        no_auth=st.booleans(),
        deprecation=deprecations,
        input_parameters=parameters().map(to_served_inputs),
        output_parameters=parameters(but=frozenset(["required"])).map(to_served_outputs),
    )
