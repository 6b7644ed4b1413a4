"""Pod and container of a process, from the control groups of every runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.agent.cgroups import NOBODY, ProcessOwner, owner_of, parse_cgroup

POD = "6b1f6c1e-3c0b-4f0e-9a55-0d2f8e0c1a77"
SYSTEMD_POD = POD.replace("-", "_")
CONTAINER = "4f" * 32


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        pytest.param(
            f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SYSTEMD_POD}.slice/"
            f"cri-containerd-{CONTAINER}.scope\n",
            (POD, CONTAINER),
            id="containerd, systemd, v2",
        ),
        pytest.param(
            f"0::/kubepods.slice/kubepods-pod{SYSTEMD_POD}.slice/crio-{CONTAINER}.scope/container\n",
            (POD, CONTAINER),
            id="CRI-O, guaranteed, nested",
        ),
        pytest.param(
            f"12:devices:/kubepods/besteffort/pod{POD}/{CONTAINER}\n1:name=systemd:/x\n",
            (POD, CONTAINER),
            id="cgroupfs, v1",
        ),
        pytest.param(
            f"11:memory:/kubepods-burstable-pod{SYSTEMD_POD}.slice:cri-containerd:{CONTAINER}\n",
            (None, CONTAINER),
            id="containerd, v1, flat name without a folder of the pod",
        ),
        pytest.param(
            f"0::/../../kubepods-pod{SYSTEMD_POD}.slice/docker-{CONTAINER}.scope\n",
            (POD, CONTAINER),
            id="seen from another group namespace",
        ),
        pytest.param(
            f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SYSTEMD_POD}.slice/"
            f"cri-containerd-{CONTAINER}.scope\n",
            (POD, CONTAINER),
            id="kind",
        ),
        pytest.param(
            f"0::/kubepods.slice/kubepods-pod{'0a' * 16}.slice/crio-{CONTAINER}.scope\n",
            ("0a" * 16, CONTAINER),
            id="static pod",
        ),
        pytest.param(
            f"0::/system.slice/docker-{CONTAINER}.scope\n", (None, CONTAINER), id="plain Docker"
        ),
        pytest.param(
            "0::/user.slice/user-1000.slice/session-2.scope\n", (None, None), id="a person"
        ),
        pytest.param("0::/\n", (None, None), id="root"),
        pytest.param("", (None, None), id="empty"),
        pytest.param(f"0::/x/{CONTAINER}4f\n", (None, None), id="66 digits are no container"),
        pytest.param(f"0::/pod{POD}x/y\n", (None, None), id="more than a UID"),
    ],
)
def test_owner_in_a_group(text: str, owner: tuple[str | None, str | None]) -> None:
    assert parse_cgroup(text) == owner


def test_owner_of_a_process(tmp_path: Path) -> None:
    folder = tmp_path / "42"
    folder.mkdir()
    (folder / "cgroup").write_text(f"0::/kubepods/pod{POD}/{CONTAINER}\n")
    (folder / "comm").write_bytes(b"python\xff3\n")
    assert owner_of(42, proc_root=tmp_path) == ProcessOwner(
        name="python�3", pod_uid=POD, container_id=CONTAINER
    )


def test_a_process_that_has_ended_is_nobodys(tmp_path: Path) -> None:
    assert owner_of(42, proc_root=tmp_path) == NOBODY
