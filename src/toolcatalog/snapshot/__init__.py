"""The served format: records, files, manifest, verification, and its directory on disk."""
