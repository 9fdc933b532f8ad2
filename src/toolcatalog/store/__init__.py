"""An opened snapshot that answers queries."""
