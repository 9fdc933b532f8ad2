"""New files: writes of commands that create files in a catalog."""

from collections.abc import Mapping
from pathlib import Path

from toolcatalog.errors import write_error
from toolcatalog.system import files


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files in their order, and nothing through a link. Raises UsageError."""
    for name in contents:
        files.require_no_links(folder / name, folder)
    try:
        for name, data in contents.items():
            files.write_if_changed(folder / name, data)
    except OSError as error:
        raise write_error(error.filename or folder, error, ", or name another folder") from None
