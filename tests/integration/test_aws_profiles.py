"""Credentials of an object store from the AWS configuration files."""

import json
from pathlib import Path

import pytest

from support.command import run_toolcatalog
from support.s3 import FaultyProxy, create_bucket

CREDENTIALS = {"Version": 1, "AccessKeyId": "AKIAEXAMPLE", "SecretAccessKey": "example"}


@pytest.fixture
def bucket(s3: str) -> str:
    """A new bucket."""
    return create_bucket(s3)


@pytest.fixture
def environment(tmp_path: Path, proxy: FaultyProxy) -> dict[str, str]:
    """The environment of a user whose profile `catalog` gets its credentials from a program."""
    program = tmp_path / "credentials.sh"
    program.write_text(f"#!/bin/sh\nexec echo '{json.dumps(CREDENTIALS)}'\n")
    program.chmod(0o755)
    (tmp_path / "home" / ".aws").mkdir(parents=True)
    config = f"[profile catalog]\nregion = us-east-1\ncredential_process = {program}\n"
    (tmp_path / "home" / ".aws" / "config").write_text(config)
    variables = {name: value for name, value in proxy.env.items() if "KEY" not in name}
    return {
        **variables,
        "HOME": str(tmp_path / "home"),
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def test_profile(environment: dict[str, str], small_build: Path, bucket: str) -> None:
    """With `credential_process`, as for SSO and roles."""
    url = f"s3://{bucket}/profile"
    result = run_toolcatalog(
        "publish", url, "--build", small_build, env={**environment, "AWS_PROFILE": "catalog"}
    )
    assert result.returncode == 0, result.stderr


def test_unknown_profile(environment: dict[str, str], small_build: Path, bucket: str) -> None:
    result = run_toolcatalog(
        "publish",
        f"s3://{bucket}/x",
        "--build",
        small_build,
        env={**environment, "AWS_PROFILE": "absent"},
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "(absent) could not be found" in result.stderr
    assert "Correct AWS_PROFILE or ~/.aws/config" in result.stderr
