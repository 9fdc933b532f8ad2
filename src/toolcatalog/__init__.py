"""toolcatalog: tool definitions as YAML in git, built into an immutable snapshot that a small
server reads.

The way of the data, and so the way to read the package:

    catalog/*.yaml -- source, yaml12 -- schema -- (model.Catalog) -- rules -- resolve -- (snapshot.Contents)
        -- build -- build/  the snapshot: JSON indexes and documents -- store -- server
                 -- site/   HTML pages, made by pages

`errors`, `versions` and `names` lie below everything; `cli` stands on top and is the only room that
prints.
"""

__version__ = "0.1.0"
