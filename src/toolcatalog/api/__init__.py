"""The read API without HTTP: what clients may ask for, and the answers."""
