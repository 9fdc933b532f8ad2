"""Export of the search index to OpenSearch or Elasticsearch: bulk requests and the mapping.

A tool becomes one document. Its `terms` have the same fields as the built-in index, already
analyzed: the stems of the words of each field, without stop words. The engine splits these at
spaces only, and analyzes queries nearly as the built-in search does.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from toolcatalog import encoding
from toolcatalog.search import analysis, bm25
from toolcatalog.search.index.term_counts import extract_fields

# the fields of the built-in index, as keys
FIELD_KEYS = tuple(field.replace(" ", "_") for field in bm25.FIELDS)
_IMPORTANT_TAG = "important"


def build_index_body() -> dict[str, Any]:
    """Return the body of the request that creates the index: settings and mappings.

    Each field has the weight and the length normalization of the built-in index: the weights are in
    `mappings._meta.query_fields`, for `multi_match`.
    """
    weights, lengths = bm25.FIELD_WEIGHTS.tolist(), bm25.FIELD_B.tolist()
    return {
        "settings": {
            "similarity": {
                f"bm25_{key}": {"type": "BM25", "k1": bm25.K1, "b": b}
                for key, b in zip(FIELD_KEYS, lengths, strict=True)
            },
            "analysis": {
                "filter": {
                    "tool_words": {
                        "type": "word_delimiter_graph",
                        "split_on_case_change": True,
                        "split_on_numerics": True,
                        "stem_english_possessive": False,
                    },
                    "tool_stop": {"type": "stop", "stopwords": sorted(analysis.STOP_WORDS)},
                    "tool_stem": {"type": "snowball", "language": "English"},
                },
                "analyzer": {
                    "tool_query": {
                        "type": "custom",
                        "tokenizer": "standard",
                        "filter": [
                            "cjk_bigram",
                            "tool_words",
                            "lowercase",
                            "asciifolding",
                            "tool_stop",
                            "tool_stem",
                        ],
                    }
                },
            },
        },
        "mappings": {
            "dynamic": False,
            "_meta": {
                "query_fields": [
                    f"terms.{key}^{weight:g}"
                    for key, weight in zip(FIELD_KEYS, weights, strict=True)
                ]
            },
            "properties": {
                **{
                    name: {"type": "keyword"}
                    for name in ("slug", "toolkit", "version", "tags", "scopes")
                },
                **{name: {"type": "boolean"} for name in ("no_auth", "deprecated", "important")},
                "name": {"type": "keyword", "ignore_above": 1024},
                "description": {"type": "text", "index": False},
                "terms": {
                    "properties": {
                        key: {
                            "type": "text",
                            "analyzer": "whitespace",
                            "search_analyzer": "tool_query",
                            "similarity": f"bm25_{key}",
                        }
                        for key in FIELD_KEYS
                    }
                },
            },
        },
    }


def render_bulk_lines(document: Mapping[str, Any], index: str) -> Iterator[bytes]:
    """Yield the two lines of a tool in a bulk request: the action and the document.

    `document` is a tool as the API returns it.
    """
    yield encoding.dump_json({"index": {"_index": index, "_id": document["slug"]}})
    yield encoding.dump_json(_build_document(document))


def _build_document(document: Mapping[str, Any]) -> dict[str, Any]:
    toolkit = document["toolkit"]
    fields = extract_fields(
        document["slug"],
        document["name"],
        document["description"],
        (toolkit["slug"], toolkit["name"]),
        document["input_parameters"],
        is_newest=True,
    ).fields
    return {
        "slug": document["slug"],
        "name": document["name"],
        "description": document["description"],
        "toolkit": toolkit["slug"],
        "version": document["version"],
        "tags": document["tags"],
        "scopes": document["scopes"],
        "no_auth": document["no_auth"],
        "deprecated": document["is_deprecated"],
        "important": _IMPORTANT_TAG in document["tags"],
        "terms": {
            key: " ".join(term for piece in pieces for term in analysis.terms_in_piece(piece))
            for key, pieces in zip(FIELD_KEYS, fields, strict=True)
        },
    }
