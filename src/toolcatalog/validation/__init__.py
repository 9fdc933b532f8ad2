"""Validation of a catalog: checks, severities, suppressions, fixes, reports and rule pages."""
