"""Definitions of other programs into files of a catalog. Pure: what comes out is a tree of path and
bytes.

    wire          tool definitions as APIs of this family send them, to additions
    openapi       the operations of an OpenAPI document, to additions
    mcp           the tools that an MCP server lists, to additions
    documents     bytes to a document: JSON or YAML, with lines and columns
    paper         a document while it is read: each value of its kind, and what is wrong where
    operations    where the operations of an OpenAPI document stand; their parameters
    inputs        parameters and body as one set of inputs
    bodies        what goes over the wire as a body, and its fields
    security      what an operation asks of credentials, as scopes
    slugs         slugs for tools that come with names of other kinds
    references    what a `$ref` leads to
    dialects      JSON Schema as others write it, to one plain spelling
    descriptions  plain JSON Schema to parameter descriptions
    refusals      a file's value without what the catalog would refuse
    standing      what the catalog has already, and the version in which a change goes there
    additions     new tools to files

Nothing is changed or dropped silently: what the format cannot hold is a `Loss`, and every one of
them is told.
"""
