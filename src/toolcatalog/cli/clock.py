"""What day it is: only commands that make something new may ask."""

from datetime import datetime


def today_compact() -> str:
    """Today, as versions begin: 20251027."""
    return f"{datetime.now().astimezone():%Y%m%d}"


def today_iso() -> str:
    """Today, as dates are written: 2025-10-27."""
    return f"{datetime.now().astimezone():%Y-%m-%d}"
