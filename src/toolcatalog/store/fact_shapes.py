"""The shapes of facts: what each entry of the table of facts contains.

A build writes facts of these shapes. A downloaded snapshot is checked, because one with other facts
could have valid checksums.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema_rs
import orjson

from toolcatalog.errors import SnapshotError
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.tables import Table

_STRING = {"type": "string"}
_STRINGS = {"type": "array", "items": _STRING}
_TOOLKIT_INFO = {
    "type": "object",
    "properties": {
        "name": _STRING,
        "logo": _STRING,
        "description": _STRING,
        "categories": _STRINGS,
        "no_auth": {"type": "boolean"},
        "homepage": _STRING,
    },
}
_MCP_SERVER = {
    "type": "object",
    "properties": {
        "name": _STRING,
        "version": _STRING,
        "url": _STRING,
        "transport": _STRING,
        "package": {
            "type": "object",
            "properties": {"registry": _STRING, "identifier": _STRING, "version": _STRING},
            "required": ["registry", "identifier"],
        },
    },
    "required": ["name", "version"],
}
_SESSION = {"type": "array", "prefixItems": [_STRING, _STRINGS], "minItems": 2, "maxItems": 2}
_SHAPES: Mapping[str, Any] = {  # by the kind of a fact, which is the first word of its name
    snapshot_format.ALL_VERSIONS: _STRINGS,
    "toolkit": _STRINGS,
    "toolkit_info": _TOOLKIT_INFO,
    "mcp_server": _MCP_SERVER,
    "auth_config": _STRING,
    "auth_configs": _STRINGS,
    "session": _SESSION,
}


def check_facts(facts: Table) -> None:
    """Raise SnapshotError if a fact does not have the shape of its kind."""
    validators = _make_validators()
    for index in range(len(facts)):
        name, data = facts.entry_at(index)
        kind = name.partition(" ")[0]
        if kind in validators:
            # a session is followed by its response
            value = data.partition(b"\n")[0] if kind == "session" else data
            if not _is_valid(validators[kind], value):
                raise SnapshotError(f"`{name[:80]}` has another content than a build writes")


@cache
def _make_validators() -> Mapping[str, jsonschema_rs.Draft202012Validator]:
    return {kind: jsonschema_rs.Draft202012Validator(shape) for kind, shape in _SHAPES.items()}


def _is_valid(validator: jsonschema_rs.Draft202012Validator, data: bytes) -> bool:
    try:
        return validator.is_valid(orjson.loads(data))
    except orjson.JSONDecodeError:
        return False
