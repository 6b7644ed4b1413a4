"""The cluster of the session and a namespace for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.conftest import skip_aloud
from tests.support.cluster import Cluster, running_cluster
from tests.support.cluster_kueue import Kueue, metrics_certificates, started_kueue
from tests.support.cluster_namespace import Namespace, emptied_namespace
from tests.support.cluster_operators import (
    QUEUED_FRAMEWORKS,
    define_operator_kinds,
    start_operators,
    training_certificates,
)
from tests.support.cluster_programs import (
    CLUSTER,
    OPERATORS,
    ProgramMissingError,
    program,
    require_openssl,
)

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run one real cluster for all tests of the session."""
    _need(*CLUSTER)
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """Give the test a namespace; afterwards its pods and all nodes are gone."""
    with emptied_namespace(cluster, f"test-{next(NUMBERS)}") as own:
        yield own


@pytest.fixture(scope="session")
def kueue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kueue]:
    """Run Kueue in a cluster of its own: no other test meets its webhooks by chance."""
    _need(*CLUSTER, "kueue")
    try:
        with metrics_certificates(), running_cluster(tmp_path_factory.mktemp("kueue")) as own:
            yield started_kueue(own)
    except ProgramMissingError as error:
        skip_aloud(str(error))


@pytest.fixture
def kueue_namespace(kueue: Kueue) -> Iterator[Namespace]:
    """Give the test a namespace of Kueue's cluster."""
    with emptied_namespace(kueue.cluster, f"test-{next(NUMBERS)}") as own:
        yield own


@pytest.fixture(scope="session")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kueue]:
    """Run Kueue, JobSet, KubeRay and the training operator in one more cluster of their own."""
    _need(*CLUSTER, *OPERATORS, "kueue")
    folder = tmp_path_factory.mktemp("operated")
    try:
        with metrics_certificates(), training_certificates(), running_cluster(folder) as own:
            define_operator_kinds(own)
            kueue = started_kueue(own, frameworks=QUEUED_FRAMEWORKS)
            start_operators(own)
            yield kueue
    except ProgramMissingError as error:
        skip_aloud(str(error))


@pytest.fixture
def operated_namespace(operated: Kueue) -> Iterator[Namespace]:
    """Give the test a namespace of the operators' cluster."""
    with emptied_namespace(operated.cluster, f"test-{next(NUMBERS)}") as own:
        yield own


def _need(*programs: str) -> None:
    try:
        for name in programs:
            program(name)
        require_openssl()
    except ProgramMissingError as error:
        skip_aloud(str(error))
