"""AWS credentials from the configuration files: profiles, SSO, roles and `credential_process`.

Needs the extra `aws`.
"""

import boto3
from botocore.exceptions import BotoCoreError
from obstore.auth.boto3 import Boto3CredentialProvider

from toolcatalog.errors import UsageError


def find_credentials() -> Boto3CredentialProvider | None:
    """Return a provider of the credentials that boto3 finds, or None if it finds none.

    Raises UsageError if the configuration cannot be used.
    """
    try:
        session = boto3.Session()
        return Boto3CredentialProvider(session) if session.get_credentials() else None
    except BotoCoreError as error:
        reason = "".join(letter if letter.isprintable() else "?" for letter in str(error))
        raise UsageError(
            f"The AWS configuration cannot be used: {reason.rstrip('.')}. Correct AWS_PROFILE or "
            "~/.aws/config, or run `aws sso login`."
        ) from None
