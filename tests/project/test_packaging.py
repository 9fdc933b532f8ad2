"""Deployment files: containers, systemd, Kubernetes and alerts, checked with their own tools."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from support.command import run_successfully
from support.paths import ROOT
from toolcatalog import __version__

DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent


def run(*command: object) -> "subprocess.CompletedProcess[str]":
    """Run a tool to its end."""
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=120, check=False
    )


def flags(text: str) -> set[str]:
    """The long options in a text."""
    return {*re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)}


@pytest.fixture(scope="module")
def serve_options() -> set[str]:
    """The options of `toolcatalog serve`."""
    return flags(run_successfully("serve", "--help"))


def container() -> list[str]:
    """The instructions of the Containerfile, continued lines joined, comments left out."""
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Containerfile").read_text())
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def manifests() -> dict[str, Any]:
    """The Kubernetes manifests by kind."""
    return {
        one["kind"]: one
        for one in yaml.safe_load_all((DEPLOY / "kubernetes/toolcatalog.yaml").read_text())
    }


def unit() -> dict[str, str]:
    """The settings of the systemd unit; of several of one name the last."""
    lines = (DEPLOY / "systemd/toolcatalog.service").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.skipif(not (BIN / "hadolint").exists(), reason="hadolint is not installed")
def test_containerfile_passes_hadolint() -> None:
    result = run(BIN / "hadolint", DEPLOY / "Containerfile")
    assert (result.returncode, result.stdout) == (0, "")


def test_base_images_have_digests() -> None:
    """Each is a build argument with a digest and without a default, so that a build with a tag
    fails.
    """
    instructions = container()
    [argument] = [line for line in instructions if line.startswith("ARG ")]
    assert argument == "ARG PYTHON_DIGEST"
    assert instructions.index(argument) == 0
    bases = [line.split()[1] for line in instructions if line.startswith("FROM ")]
    assert len(bases) == 2
    for base in bases:
        assert re.fullmatch(r"docker\.io/library/python:[\w.-]+@\$\{PYTHON_DIGEST\}", base)
    tag = bases[0].partition("@")[0]
    text = (DEPLOY / "Containerfile").read_text()
    assert f"skopeo inspect --format '{{{{.Digest}}}}' docker://{tag}\n" in text


def test_container_runs_without_root_and_has_a_health_check(serve_options: set[str]) -> None:
    """With a command that the program accepts."""
    instructions = container()
    users = [line for line in instructions if line.startswith("USER ")]
    assert users == ["USER 65532:65532"]
    assert any(line.startswith("HEALTHCHECK ") and "/healthz" in line for line in instructions)
    command = next(line for line in instructions if line.startswith("CMD "))
    assert flags(command) <= serve_options


def test_copied_files_are_in_the_build_context() -> None:
    """`.dockerignore` includes what the Containerfile copies."""
    let = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = [
        line.split()[1:-1]
        for line in container()
        if line.startswith("COPY ") and "--from" not in line
    ]
    assert {path for some in copied for path in some} == let
    assert all((ROOT / path).exists() for path in let)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_unit_is_valid_and_hardened(tmp_path: Path) -> None:
    """With an exposure level below 2 of 10."""
    text = (DEPLOY / "systemd/toolcatalog.service").read_text()
    file = tmp_path / "toolcatalog.service"
    file.write_text(text.replace("/opt/toolcatalog/bin/", f"{BIN}/"))
    verified = run("systemd-analyze", "verify", file)
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = run(
        "systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", file
    )
    assert rated.returncode == 0, rated.stdout[-500:]
    assert "Overall exposure level" in rated.stdout


def test_systemd_unit_runs_an_existing_command(serve_options: set[str]) -> None:
    """With enough time to drain."""
    settings = unit()
    assert flags(settings["ExecStart"]) <= serve_options
    drain = re.search(r"--drain (\d+)", settings["ExecStart"])
    assert drain
    assert int(settings["TimeoutStopSec"]) > int(drain[1]) + 10
    assert settings["KillMode"] == "mixed"


def test_kubernetes_manifests_are_valid() -> None:
    """By kubernetes-validate in strict mode."""
    result = run(BIN / "kubernetes-validate", "--strict", DEPLOY / "kubernetes/toolcatalog.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert {*manifests()} == {"Deployment", "Service", "PodDisruptionBudget"}


def test_pods_are_hardened_and_probed(serve_options: set[str]) -> None:
    """Only mounts are writable, and one pod stays during disruptions."""
    pod = manifests()["Deployment"]["spec"]["template"]
    [server] = pod["spec"]["containers"]
    assert server["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert (
        server["livenessProbe"]["httpGet"]["path"]
        == server["startupProbe"]["httpGet"]["path"]
        == "/healthz"
    )
    assert server["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert flags(" ".join(server["args"])) <= serve_options
    [cache] = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "cache"]
    assert cache["emptyDir"]["sizeLimit"] == "4Gi"
    assert "--max-snapshot-size=1GiB" in server["args"]  # four fit
    labels = pod["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget"):
        selector = manifests()[kind]["spec"]["selector"]
        assert labels.items() >= (selector.get("matchLabels") or selector).items()


def documents(name: str) -> list[Any]:
    """The documents of a YAML file in `deploy`."""
    return [*yaml.safe_load_all((DEPLOY / name).read_text())]


def test_autoscaler_scales_the_deployment() -> None:
    result = run(BIN / "kubernetes-validate", "--strict", DEPLOY / "kubernetes/autoscaling.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    [scaler] = documents("kubernetes/autoscaling.yaml")
    target = scaler["spec"]["scaleTargetRef"]
    deployment = manifests()["Deployment"]
    assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
    assert scaler["spec"]["minReplicas"] >= deployment["spec"]["replicas"]


def test_monitor_scrapes_the_pods() -> None:
    """Through a service of the metrics port."""
    service, monitor = documents("kubernetes/monitoring.yaml")
    pod = manifests()["Deployment"]["spec"]["template"]
    assert pod["metadata"]["labels"].items() >= service["spec"]["selector"].items()
    ports = {port["name"]: port for port in pod["spec"]["containers"][0]["ports"]}
    [port] = service["spec"]["ports"]
    assert ports[port["targetPort"]]["containerPort"] == port["port"]
    labels = monitor["spec"]["selector"]["matchLabels"]
    assert service["metadata"]["labels"].items() >= labels.items()
    assert not manifests()["Service"]["metadata"]["labels"].items() >= labels.items()
    assert monitor["spec"]["endpoints"][0]["port"] == port["name"]


def test_compose_runs_an_existing_command(serve_options: set[str]) -> None:
    """Without unneeded rights."""
    [compose] = documents("compose.yaml")
    server, redis = compose["services"]["toolcatalog"], compose["services"]["redis"]
    assert server["command"][0] == "serve"
    assert flags(" ".join(server["command"])) <= serve_options
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).resolve() == (
        DEPLOY / "Containerfile"
    )
    for service in (server, redis):
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    volumes = {volume.split(":")[0] for volume in (*server["volumes"], *redis["volumes"])}
    assert {name for name in volumes if "/" not in name} == {*compose["volumes"]}


@pytest.fixture(scope="module")
def exported() -> set[str]:
    """The names of all documented metrics, which are those of a server, and of the histogram."""
    reference = (ROOT / "docs/reference/metrics.md").read_text()
    names = {*re.findall(r"^\| `(toolcatalog_\w+)`", reference, re.MULTILINE)}
    return names | {f"{name}_bucket" for name in names if name.endswith("_seconds")}


def test_alerts_use_exported_metrics(exported: set[str]) -> None:
    """With a severity, a summary and a runbook."""
    [alerts] = documents("prometheus/alerts.yaml")
    [group] = alerts["groups"]
    for rule in group["rules"]:
        assert {*re.findall(r"toolcatalog_\w+", rule["expr"])} <= exported, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"].endswith(".")
        assert (ROOT / rule["annotations"]["runbook"]).is_file()
    if promtool := shutil.which("promtool"):
        result = run(promtool, "check", "rules", DEPLOY / "prometheus/alerts.yaml")
        assert result.returncode == 0, result.stderr


def test_dashboard_uses_exported_metrics(exported: set[str]) -> None:
    """And its panels do not overlap."""
    dashboard = json.loads((DEPLOY / "grafana/toolcatalog.json").read_text())
    used = set[str]()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            used |= {*re.findall(r"toolcatalog_\w+", target["expr"])}
    assert used <= exported
    assert len(used) > 8
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]}
    assert len(places) == len(dashboard["panels"])
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


SERVER_JSON = json.loads((ROOT / "server.json").read_text())
ARGUMENT = {
    "type": "object",
    "required": ["type"],
    "oneOf": [
        {"properties": {"type": {"const": "named"}}, "required": ["name"]},
        {"properties": {"type": {"const": "positional"}}, "required": ["value"]},
    ],
}
PACKAGE = {
    "type": "object",
    "required": ["registryType", "identifier", "transport"],
    "properties": {
        "registryType": {"enum": ["npm", "pypi", "oci", "nuget", "mcpb"]},
        "version": {"type": "string", "minLength": 1, "not": {"const": "latest"}},
        "runtimeArguments": {"items": ARGUMENT},
        "packageArguments": {"items": ARGUMENT},
        "transport": {"required": ["type"], "properties": {"type": {"const": "stdio"}}},
    },
}
SERVER_SCHEMA = {  # what the published schema of 2025-12-11 requires
    "type": "object",
    "required": ["$schema", "name", "description", "version"],
    "properties": {
        "name": {
            "type": "string",
            "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$",
            "minLength": 3,
            "maxLength": 200,
        },
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "maxLength": 255},
        "packages": {"type": "array", "minItems": 1, "items": PACKAGE},
    },
}


def test_server_json_matches_the_registry_schema() -> None:
    """And its options exist."""
    jsonschema.validate(SERVER_JSON, SERVER_SCHEMA)
    (package,) = SERVER_JSON["packages"]
    options = {argument["name"] for argument in package["packageArguments"] if "name" in argument}
    assert options <= flags(run_successfully("mcp", "--help"))


def test_server_json_names_this_package() -> None:
    """Versions agree, and the README has its name, which proves the owner."""
    (package,) = SERVER_JSON["packages"]
    assert (SERVER_JSON["version"], package["version"]) == (__version__, __version__)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert package["identifier"] == project["name"]
    assert f"mcp-name: {SERVER_JSON['name']} -->" in (ROOT / "README.md").read_text()
    (extra,) = package["runtimeArguments"]
    assert [extra["value"]] == project["optional-dependencies"]["mcp"]
