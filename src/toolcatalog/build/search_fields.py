"""Search fields of a batch of tools: term counts for the text index, and vectors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from toolcatalog.catalog.model import Toolkit, ToolVersion
from toolcatalog.search.embeddings import encoder
from toolcatalog.search.index import term_counts
from toolcatalog.search.index.term_counts import ToolFields


def count_words(
    tools: Sequence[ToolVersion], newest: Sequence[bool], toolkits: Mapping[str, Toolkit]
) -> bytes:
    """Return the term counts of tools; `newest` says which are the newest of their slug."""

    def extract(tool: ToolVersion, is_newest: bool) -> ToolFields:
        toolkit = tool.toolkit, toolkits[tool.toolkit].name
        return term_counts.extract_fields(
            tool.slug, tool.name, tool.description, toolkit, tool.input_parameters, is_newest
        )

    return term_counts.count_terms(map(extract, tools, newest))


def encode_vectors(
    tools: Sequence[ToolVersion], toolkits: Mapping[str, Toolkit], model_folder: Path | None
) -> bytes:
    """Return the vectors of tools, one after another. Needs the extra `semantic`.

    `model_folder` is that of the model; None: the default model.
    """
    texts = [
        encoder.ToolText(
            toolkits[tool.toolkit].name, tool.name, tool.description, [*tool.input_parameters]
        )
        for tool in tools
    ]
    return encoder.load_encoder(model_folder).encode_tools(texts)
