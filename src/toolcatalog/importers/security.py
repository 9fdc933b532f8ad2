"""What an operation of an OpenAPI document asks of its caller's credentials, as scopes. Pure.

`security` is a list of alternatives, each of which names what is needed together. A tool has one
list of scopes, so the first alternative counts. An empty list, or an empty alternative, says that
no credentials are needed; so does a document that says nothing.
"""

from typing import Any

from toolcatalog.errors import Pointer
from toolcatalog.importers.dialects import Loss
from toolcatalog.importers.paper import DocumentReader


def read_security(
    document: DocumentReader, operation: dict[str, Any], pointer: Pointer
) -> tuple[dict[str, Any], list[Loss]]:
    """The fields `scopes` and `no_auth` of an operation's tool, as far as there is something to
    say, and what they do not hold.
    """
    holder, place = (operation, pointer) if "security" in operation else (document.root, ())
    said = document.get(holder, place, "security", list)
    if holder.get("security") is None:
        return {"no_auth": True}, [
            Loss(("security",), "no `security` in the source: taken as needing none")
        ]
    needs = [
        document.get_mapping(one, (*place, "security", index), "a security requirement")
        for index, one in enumerate(said)
    ]
    losses = (
        [Loss(("security",), "alternatives of `security` other than the first")]
        if len(needs) > 1
        else []
    )
    if not all(need for need, _ in needs) or not needs:
        return {"no_auth": True}, losses
    first, where = needs[0]
    scopes = [
        *dict.fromkeys(
            scope for scheme in first for scope in document.get_texts(first, where, scheme)
        )
    ]
    return {"scopes": scopes} if scopes else {}, losses
