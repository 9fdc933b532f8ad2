"""The YAML folder and its records: the only package that reads YAML."""
