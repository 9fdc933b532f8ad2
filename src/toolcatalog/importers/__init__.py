"""Definitions of other programs into files of a catalog. Pure: what comes out is a tree of path and bytes.

    wire          tool definitions as APIs of this family send them, to additions
    dialects      JSON Schema as others write it, to one plain spelling
    descriptions  plain JSON Schema to parameter descriptions
    additions     new tools to files, without what the catalog would refuse

Nothing is changed or dropped silently: what the format cannot hold is a `Loss`, and every one of them is told.
"""
