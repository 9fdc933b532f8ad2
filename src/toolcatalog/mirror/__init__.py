"""The static mirror: answers of the API as files for any static host."""
