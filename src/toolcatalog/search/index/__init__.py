"""The text index of a snapshot: term counts of tools, terms, postings and vocabularies."""
