"""All checks of a catalog: severities, suppressions, fixes, reports and rule pages."""
