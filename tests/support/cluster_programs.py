"""Where the upstream programs of the test cluster are: built by ``make cluster-binaries``."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

MODULES = Path(__file__).parents[1] / "cluster" / "programs"
GROUP_OF_PROGRAM = {
    "etcd": "etcd",
    "kube-apiserver": "kubernetes",
    "kube-controller-manager": "kubernetes",
    "kube-scheduler": "kubernetes",
    "kwok": "kwok",
    "kueue": "kueue",
    "jobset": "jobset",
    "kuberay": "kuberay",
    "training-operator": "training",
}
OPERATORS = ("jobset", "kuberay", "training-operator")
CLUSTER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


class ProgramMissingError(Exception):
    """A program is neither built nor named; the message says how to bring it."""


def group_folder(group: str) -> Path:
    """Return the cache folder of one Go module, which its lock names."""
    locks = (MODULES / group / name for name in ("go.mod", "go.sum"))
    digest = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "steward" / "cluster" / f"{group}-{digest}"


def program(name: str) -> Path:
    """Return the path of a program: from ``KUBEBUILDER_ASSETS``, else from the cache.

    Raises:
        ProgramMissingError: it is in neither; the message names the command that builds it.
    """
    given = os.environ.get("KUBEBUILDER_ASSETS")
    group = GROUP_OF_PROGRAM[name]
    places = [Path(given) / name] if given else []
    for place in (*places, group_folder(group) / name):
        if os.access(place, os.X_OK):
            return place
    command = "make cluster-binaries" if name in CLUSTER else f"deploy/cluster_binaries.sh {group}"
    raise ProgramMissingError(f"{name} is not built: run `{command}` (needs Go >= 1.26)")


def module_files(group: str, folder: str) -> Path:
    """Return a folder that the build copied unmodified out of the group's Go module.

    Raises:
        ProgramMissingError: it was not copied yet.
    """
    place = group_folder(group) / folder
    if not place.is_dir():
        raise ProgramMissingError(f"{place} is missing: run `deploy/cluster_binaries.sh {group}`")
    return place


def require_openssl() -> str:
    """Return the path of openssl, which makes the keys of the cluster.

    Raises:
        ProgramMissingError: it is not installed.
    """
    found = shutil.which("openssl")
    if found is None:
        raise ProgramMissingError("openssl is not installed: run `deploy/setup.sh cluster`")
    return found
