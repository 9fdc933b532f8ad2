"""What schemathesis is told beside its own checks: which refusals of well-formed requests are
right. It loads this file by itself.

A schema tells the form of a request, and the interface wants 400 for some that are well formed: a
version or toolkit to pin that is not there, and a cursor that this API did not make. So 400 is let
through by the settings of test_contract.py, and looked at here.
"""

import re
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, Response

_NOT_FOUND_MESSAGE = re.compile(
    r"cursor: .* is not a cursor of this API\.|session_id: there is no session [^"
    r" ]+\.|(toolkit_versions|toolkit_slug|auth_config_ids): "
    r"(no toolkit has a version|toolkit [^ ]+ has no version|there is no (toolkit|auth config))"
    r" .*\.|"
    # 403 by itself, 400 beside one of the others
    r"toolkit_slug: this key's project may not use toolkit [^ ]+\.",
    re.DOTALL,
).fullmatch


@schemathesis.check
def check_rejected_requests(
    ctx: CheckContext,  # noqa: ARG001
    response: Response,
    case: Case[Any],
) -> None:
    """Data that fits the document is refused with 400 only where it names something that is not
    there.
    """
    if case.meta and case.meta.generation.mode.is_positive and response.status_code == 400:
        lines = response.json()["error"]["errors"]
        assert all(map(_NOT_FOUND_MESSAGE, lines)), lines
