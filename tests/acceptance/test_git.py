"""Reading git: revisions and working trees, errors, and no execution of foreign programs."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.git import CLEAN, TOOL, commit, create_repository, run_git, write_tool
from toolcatalog.catalog import folder
from toolcatalog.errors import Finding, UsageError
from toolcatalog.history import from_files, git
from toolcatalog.history.git import files_at_commit, files_in_working_tree, find_merge_base
from toolcatalog.history.targets import check_against_revision, compare_revisions


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of this machine."""
    for name, value in CLEAN.items():
        monkeypatch.setenv(name, value)


def files_at(catalog: Path, revision: str) -> git.FileSet:
    result = git.open_repository(catalog)
    return files_at_commit(result, git.resolve_commit(result, revision), revision)


def since(catalog: Path, revision: str) -> set[str]:
    return from_files.find_changed_paths(
        files_at(catalog, revision), files_in_working_tree(git.open_repository(catalog))
    )


@pytest.mark.parametrize("inside", ["catalog", ".", "deep/in/it", "-odd", "with space", "ünder"])
def test_clean_working_tree_equals_the_revision(tmp_path: Path, inside: str) -> None:
    """Wherever the catalog is in its repository: paths, names and bytes."""
    catalog = create_repository(tmp_path / "repo", inside)
    following, today = (
        files_at(catalog, "HEAD"),
        files_in_working_tree(git.open_repository(catalog)),
    )
    assert following.object_ids == today.object_ids
    assert {*following.object_ids} == {*folder.list_paths(catalog)[0]}
    assert (
        following.read([*following.object_ids])
        == today.read([*today.object_ids])
        == {path: (catalog / path).read_bytes() for path in following.object_ids}
    )


def test_changes_of_the_working_tree_are_found(tmp_path: Path) -> None:
    """Changed, new, removed, staged or not, ignored by git or not; files outside of the catalog
    format are left out.
    """
    catalog = create_repository(tmp_path)
    (tmp_path / ".gitignore").write_text("*IGNORED*\n")
    (catalog / "README.md").write_text("Prose.\n")
    write_tool(catalog, "A_DO").write_text(TOOL)
    write_tool(catalog, "A_SEE").unlink()
    write_tool(catalog, "A_IGNORED", text=TOOL)
    write_tool(catalog, "A_STAGED", text=TOOL)
    (catalog / "toolkits" / "a" / ".draft.yaml").write_text("")
    run_git(tmp_path, "add", str(write_tool(catalog, "A_STAGED")))
    assert since(catalog, "HEAD") == {
        f"toolkits/a/{slug}/20250101_00.yaml" for slug in ("A_DO", "A_SEE", "A_IGNORED", "A_STAGED")
    }


def test_sha256_repository_is_supported(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    run_git(tmp_path / "repo", "init", "--quiet", "--object-format=sha256", ".")
    catalog = create_repository(tmp_path / "repo")
    assert since(catalog, "HEAD") == set()
    write_tool(catalog, "A_DO").write_text(TOOL)
    assert since(catalog, "HEAD") == {"toolkits/a/A_DO/20250101_00.yaml"}


def test_symlinks_resolve_as_in_a_folder(tmp_path: Path) -> None:
    """A link out of the catalog has no content."""
    catalog = create_repository(tmp_path)
    write_tool(catalog, "A_DO", "20250202_00").symlink_to("20250101_00.yaml")
    write_tool(catalog, "A_DO", "20250303_00").symlink_to("../../../../../outside")
    (tmp_path / "outside").write_text(TOOL)
    commit(tmp_path)
    following, inner, outer = (
        files_at(catalog, "HEAD"),
        "toolkits/a/A_DO/20250202_00.yaml",
        "toolkits/a/A_DO/20250303_00.yaml",
    )
    assert following.read([inner])[inner] == write_tool(catalog, "A_DO").read_bytes()
    assert isinstance(following.read([outer])[outer], Finding)
    assert since(catalog, "HEAD") == {outer}  # what cannot be read is never the same
    write_tool(catalog, "A_DO").write_text(TOOL)
    assert inner in since(catalog, "HEAD")


HIDDEN = "toolkits/a/.hidden.yaml"


@pytest.mark.parametrize(
    "target", ["../.hidden.yaml", "../README.md", "../../../../catalog/{}", "{top}/{}", "../.link"]
)
def test_unresolvable_symlink_is_refused(tmp_path: Path, target: str) -> None:
    """A published version behind it could change unnoticed; also for a link through another
    link.
    """
    catalog = create_repository(tmp_path)
    text = write_tool(catalog, "A_DO").read_text()
    for path in (HIDDEN, "toolkits/a/README.md"):
        (catalog / path).write_text(text)
    (catalog / "toolkits" / "a" / ".link").symlink_to("toolkit.yaml")
    write_tool(catalog, "A_DO").unlink()
    other = "toolkits/a/A_SEE/20250101_00.yaml"
    write_tool(catalog, "A_DO").symlink_to(target.format(other, top=catalog))
    path = "toolkits/a/A_DO/20250101_00.yaml"
    rejected = folder.read_file(catalog, path)
    assert isinstance(rejected, Finding)
    assert rejected.rule == "file-link"
    write_tool(catalog, "A_DO").unlink()
    write_tool(catalog, "A_DO").symlink_to("../A_SEE/20250101_00.yaml")
    assert folder.read_file(catalog, path) == write_tool(catalog, "A_SEE").read_bytes()


def test_oversized_file_is_not_read(tmp_path: Path) -> None:
    catalog = create_repository(tmp_path)
    write_tool(catalog, "A_DO", text="#" * (folder.MAX_FILE_SIZE + 1))
    write_tool(catalog, "A_SEE", text="#" * folder.MAX_FILE_SIZE)
    commit(tmp_path)
    result = files_at(catalog, "HEAD").read(
        ["toolkits/a/A_DO/20250101_00.yaml", "toolkits/a/A_SEE/20250101_00.yaml"]
    )
    large, fine = result.values()
    assert isinstance(large, Finding)
    assert large.message == "more than 1 MiB"
    assert fine == b"#" * folder.MAX_FILE_SIZE


def test_merge_base_is_the_base(tmp_path: Path) -> None:
    """Later commits of the other branch do not count; an ancestor, or an unrelated revision, is its
    own base.
    """
    catalog = create_repository(tmp_path)
    first = run_git(tmp_path, "rev-parse", "HEAD")
    run_git(tmp_path, "switch", "--quiet", "--create", "ours")
    write_tool(catalog, "A_DO", "20250202_00", TOOL)
    actual = commit(tmp_path)
    run_git(tmp_path, "switch", "--quiet", "main")
    write_tool(catalog, "A_NEW", text=TOOL)
    reference = commit(tmp_path)
    run_git(tmp_path, "switch", "--quiet", "ours")
    result = git.open_repository(catalog)
    assert find_merge_base(result, "main") == first
    assert find_merge_base(result, first) == first
    assert find_merge_base(result, "HEAD") == actual
    run_git(tmp_path, "switch", "--quiet", "--orphan", "alone")
    commit(tmp_path)
    catalog.mkdir(exist_ok=True)
    assert find_merge_base(git.open_repository(catalog), "main") == reference


def test_several_merge_bases_are_not_used(tmp_path: Path) -> None:
    """After criss-cross merges each merge base lacks published files, so the revision itself is the
    base.
    """
    catalog = create_repository(tmp_path)
    run_git(tmp_path, "switch", "--quiet", "--create", "ours")
    actual = commit(tmp_path)
    run_git(tmp_path, "switch", "--quiet", "main")
    write_tool(catalog, "A_NEW", text=TOOL)
    reference = commit(tmp_path)
    run_git(tmp_path, "merge", "--quiet", "--no-edit", "ours")
    run_git(tmp_path, "switch", "--quiet", "ours")
    run_git(tmp_path, "merge", "--quiet", "--no-edit", reference)
    bases = run_git(tmp_path, "merge-base", "--all", "main", "HEAD").split()
    assert sorted(bases) == sorted([actual, reference])
    assert find_merge_base(git.open_repository(catalog), "main") == run_git(
        tmp_path, "rev-parse", "main"
    )


# What cannot be used


def sentence(catalog: Path, revision: str) -> str:
    with pytest.raises(UsageError) as raised:
        files_at(catalog, revision)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_unknown_revision_suggests_the_nearest(tmp_path: Path) -> None:
    catalog = create_repository(tmp_path)
    run_git(tmp_path, "tag", "release-1")
    assert "knows no revision `maim`" in sentence(catalog, "maim")
    assert sentence(catalog, "maim").endswith("did you mean `main`?")
    assert sentence(catalog, "relaese-1").endswith("did you mean `release-1`?")
    assert "`git branch --all`" in sentence(catalog, "xyz")
    assert "knows no revision" in sentence(catalog, "HEAD:catalog")  # a folder, not a commit
    assert "knows no revision" in sentence(catalog, "main..HEAD")


@pytest.mark.parametrize(
    "revision", ["", "-", "--all", "--output=stolen", "-h", "--help", "--upload-pack=touch stolen"]
)
def test_revision_is_never_parsed_as_an_option(
    tmp_path: Path, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = create_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "knows no revision" in sentence(catalog, revision)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "catalog"]


def test_missing_repository_or_catalog(tmp_path: Path) -> None:
    assert sentence(tmp_path / "none", "HEAD").startswith(f"No catalog at {tmp_path / 'none'}")
    assert sentence(tmp_path, "HEAD").startswith(f"{tmp_path} is in no git repository")


def test_bare_repository_has_no_catalog(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "--quiet", "--bare", ".")
    assert sentence(tmp_path, "HEAD").startswith(f"{tmp_path} is in a bare repository")


def test_repository_without_commits(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "--quiet", ".")
    assert (
        sentence(tmp_path, "HEAD")
        == f"The git repository in {tmp_path} has no commits yet: make the first with `git commit`."
    )


def test_shallow_clone(tmp_path: Path) -> None:
    """An error says how to fetch a missing revision; existing ones work."""
    create_repository(tmp_path / "origin")
    commit(tmp_path / "origin", "the second")
    run_git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{tmp_path / 'origin'}", "clone")
    text = sentence(tmp_path / "clone" / "catalog", "HEAD~1")
    assert "a clone without its whole history: `git fetch --unshallow`, or `fetch-depth: 0`" in text
    assert files_at(tmp_path / "clone" / "catalog", "HEAD").object_ids


def test_partial_clone_fetches_nothing(tmp_path: Path) -> None:
    """A fetch would run programs that its configuration names."""
    catalog = create_repository(tmp_path / "origin")
    write_tool(catalog, "A_DO").write_text(TOOL)
    commit(tmp_path / "origin")
    run_git(tmp_path / "origin", "config", "uploadpack.allowFilter", "true")
    run_git(
        tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{tmp_path / 'origin'}", "clone"
    )
    run_git(
        tmp_path / "clone",
        "config",
        "remote.origin.uploadpack",
        f"touch {tmp_path / 'stolen'}; git-upload-pack",
    )
    path = "toolkits/a/A_DO/20250101_00.yaml"
    result = files_at(tmp_path / "clone" / "catalog", "HEAD~1").read([path])[path]
    assert isinstance(result, Finding)
    assert "git fetch --refetch" in result.message
    assert not (tmp_path / "stolen").exists()


def test_git_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = create_repository(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sentence(catalog, "HEAD").startswith("git is not installed")


def test_repository_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error explains git's safe.directory check and what to do."""
    catalog = create_repository(tmp_path)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    text = sentence(catalog, "HEAD")
    assert "belongs to another user" in text
    assert "safe.directory" in text


def test_repository_configuration_runs_no_program(tmp_path: Path) -> None:
    """Hooks, filters, external diffs, text conversions, file system monitors and pagers."""
    catalog = create_repository(tmp_path / "repo")
    top, trace = tmp_path / "repo", tmp_path / "trace"
    (top / ".gitattributes").write_text("*.yaml diff=bad\n")
    commit(top)
    script = top / "bad"
    script.write_text(f"#!/bin/sh\necho run >> {trace}\ncat\n")
    script.chmod(0o755)
    for hook in ("post-index-change", "post-checkout", "reference-transaction", "pre-auto-gc"):
        shutil.copy(script, top / ".git" / "hooks" / hook)
    for key in (
        "filter.bad.clean",
        "filter.bad.smudge",
        "filter.bad.process",
        "diff.bad.textconv",
        "diff.bad.command",
        "diff.external",
        "core.fsmonitor",
        "core.pager",
        "pager.rev-parse",
        "core.sshCommand",
        "core.editor",
        "alias.rev-parse",
    ):
        run_git(top, "config", key, str(script))
    write_tool(catalog, "A_DO").write_text(TOOL)
    (top / ".gitattributes").write_text("*.yaml filter=bad diff=bad\n")
    with pytest.raises(UsageError, match="Git converts"):
        since(catalog, "HEAD")
    (top / ".gitattributes").write_text("*.yaml diff=bad\n")
    assert since(catalog, "HEAD") == {"toolkits/a/A_DO/20250101_00.yaml"}
    assert not trace.exists()
    subprocess.run(
        ["git", "-C", str(top), "diff"],
        env={**os.environ, **CLEAN},
        capture_output=True,
        check=False,
    )
    assert trace.exists()  # they would have been


def test_git_hook_environment_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git sets variables for hooks that name another folder."""
    catalog = create_repository(tmp_path)
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    assert since(catalog, "HEAD") == set()


# Another repository than that of the catalog


def embed(folder: Path, catalog: Path, settings: Sequence[str]) -> None:
    """Put the files of a bare repository into a folder, whose history has the catalog as it is."""
    other = folder.parent / "other"
    shutil.copytree(catalog, other / catalog.relative_to(folder))
    run_git(other, "init", "--quiet", "--initial-branch=main", ".")
    commit(other)
    for name in ("HEAD", "config", "objects", "refs"):
        shutil.move(other / ".git" / name, folder / name)
    for setting in settings:
        run_git(folder.parent, "config", "--file", str(folder / "config"), *setting.split())


@pytest.mark.parametrize("is_old", [False, True], ids=["git", "old git"])
@pytest.mark.parametrize(
    "settings", [["core.bare true"], ["core.bare false", "core.worktree ."], ["core.bare false"]]
)
def test_embedded_bare_repository_is_refused(
    tmp_path: Path, settings: list[str], is_old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with a git that does not support `safe.bareRepository`."""
    catalog = create_repository(tmp_path / "repo", "sub/catalog")
    write_tool(catalog, "A_DO").write_text(TOOL)
    embed(tmp_path / "repo" / "sub", catalog, settings)
    commit(tmp_path / "repo")
    if is_old:
        script = tmp_path / "bin" / "git"
        script.parent.mkdir()
        script.write_text(
            "#!/bin/bash\n"
            'exec /usr/bin/env "PATH=${PATH#*:}" git "${@/safe.bareRepository=explicit/a.b=c}"\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    text = sentence(catalog, "HEAD")
    assert str(tmp_path / "repo" / "sub") in text
    if is_old and "core.worktree ." not in settings:  # git itself finds no files there
        assert "must be run in a work tree" in text
    else:
        assert f"instead of {tmp_path / 'repo' / '.git'}" in text
    shutil.rmtree(tmp_path / "repo" / "sub" / "objects")
    assert since(catalog, "HEAD~1") == {"toolkits/a/A_DO/20250101_00.yaml"}


def test_git_file_into_the_working_tree_is_refused(tmp_path: Path) -> None:
    """A `.git` file may point to a worktree's repository, but not to one among the files."""
    catalog = create_repository(tmp_path / "repo", "sub/catalog")
    embed(tmp_path / "repo", catalog, ["core.bare false"])
    (tmp_path / "repo" / "fake").mkdir()
    for name in ("HEAD", "config", "objects", "refs"):
        shutil.move(tmp_path / "repo" / name, tmp_path / "repo" / "fake" / name)
    shutil.move(tmp_path / "repo" / ".git", tmp_path / "kept")
    (tmp_path / "repo" / ".git").write_text("gitdir: fake\n")
    assert "instead of" in sentence(catalog, "HEAD")
    (tmp_path / "repo" / ".git").write_text("gitdir: ../kept\n")
    assert files_at(catalog, "HEAD").object_ids


def test_core_worktree_elsewhere_is_refused(tmp_path: Path) -> None:
    """The working tree must be the folder that contains `.git`."""
    catalog = create_repository(tmp_path / "repo")
    (tmp_path / "else").mkdir()
    run_git(tmp_path / "repo", "config", "core.worktree", str(tmp_path))
    assert "core.worktree" in sentence(catalog, "HEAD")


def test_symlinked_catalog_is_refused(tmp_path: Path) -> None:
    """Earlier revisions do not have the target; links outside of the repository are allowed."""
    catalog = create_repository(tmp_path / "repo")
    write_tool(catalog, "A_DO").write_text(TOOL)
    catalog.rename(tmp_path / "repo" / "moved")
    catalog.symlink_to("moved")
    assert f"{catalog} is a symbolic link within the repository" in sentence(catalog, "HEAD")
    (tmp_path / "link").symlink_to("repo")
    text = sentence(tmp_path / "link" / "catalog", "HEAD")
    assert "is a symbolic link within the repository" in text
    catalog.unlink()
    (tmp_path / "repo" / "moved").rename(catalog)
    assert since(tmp_path / "link" / "catalog", "HEAD") == {"toolkits/a/A_DO/20250101_00.yaml"}


def test_worktrees_and_submodules_work(tmp_path: Path) -> None:
    """Also a worktree of a bare clone."""
    catalog = create_repository(tmp_path / "repo")
    write_tool(catalog, "A_DO").write_text(TOOL)
    commit(tmp_path / "repo")
    run_git(tmp_path / "repo", "worktree", "add", "--quiet", str(tmp_path / "repo" / "tree"))
    run_git(tmp_path, "clone", "--quiet", "--bare", "repo", "bare/.bare")
    run_git(tmp_path / "bare" / ".bare", "worktree", "add", "--quiet", "../tree", "main")
    run_git(tmp_path, "init", "--quiet", "super")
    run_git(
        tmp_path / "super",
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(tmp_path / "repo"),
        "sub",
    )
    for top in (tmp_path / "repo" / "tree", tmp_path / "bare" / "tree", tmp_path / "super" / "sub"):
        assert since(top / "catalog", "HEAD") == set()
        assert since(top / "catalog", "HEAD~1") == {"toolkits/a/A_DO/20250101_00.yaml"}


def test_git_environment_variables_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that select a repository, its objects or the meaning of paths."""
    catalog = create_repository(tmp_path / "repo")
    write_tool(catalog, "A_DO").write_text(TOOL)
    create_repository(tmp_path / "other")
    other = str(tmp_path / "other" / ".git")
    for name in ("DIR", "COMMON_DIR", "OBJECT_DIRECTORY", "NAMESPACE", "SHALLOW_FILE"):
        monkeypatch.setenv(f"GIT_{name}", other)
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_ICASE_PATHSPECS", "1")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.worktree'='{tmp_path}'")
    assert since(catalog, "HEAD") == {"toolkits/a/A_DO/20250101_00.yaml"}


def test_replacements_and_grafts_are_ignored(tmp_path: Path) -> None:
    catalog = create_repository(tmp_path)
    first = run_git(tmp_path, "rev-parse", "HEAD")
    write_tool(catalog, "A_DO").write_text(TOOL)
    second = commit(tmp_path)
    run_git(tmp_path, "replace", first, second)
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "grafts").write_text(f"{second}\n")
    assert since(catalog, first) == {"toolkits/a/A_DO/20250101_00.yaml"}
    assert find_merge_base(git.open_repository(catalog), first) == first
    assert files_at(catalog, "HEAD~1").object_ids == files_at(catalog, first).object_ids


def test_attributes_change_no_bytes(tmp_path: Path) -> None:
    """Keywords, line ends and encodings are as committed."""
    catalog = create_repository(tmp_path)
    text = TOOL + "# $Id$ $Format:%H$ \n"
    write_tool(catalog, "A_DO", text=text)
    commit(tmp_path)
    (tmp_path / ".gitattributes").write_text(
        "*.yaml ident export-subst text eol=crlf working-tree-encoding=UTF-16\n"
    )
    path = "toolkits/a/A_DO/20250101_00.yaml"
    assert files_at(catalog, "HEAD").read([path])[path] == text.encode()


def test_ambiguous_revision_is_refused(tmp_path: Path) -> None:
    """A tag hides a branch with the same name; `HEAD` is never ambiguous."""
    catalog = create_repository(tmp_path)
    write_tool(catalog, "A_DO").write_text(TOOL)
    second = commit(tmp_path)
    run_git(tmp_path, "update-ref", "refs/tags/main", "HEAD~1")
    run_git(tmp_path, "update-ref", "refs/tags/HEAD", "HEAD~1")
    assert "`main` is the name of more than one branch, tag or commit" in sentence(catalog, "main")
    assert "more than one branch" in sentence(catalog, "main~0")
    result = git.open_repository(catalog)
    for name in ("HEAD", "@", "refs/heads/main", second):
        assert git.resolve_commit(result, name) == second


def test_unreadable_folder_is_not_a_removal(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is unreadable for root")
    catalog = create_repository(tmp_path)
    write_tool(catalog, "A_DO").parent.chmod(0)
    with pytest.raises(UsageError, match="cannot be read"):
        since(catalog, "HEAD")
    write_tool(catalog, "A_DO").parent.chmod(0o755)


def test_submodule_in_a_catalog_is_refused(tmp_path: Path) -> None:
    """Git records only one commit for all of its files."""
    catalog = create_repository(tmp_path / "repo")
    toolkit = catalog / "toolkits" / "a"
    shutil.copytree(toolkit, tmp_path / "kit")
    run_git(tmp_path / "kit", "init", "--quiet", "--initial-branch=main", ".")
    commit(tmp_path / "kit")
    first = run_git(catalog, "rev-parse", "HEAD")
    run_git(catalog, "rm", "--quiet", "-r", "toolkits/a")
    add = ("submodule", "--quiet", "add", str(tmp_path / "kit"), "catalog/toolkits/a")
    run_git(tmp_path / "repo", "-c", "protocol.file.allow=always", *add)
    with pytest.raises(UsageError, match=r"catalog/toolkits/a is a separate repository, such as"):
        since(catalog, first)
    commit(tmp_path / "repo")
    with pytest.raises(UsageError, match=r"is a separate repository at HEAD, such as a submodule"):
        files_at(catalog, "HEAD")
    assert files_at(catalog, first).object_ids


@pytest.mark.parametrize("place", [".gitattributes", "catalog/toolkits/.gitattributes"])
@pytest.mark.parametrize(
    "attribute", ["working-tree-encoding=ASCII//TRANSLIT", "filter=x", "ident"]
)
def test_checkout_conversion_is_refused(attribute: str, place: str, tmp_path: Path) -> None:
    """Reviewers see the committed bytes, but a build would publish converted ones."""
    catalog = create_repository(tmp_path / "repo")
    assert since(catalog, "HEAD") == set()
    (tmp_path / "repo" / place).write_text(f"*.yaml {attribute}\n")
    with pytest.raises(UsageError, match=r"Git converts catalog/.* on checkout"):
        since(catalog, "HEAD")


def test_git_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It matches this pattern with this path in exponential time."""
    catalog = create_repository(tmp_path)
    name = f"A_{'A' * 190}"
    write_tool(catalog, name, text=TOOL)
    commit(tmp_path)
    (tmp_path / ".gitattributes").write_text("**/*A*A*A*A*A*A*A*B -foo\n")
    monkeypatch.setattr(git, "_MAX_SECONDS", 2)
    with pytest.raises(UsageError, match=r"Git was stopped after 2 seconds: .*gitattributes"):
        since(catalog, "HEAD")


def test_paths_in_errors_are_escaped(tmp_path: Path) -> None:
    """A line break could start a workflow command."""
    catalog = create_repository(tmp_path / "repo")
    (catalog / "a\x1b\n::error::b.yaml").write_text("")
    commit(tmp_path / "repo")
    (tmp_path / "repo" / ".gitattributes").write_text("*error* ident\n")
    with pytest.raises(UsageError, match=r"a\\x1b\\n::error::b"):
        since(catalog, "HEAD")


def test_utf16_attributes_are_refused(tmp_path: Path) -> None:
    """A clone applies the committed attributes; in the working tree they are UTF-16."""
    catalog = create_repository(tmp_path / "repo")
    attributes = ".gitattributes working-tree-encoding=UTF-16LE-BOM\n*.yaml ident\n"
    (tmp_path / "repo/.gitattributes").write_bytes(b"\xff\xfe" + attributes.encode("utf-16-le"))
    run_git(tmp_path / "repo", "-c", "core.attributesFile=/dev/null", "add", ".gitattributes")
    blob = run_git(tmp_path / "repo", "hash-object", "-w", "--stdin", stdin=attributes)
    run_git(tmp_path / "repo", "update-index", "--cacheinfo", f"100644,{blob},.gitattributes")
    with pytest.raises(UsageError, match=r"Git converts catalog/.* on checkout"):
        since(catalog, "HEAD")


@pytest.mark.parametrize("name", ["catalog", "sub/catalog"])
def test_catalog_turned_into_a_submodule_is_refused(tmp_path: Path, name: str) -> None:
    """Also if a folder above it is one: the history of the submodule has no published versions.

    A catalog that always was in a submodule is compared.
    """
    top, folder = tmp_path / "repo", name.partition("/")[0]
    catalog = create_repository(top, name)
    first = run_git(top, "rev-parse", "HEAD")
    create_repository(tmp_path / "other", name)
    forged = tmp_path / "forged"
    shutil.copytree(tmp_path / "other" / folder, forged)
    run_git(forged, "init", "--quiet", "--initial-branch=main", ".")
    commit(forged)
    run_git(top, "rm", "--quiet", "-r", folder)
    add = ("submodule", "--quiet", "add", str(forged), folder)
    run_git(top, "-c", "protocol.file.allow=always", *add)
    commit(top)
    for revision in ("HEAD~1", first):
        message = f"such as a submodule, and at {revision} it was a folder of the repository in"
        with pytest.raises(UsageError, match=message):
            check_against_revision(catalog, revision, "2026-01-01")
        with pytest.raises(UsageError, match=message):
            compare_revisions(catalog, revision)
    assert check_against_revision(catalog, "HEAD", "2026-01-01").changed_paths == set()
