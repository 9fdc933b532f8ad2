"""Listening sockets: the permissions of a Unix domain socket."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from toolcatalog.cli.listeners import open_unix_listener

SWAP_BEFORE_CHMOD = """
import os, sys
from pathlib import Path
from toolcatalog.cli.listeners import open_unix_listener

path, secret = sys.argv[1:]

def swap(event, arguments):
    if event == "os.chmod" and not os.path.islink(path):
        os.unlink(path)
        os.symlink(secret, path)

sys.addaudithook(swap)
open_unix_listener(Path(path)).close()
"""


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_every_user_may_connect_to_unix_listener(umask: int, tmp_path: Path) -> None:
    """Whatever the umask, which stays as it was."""
    before = os.umask(umask)
    try:
        open_unix_listener(tmp_path / "s").close()
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o666


def test_link_in_place_of_unix_listener_changes_no_mode(tmp_path: Path) -> None:
    """The owner of the folder can replace the socket as soon as it is there."""
    secret = tmp_path / "secret"
    secret.touch(0o600)
    command = [sys.executable, "-c", SWAP_BEFORE_CHMOD, str(tmp_path / "s"), str(secret)]
    subprocess.run(command, check=True)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
