"""Embeddings: a sentence model, the vectors of tools and queries, and nearest neighbors."""
