"""Advice on what is well formed and could still be better: hard to find, hard to use, or not to be
trusted. Pure.

Each rule is a small function with an id, a severity that `catalog.yaml` can change, a page in
`rulebook/`, and cases in `tests/rejects/`.
"""

from toolcatalog.lints import hints, identity, leaks, portability, quality, references, security
from toolcatalog.lints.kinds import Lint, Survey

# they look at texts only, whatever these belong to
OF_TEXTS: tuple[Lint, ...] = (*security.LINTS, *leaks.LINTS)
LINTS: tuple[Lint, ...] = (
    *quality.LINTS,
    *hints.LINTS,
    *identity.LINTS,
    *portability.LINTS,
    *OF_TEXTS,
)
SURVEYS: tuple[Survey, ...] = (
    *hints.SURVEYS,
    *identity.SURVEYS,
    *references.SURVEYS,
    *security.SURVEYS,
)
