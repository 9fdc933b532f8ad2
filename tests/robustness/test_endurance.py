"""Constant load during builds, kills and outages: a short run of `support.endurance`."""

from pathlib import Path

from support.endurance import CLIENTS, Plan, run_endurance


def test_only_requests_of_killed_workers_fail(tmp_path: Path) -> None:
    """Reloads, rollbacks, killed workers and store outages: every other request is answered from
    one snapshot.
    """
    plan = Plan(reloads=10, rollbacks=2, kills=1, outages=1, published=2)
    local, following = run_endurance(tmp_path, plan)
    assert (local.failed, following.failed, local.inconsistent, following.inconsistent) == (
        0,
        0,
        0,
        0,
    )
    assert local.dropped <= CLIENTS * plan.kills
    assert following.dropped == 0
    assert len(local.snapshots) == len(following.snapshots) == 2
