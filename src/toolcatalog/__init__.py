"""Tool definitions as YAML in git, built into an immutable snapshot that a small server reads.

Data flows one way through the packages:

    catalog/*.yaml -> catalog -> validation, lint -> build -> build/ (snapshots) and site/
    build/ -> snapshot -> store -> server -> clients
    build/ -> publish -> an object store -> publish (follower) -> servers on other machines
    search (index, embeddings, query), exports, diff and site: computations for the others
    keys: access control
    history compares with what was published; scaffold and importers write new files
    system wraps the operating system; cli: a module per command, the only package that prints
"""

__version__ = "0.1.0"
