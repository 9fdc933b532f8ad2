"""Security of an OpenAPI operation: its scopes, and the parameters that carry credentials.

`security` is a list of alternatives, each of which names everything that is required together. A
tool has one list of scopes, so the first alternative is used. An empty list or an empty alternative
means that no credentials are needed. A document without `security` does not say, and then a tool
needs authentication unless the user states otherwise.
"""

import re
from collections.abc import Mapping
from typing import Any

from toolcatalog.errors import Pointer
from toolcatalog.importers.documents import DocumentReader
from toolcatalog.importers.json_schema import Loss

_TOKEN_LOCATIONS = ("header", "query", "cookie", "formData")
# names that only credentials have
_CREDENTIAL_NAME = re.compile(
    r"(?:x-)?(?:api|access|auth)[_-]?(?:key|token)|(?:proxy-)?authorization|bearer(?:[_-]?token)?",
    re.IGNORECASE,
)
# names that credentials share with other values, so that the description decides
_AMBIGUOUS_NAME = re.compile(r"(?:x-)?(?:token|key|apikey)", re.IGNORECASE)
_CREDENTIAL_TEXT = re.compile(
    r"authenticat|authoriz|access token|api[ -]?key|bearer|requires scope", re.IGNORECASE
)


def read_security(
    document: DocumentReader, operation: dict[str, Any], pointer: Pointer, no_auth: bool
) -> tuple[dict[str, Any], list[Loss]]:
    """Return the `scopes` and `no_auth` fields of an operation's tool, and the losses.

    `no_auth` is whether an operation without any `security` needs no authentication. Fields without
    a value are left out.
    """
    parent, place = (operation, pointer) if "security" in operation else (document.root, ())
    alternatives = document.get(parent, place, "security", list)
    if parent.get("security") is None:
        return _unknown_security(no_auth)
    needs = [
        document.get_mapping(item, (*place, "security", index), "a security requirement")
        for index, item in enumerate(alternatives)
    ]
    kind = "alternatives of `security` other than the first"
    losses = [Loss(("security",), kind)] if len(needs) > 1 else []
    if not needs or not all(need for need, _ in needs):
        return {"no_auth": True}, losses
    first, first_pointer = needs[0]
    scopes = [
        scope for scheme in first for scope in document.get_texts(first, first_pointer, scheme)
    ]
    return {"scopes": [*dict.fromkeys(scopes)]} if scopes else {}, losses


def _unknown_security(no_auth: bool) -> tuple[dict[str, Any], list[Loss]]:
    if no_auth:
        return {"no_auth": True}, []
    kind = "no `security` in the source: authentication is taken as needed"
    return {}, [Loss(("no_auth",), kind, "use --no-auth if none is")]


def credential_parameters(document: DocumentReader) -> set[tuple[str, str]]:
    """Return the name, in lower case, and location of each API key that the document declares."""
    components = document.root.get("components")
    parents = [document.root.get("securityDefinitions")]
    parents.append(components.get("securitySchemes") if isinstance(components, Mapping) else None)
    schemes = [
        scheme for parent in parents if isinstance(parent, Mapping) for scheme in parent.values()
    ]
    return {
        (str(scheme.get("name")).lower(), str(scheme.get("in")))
        for scheme in schemes
        if isinstance(scheme, Mapping) and scheme.get("type") == "apiKey"
    }


def is_credential(parameter: Mapping[str, Any], declared: set[tuple[str, str]]) -> bool:
    """Return whether a parameter carries a credential, which a platform adds and no model gives.

    `declared` are the API keys of the document. Other parameters are recognized by their name, and
    by their description if the name alone is not enough, such as `token`.
    """
    name, location = str(parameter["name"]), str(parameter["in"])
    if (name.lower(), location) in declared:
        return True
    if location not in _TOKEN_LOCATIONS:
        return False
    if _CREDENTIAL_NAME.fullmatch(name):
        return True
    text = str(parameter.get("description", ""))
    return bool(_AMBIGUOUS_NAME.fullmatch(name) and _CREDENTIAL_TEXT.search(text))
