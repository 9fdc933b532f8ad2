"""Search: text analysis and BM25, the index, queries and embeddings.

Builds write the files of `index` and `embeddings`; `query` reads both to rank tools.
"""
