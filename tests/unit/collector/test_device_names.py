"""The names under which resources and claims hand out devices."""

from __future__ import annotations

import pytest

from collector.device_names import ClaimedName, claimed_name, resource_profile


@pytest.mark.parametrize(
    ("resource", "profile"),
    [
        ("nvidia.com/mig-1g.5gb", "1g.5gb"),
        ("nvidia.com/mig-1g.5gb.shared", "1g.5gb"),
        ("nvidia.com/mig-1g.10gb.me", "1g.10gb+me"),
        ("nvidia.com/mig-1g.10gb.me.shared", "1g.10gb+me"),
        ("nvidia.com/mig-1g.24gb.me.all", "1g.24gb+me.all"),
        ("nvidia.com/mig-1g.24gb-me", "1g.24gb-me"),
        ("nvidia.com/mig-1c.2g.10gb", "1c.2g.10gb"),
        ("nvidia.com/mig-mixed", None),
        ("nvidia.com/gpu", None),
        ("nvidia.com/gpu.shared", None),
        ("", None),
        (None, None),
    ],
)
def test_profile_of_a_resource(resource: str | None, profile: str | None) -> None:
    assert resource_profile(resource) == profile


def board(minor: int) -> ClaimedName:
    return ClaimedName(minor=minor, profile=None, profile_id=None, placement_start=None)


def partition(minor: int, profile: str, profile_id: int, placement_start: int) -> ClaimedName:
    return ClaimedName(
        minor=minor, profile=profile, profile_id=profile_id, placement_start=placement_start
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpu-0", board(0)),
        ("gpu-12", board(12)),
        ("gpu-0-mig-1g5gb-19-4", partition(0, "1g.5gb", 19, 4)),
        ("gpu-0-mig-1g10gb-15-0", partition(0, "1g.10gb", 15, 0)),
        ("gpu-12-mig-3g40gb-9-4", partition(12, "3g.40gb", 9, 4)),
        ("gpu-0-mig-1c2g10gb-14-2", partition(0, "1c.2g.10gb", 14, 2)),
        ("gpu-0-mig-1g10gb-me-20-6", partition(0, "1g.10gb+me", 20, 6)),
        ("gpu-0-mig-1g5gb", None),
        ("gpu-0-mig-1g5gb-19", None),
        ("gpu-1-mig-9-4-4", None),
        ("gpu-", None),
        ("tpu-0", None),
        ("", None),
    ],
)
def test_name_of_a_claimed_device(name: str, said: ClaimedName | None) -> None:
    assert claimed_name(name) == said
