"""The catalog folder and its records. This is the only package that reads YAML."""
