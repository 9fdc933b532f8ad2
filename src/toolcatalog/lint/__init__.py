"""Lint rules: style and safety advice on the tools of a catalog."""
