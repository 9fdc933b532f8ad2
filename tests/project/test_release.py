"""Releases: the bill of materials, the release script, and the permissions of the workflow."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.paths import ROOT
from support.site_pages import require
from toolcatalog import __version__
from toolcatalog.catalog import yaml_reader

AUDIT = ROOT / ".venv" / "audit"
LOCKED = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?==([^\s\\;]+)(.*(?:\n    .*)*)", re.MULTILINE)


def locked(lock: Path) -> dict[tuple[str, str], set[str]]:
    """The SHA-256 of each package that a lock file names with its version."""
    return {
        (name, version): {*re.findall(r"sha256:(\w{64})", rest)}
        for name, version, rest in LOCKED.findall(lock.read_text())
    }


def jobs(workflow: str) -> dict[str, Any]:
    result: dict[str, Any] = yaml_reader.parse_fast(
        (ROOT / ".github" / "workflows" / workflow).read_bytes()
    )["jobs"]
    return result


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What scripts/sbom writes."""
    require((AUDIT / ".installed").is_file(), "there is no cyclonedx-py: run scripts/test")
    file = tmp_path_factory.mktemp("bill") / "sbom.json"
    subprocess.run([ROOT / "scripts" / "sbom", file], check=True, timeout=300)
    return file.read_bytes()


def test_sbom_lists_server_packages_with_hashes(bill: bytes) -> None:
    """Exactly those of the container's lock file."""
    output = json.loads(bill)
    assert (output["bomFormat"], output["metadata"]["component"]["name"]) == (
        "CycloneDX",
        "toolcatalog",
    )
    assert output["metadata"]["component"]["version"] == __version__
    result = {
        (one["name"], one["version"]): {
            hash["content"]
            for reference in one["externalReferences"]
            for hash in reference.get("hashes", [])
            if hash["alg"] == "SHA-256"
        }
        for one in output["components"]
    }
    expected = locked(ROOT / "requirements" / "server.txt")
    assert len(expected) > 30
    assert result == expected


def test_sbom_is_reproducible(bill: bytes) -> None:
    """Without paths, times and serial numbers."""
    assert str(ROOT).encode() not in bill
    assert {"timestamp", "serialNumber"}.isdisjoint(
        {*json.loads(bill), *json.loads(bill)["metadata"]}
    )


def test_tag_must_match_the_version() -> None:
    """It is checked before anything is built."""
    result = subprocess.run(
        [ROOT / "scripts" / "release", "v999"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 2
    assert (
        result.stderr
        == f"The tag is v999, and the package says v{__version__}: mend one of them.\n"
    )


def test_release_jobs_separate_building_and_signing() -> None:
    """Build jobs can only read; jobs that can write run no code of the repository."""
    build, published = jobs("release.yaml")["make"], jobs("release.yaml")["publish"]
    assert build["permissions"] == {"contents": "read"}
    assert published["environment"] == "release"
    used = [step["uses"].partition("@")[0] for step in published["steps"] if "uses" in step]
    assert used == [
        "actions/download-artifact",
        "actions/attest",
        "actions/attest",
        "pypa/gh-action-pypi-publish",
    ]
    assert [step["run"].split()[0] for step in published["steps"] if "run" in step] == ["gh", "rm"]


def test_audit_reads_every_lock_file() -> None:
    """A package that cannot be looked up is a failure."""
    script = (ROOT / "scripts" / "audit").read_text()
    assert "for lock in requirements/*.txt" in script
    assert {"--strict", "--require-hashes"} <= {*script.split()}
    assert [step["run"] for step in jobs("audit.yaml")["audit"]["steps"] if "run" in step] == [
        "scripts/audit"
    ]
