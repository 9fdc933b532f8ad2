"""Lint rules: advice on one tool."""
