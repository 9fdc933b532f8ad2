"""Git revisions, builds and versions to compare, and rules about published versions."""
