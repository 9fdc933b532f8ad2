"""Text analysis, the search index, ranking and vectors."""
