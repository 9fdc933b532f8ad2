"""Workflows, the GitHub action and the pre-commit hooks, run in real repositories."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.command import run_successfully
from support.paths import DATA, ROOT
from support.site_pages import require
from toolcatalog.catalog import yaml_reader

GITHUB = ROOT / ".github"
ACTION = ROOT / "action.yml"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yaml"))
BASE = DATA / "rejects" / "_base"
FOLDER = DATA / "actions"
TOOL = "catalog/toolkits/chat/CHAT_READ/20250601_00.yaml"
PINNED = r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
SCOPED = "name: Read messages\ndescription: Read the newest messages of a channel.\n"


def read(file: Path) -> Any:
    return yaml_reader.parse_fast(file.read_bytes())


def steps(workflow: str, job: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = read(GITHUB / "workflows" / workflow)["jobs"][job]["steps"]
    return result


# --- linters


def test_zizmor_reports_nothing() -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    require(zizmor.is_file(), "there is no zizmor: run scripts/test")
    result = subprocess.run(
        [zizmor, "--offline", "--no-progress", "--persona=pedantic", GITHUB, ACTION],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_actionlint_reports_nothing() -> None:
    result = actionlint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"Checking {len(WORKFLOWS)} workflow file(s)" in result.stdout


def test_actionlint_reports_a_bad_workflow(tmp_path: Path) -> None:
    """So the test above can fail."""
    wrong = tmp_path / ".github" / "workflows" / "wrong.yaml"
    wrong.parent.mkdir(parents=True)
    wrong.write_text(
        "on: push\njobs: {a: {runs-on: ubuntu-24.04, steps: [{run: 'echo ${{"
        " github.event.issue.title }}'}]}}\n"
    )
    result = actionlint(tmp_path)
    assert result.returncode != 0
    assert "potentially untrusted" in result.stdout


def actionlint(folder: Path) -> "subprocess.CompletedProcess[str]":
    script = FOLDER / "node_modules" / "@tktco" / "node-actionlint" / "bin" / "node-actionlint.js"
    require(
        shutil.which("node") is not None and script.is_file(),
        "there is no actionlint: install node and npm, and run scripts/test",
    )
    command = ["node", str(script), ".github/workflows/*.yaml"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_rules_without_a_linter(workflow: Path) -> None:
    """Actions are pinned by commit with their version; there are no secrets, persistent credentials
    or jobs without a timeout.
    """
    text, jobs = workflow.read_text(), read(workflow)["jobs"]
    uses = re.findall(r"uses: (.*)", text)
    assert uses
    assert all(re.fullmatch(PINNED, action) for action in uses if not action.startswith("./ ")), (
        uses
    )
    assert "secrets." not in text
    assert "pull_request_target" not in text
    assert read(workflow)["permissions"] == {}
    assert all("timeout-minutes" in job for job in jobs.values())
    checkouts = [
        step
        for job in jobs.values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_action_is_pinned_and_safe_from_injection() -> None:
    """Inputs reach scripts as environment variables."""
    text = ACTION.read_text()
    uses = re.findall(r"(?m)^ +(?:- )?uses: (.*)", text)
    assert uses
    assert all(re.fullmatch(PINNED, action) for action in uses), uses
    assert "secrets." not in text
    scripts = [step["run"] for step in read(ACTION)["runs"]["steps"] if "run" in step]
    assert [script for script in scripts if "${{" in script] == []


def test_writing_workflow_runs_no_code_of_the_pull_request() -> None:
    used = [step.get("uses", "").partition("@")[0] for step in steps("comment.yaml", "comment")]
    assert used == ["actions/download-artifact", "actions/github-script"]
    assert "${{" not in steps("comment.yaml", "comment")[1]["with"]["script"]


def test_workflow_of_the_pull_request_can_only_read() -> None:
    assert read(GITHUB / "workflows" / "catalog.yaml")["jobs"]["check"]["permissions"] == {
        "contents": "read"
    }


# --- the steps of the check, in a repository as GitHub checks it out


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository whose newest commit holds a catalog."""
    folder = tmp_path / "origin"
    shutil.copytree(BASE, folder)
    (folder / ".github").mkdir()
    (folder / ".github" / "CODEOWNERS").write_text((GITHUB / "CODEOWNERS").read_text())
    (folder / ".gitignore").write_text("/build/\n/site/\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=long ago")
    commit(folder)
    return folder


def git(folder: Path, *arguments: str) -> str:
    names = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "A"), ("EMAIL", "a@example.com"))
    }
    env = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=a change")


def pulled(origin: Path, changes: dict[str, str]) -> Path:
    """The clone of a pull request with these files, merged into its base, as actions/checkout makes
    it: two commits deep, and no branch.
    """
    git(origin, "switch", "--quiet", "--create", "change")
    for path, text in changes.items():
        (origin / path).parent.mkdir(parents=True, exist_ok=True)
        (origin / path).write_text(text)
    commit(origin)
    git(origin, "switch", "--quiet", "--detach", "main")
    git(origin, "merge", "--quiet", "--no-ff", "--no-edit", "change")
    clone = origin.parent / "clone"
    clone.mkdir()
    git(clone, "init", "--quiet")
    git(
        clone,
        "fetch",
        "--quiet",
        "--depth=2",
        f"file://{origin}",
        git(origin, "rev-parse", "HEAD").strip(),
    )
    git(clone, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    return clone


def action_steps(**values: str) -> list[dict[str, Any]]:
    """The steps of the action, as the workflow of this repository uses it, with some inputs."""
    [use] = [step for step in steps("catalog.yaml", "check") if step.get("uses") == "./"]
    action = read(ACTION)
    defaults = {
        # outside of a merge group
        name: re.sub(r"\$\{\{ github\..* \|\| '(.*)' \}\}", r"\1", each["default"])
        for name, each in action["inputs"].items()
    }
    assert set(use["with"]) <= set(defaults)
    inputs = {**defaults, **use["with"], **values}

    def expand(value: str) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda name: inputs[name[1]], value)

    return [
        {**step, "env": {name: expand(value) for name, value in step.get("env", {}).items()}}
        for step in action["runs"]["steps"]
        if inputs["requirement"] or step["name"] != "Install"
    ]


def run(
    clone: Path, event: str = "pull_request", **values: str
) -> dict[str, "subprocess.CompletedProcess[str]"]:
    """The shell steps of the check after `Install`, by name, also those after one that failed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_STEP_SUMMARY": str(clone.parent / "summary.md"),
        "PATH": path,
        "RUNNER_TEMP": str(runner_temp(clone)),
    }
    runner_temp(clone).mkdir(exist_ok=True)
    results = {}
    for step in action_steps(**values):
        if "run" in step and "inputs.comment" not in step.get("if", ""):
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            results[step["name"]] = subprocess.run(
                command,
                cwd=clone,
                env={**os.environ, **environment, **step["env"]},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
    return results


def runner_temp(clone: Path) -> Path:
    """The folder for temporary files of the runner."""
    return clone.parent / "temporary"


def summary(clone: Path) -> str:
    return (clone.parent / "summary.md").read_text()


def test_valid_pull_request_passes_with_a_comparison(origin: Path) -> None:
    result = run(clone := pulled(origin, {TOOL: SCOPED}))
    assert {name: step.stderr for name, step in result.items() if step.returncode} == {}
    assert "::error" not in result["Check"].stdout
    assert "**A maintainer acts next:**" in summary(clone)
    assert "CHAT_READ" in (runner_temp(clone) / "diff.md").read_text()
    assert (runner_temp(clone) / "diff.md").read_text() in summary(clone)
    assert (clone / "site" / "tools" / "CHAT_READ" / "index.html").is_file()
    environment = {
        step["with"]["path"]
        for step in action_steps()
        if step.get("uses", "").startswith("actions/upload-artifact@")
    }
    assert environment == {"${{ runner.temp }}/diff.md", "site"}


def test_invalid_pull_request_fails_with_annotations_and_comparison(origin: Path) -> None:
    result = run(clone := pulled(origin, {TOOL: f"{SCOPED}descripton: x\n"}))
    assert result["Check"].returncode == 1
    assert f"::error file={TOOL},line=3,endLine=3,col=1," in result["Check"].stdout
    assert "**You act next:** fix the errors" in summary(clone)
    assert f"#### `{TOOL}`, changed here: 1 error" in summary(clone)
    assert result["Compare with the base"].returncode == 0
    assert "CHAT_READ" in (runner_temp(clone) / "diff.md").read_text()
    assert result["Build"].returncode == 1


def test_catalog_in_another_folder(origin: Path) -> None:
    """The input `catalog` reaches every command."""
    git(origin, "mv", "catalog", "tools")
    commit(origin)
    result = run(
        clone := pulled(origin, {TOOL.replace("catalog/", "tools/"): SCOPED}), catalog="tools"
    )
    assert {name: step.stderr for name, step in result.items() if step.returncode} == {}
    assert "CHAT_READ" in (runner_temp(clone) / "diff.md").read_text()


def test_pull_request_code_and_symlinks_have_no_effect(origin: Path) -> None:
    """Python modules to import, and links to files of the runner."""
    outside = origin.parent / "outside"
    outside.write_text("of the runner")
    for name in ("diff.md", "comment.md"):
        (origin / name).symlink_to(outside)
    mark = origin.parent / "mark"
    module = f"open({str(mark)!r}, 'w')\n"
    result = run(
        pulled(origin, {"pip.py": module, "json.py": module, TOOL: SCOPED}),
        requirement=str(origin.parent / "missing.whl"),
    )
    assert result.pop("Install").returncode == 1
    assert {name: step.stderr for name, step in result.items() if step.returncode} == {}
    assert not mark.exists()
    assert outside.read_text() == "of the runner"


def test_event_with_write_access_is_refused(origin: Path) -> None:
    """`pull_request_target` has a token that can write."""
    clone = pulled(origin, {TOOL: SCOPED})
    result = run(clone, event="pull_request_target")
    assert result["Check"].returncode == 1
    assert "::error::Run this action on pull_request" in result["Check"].stdout


def test_builds_in_the_pull_request_are_not_used(origin: Path) -> None:
    """Caches, page lists and symlinks in place of builds are removed first; other files stay."""
    (origin / "site").symlink_to(".")
    planted = {".gitignore": "", "build/.cache/check-result": "planted", TOOL: SCOPED}
    result = run(clone := pulled(origin, {**planted, ".generated": '[".git/HEAD", "README.md"]'}))
    assert {name: step.stderr for name, step in result.items() if step.returncode} == {}
    assert (clone / "build/.cache/check-result").read_bytes() != b"planted"
    assert (clone / "site").is_dir()
    assert not (clone / "site").is_symlink()
    changed = git(clone, "status", "--porcelain", "--untracked-files=no").splitlines()
    assert {line.split()[-1] for line in changed} <= {"build/.cache/check-result", "site"}
    names = [step.get("name") for step in action_steps()]
    assert names.index("Remove builds that came with the checkout") < names.index("Check")


def test_changed_published_version_fails(origin: Path) -> None:
    published = "catalog/toolkits/chat/CHAT_POST/20250101_00.yaml"
    text = (origin / published).read_text()
    result = run(
        pulled(
            origin,
            {
                published: re.sub(
                    "^description: .*", "description: Something else.", text, flags=re.MULTILINE
                )
            },
        )
    )
    assert result["Check"].returncode == 1
    assert "title=history-version-changed" in result["Check"].stdout


def test_outdated_codeowners_fail(origin: Path) -> None:
    toolkit = "catalog/toolkits/chat/toolkit.yaml"
    text = re.sub("^owners:.*\n", "", (origin / toolkit).read_text(), flags=re.MULTILINE)
    result = run(pulled(origin, {toolkit: f'{text.rstrip()}\nowners: ["@chat"]\n'}))
    assert result["Check CODEOWNERS"].returncode == 1
    assert "add the output of `toolcatalog codeowners`" in result["Check CODEOWNERS"].stderr


# --- the comment of the action


def test_comments_mention_nobody(tmp_path: Path) -> None:
    """And are short enough for GitHub."""
    (tmp_path / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > arguments.txt\n')
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "diff.md").write_text("@octo changes \N{SNOWMAN}\n" + "\N{SNOWMAN}" * 30_000)
    [step] = [step for step in read(ACTION)["runs"]["steps"] if "comment ==" in step.get("if", "")]
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_REPOSITORY": "octo/tools",
        "NUMBER": "12",
        "RUNNER_TEMP": str(tmp_path),
    }
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env=environment,
        check=True,
        timeout=60,
    )
    text = (tmp_path / "comment.md").read_text()
    assert text.startswith("@\u200bocto changes \N{SNOWMAN}\n")
    assert len(text.encode()) < 65_536
    assert (tmp_path / "arguments.txt").read_text().split()[:5] == [
        *("pr", "comment", "12", "--repo", "octo/tools")
    ]


# --- the comment of the workflow


def commented(folder: Path, diff: str | Path | None, **other: Any) -> Any:
    """What the comment's script asks GitHub to write, when the artifact holds `diff` (a path: a
    link to it).
    """
    require(shutil.which("node") is not None, "there is no node")
    file = folder / "diff.md"
    if isinstance(diff, Path):
        file.symlink_to(diff)
    elif diff is not None:
        file.write_text(diff)
    run = {
        "head_sha": "a" * 40,
        "head_branch": "change",
        "conclusion": "success",
        "html_url": "https://github.com/o/r/actions/runs/1",
    }
    head = {"id": 7, "full_name": "fork/r", "owner": {"login": "fork"}}
    output = {
        "script": steps("comment.yaml", "comment")[1]["with"]["script"],
        "run": {**run, "head_repository": head, **other.get("run", {})},
        "repo": {"owner": "o", "repo": "r"},
        "pulls": other.get("pulls", [{"number": 12, "head": {"sha": "a" * 40, "repo": {"id": 7}}}]),
        "comments": other.get("comments", []),
    }
    env = {**os.environ, "DIFF": str(file)}
    command = ["node", str(FOLDER / "comment.mjs")]
    result = subprocess.run(
        command,
        input=json.dumps(output),
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_first_comment_is_created_and_then_edited(tmp_path: Path) -> None:
    [first] = commented(tmp_path, "1 tool added")["written"]
    assert (first["kind"], first["issue_number"], first["owner"]) == ("create", 12, "o")
    assert first["body"].endswith("\n\n1 tool added")
    assert "**A maintainer acts next:**" in first["body"]
    mine = {"id": 5, "user": {"login": "github-actions[bot]"}, "body": first["body"]}
    others = [
        {"id": 4, "user": {"login": "someone"}, "body": first["body"]},
        {"id": 3, "user": None, "body": None},
    ]
    [later] = commented(
        tmp_path, "2 tools added", comments=[*others, mine], run={"conclusion": "failure"}
    )["written"]
    assert (later["kind"], later["comment_id"]) == ("update", 5)
    assert "**You act next:**" in later["body"]


def test_comment_without_changes_only_updates(tmp_path: Path, origin: Path) -> None:
    same = run_successfully("diff", "HEAD", "--format", "markdown", cwd=origin)
    assert commented(tmp_path, same)["written"] == []
    mine = {"id": 5, "user": {"login": "github-actions[bot]"}, "body": "<!-- toolcatalog diff -->"}
    assert [
        call["comment_id"] for call in commented(tmp_path, same, comments=[mine])["written"]
    ] == [5]


@pytest.mark.parametrize(
    "pulls",
    [
        [],
        [{"number": 1, "head": {"sha": "b" * 40, "repo": {"id": 7}}}],
        [{"number": 1, "head": {"sha": "a" * 40, "repo": None}}],
    ],
)
def test_outdated_pull_request_gets_no_comment(tmp_path: Path, pulls: list[Any]) -> None:
    output = commented(tmp_path, "1 tool added", pulls=pulls)
    assert (output["written"], output["failed"]) == ([], [])


def test_pull_request_number_comes_from_github(tmp_path: Path) -> None:
    request = commented(tmp_path, "1 tool added")["asked"][0]
    assert (request["head"], request["state"], request["owner"], request["repo"]) == (
        "fork:change",
        "open",
        "o",
        "r",
    )


def test_symlinked_or_large_artifact_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("what is on the runner")
    output = commented(tmp_path, secret)
    assert output["written"] == []
    assert "A maintainer: look" in output["failed"][0]
    (tmp_path / "diff.md").unlink()
    output = commented(tmp_path, "x" * 300_000)
    assert (output["written"], len(output["failed"])) == ([], 1)


def test_comparison_mentions_nobody_and_hides_nothing(tmp_path: Path) -> None:
    text = "@octo/team looks at GITHUB_X@20250101_00\n<!-- toolcatalog diff -->" + "x" * 80_000
    [written] = commented(tmp_path, text)["written"]
    assert "@octo" not in written["body"]
    assert "GITHUB_X@20250101_00" in written["body"]
    assert written["body"].count("<!--") == 1
    assert len(written["body"]) < 65_536


# --- hooks for other people's repositories


def test_each_hook_runs(origin: Path) -> None:
    hooks = read(ROOT / ".pre-commit-hooks.yaml")
    assert [hook["id"] for hook in hooks] == ["toolcatalog-check", "toolcatalog-fix"]
    for hook in hooks:
        assert (hook["language"], hook["pass_filenames"], hook["files"]) == (
            "python",
            False,
            "^catalog/",
        )
        command = [sys.executable, "-m", *hook["entry"].split()]
        result = subprocess.run(
            command, cwd=origin, capture_output=True, text=True, timeout=120, check=False
        )
        assert result.returncode == 0, result.stderr
