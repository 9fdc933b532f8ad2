"""AWS credentials from the configuration files: profiles, SSO, roles and `credential_process`.

Needs the extra `aws`.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolcatalog.errors import UsageError

if TYPE_CHECKING:
    from obstore.auth.boto3 import Boto3CredentialProvider


def find_credentials() -> "Boto3CredentialProvider | None":
    """Return a provider of the credentials in ~/.aws; None if there are none.

    Keys in the environment take precedence. Raises UsageError if AWS_PROFILE is set and the package
    boto3 is not installed, or if the files cannot be used.
    """
    profile = os.environ.get("AWS_PROFILE")
    has_files = any(_find_file(name).is_file() for name in ("config", "credentials"))
    if os.environ.get("AWS_ACCESS_KEY_ID") or not (profile or has_files):
        return None
    try:
        import boto3  # noqa: PLC0415 - an optional extra
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
        from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415
    except ImportError:
        if profile is None:
            return None
        raise UsageError(
            "AWS_PROFILE needs the package boto3: run `pip install 'toolcatalog[aws]'`."
        ) from None
    try:
        session = boto3.Session()
        return Boto3CredentialProvider(session) if session.get_credentials() else None
    except BotoCoreError as error:
        reason = "".join(letter if letter.isprintable() else "?" for letter in str(error))
        raise UsageError(
            f"The AWS configuration cannot be used: {reason.rstrip('.')}. Correct AWS_PROFILE or "
            "~/.aws/config, or run `aws sso login`."
        ) from None


def _find_file(name: str) -> Path:
    """Return the path of the AWS file `config` or `credentials`."""
    variable = "AWS_CONFIG_FILE" if name == "config" else "AWS_SHARED_CREDENTIALS_FILE"
    return Path(os.environ.get(variable) or Path("~/.aws").expanduser() / name)
