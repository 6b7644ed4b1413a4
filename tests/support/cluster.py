"""A real Kubernetes cluster on loopback, without containers: upstream programs, kwok as kubelets.

``running_cluster`` starts etcd, the API server, the controller manager, the scheduler and kwok on
free ports and stops exactly those. Tests take it as the fixture ``cluster`` (one for the session)
with a ``namespace`` each; ``tests/support/cluster_stages.yaml`` tells how pods live and end.
"""

from __future__ import annotations

import functools
import json
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.cluster_client import KubeClient, Manifest
from tests.support.cluster_minimal_crds import MINIMAL_KINDS
from tests.support.cluster_objects import counter, gpu_node
from tests.support.cluster_processes import (
    START_PATIENCE_S,
    Program,
    Programs,
    answers,
    free_ports,
    wait_until,
)
from tests.support.cluster_programs import module_files, program, require_openssl

STAGES = Path(__file__).with_name("cluster_stages.yaml")
NODE_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
)
CONTROLLERS = ("kwok", "kube-scheduler", "kube-controller-manager")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """What a test may want otherwise."""

    event_ttl_s: int = 3_600
    """How long the API server keeps events."""
    api_server_flags: tuple[str, ...] = ()
    """Added to the API server's command line."""
    has_kubelets: bool = True
    """Whether kwok runs; without it bound pods stay Pending."""


@dataclass(frozen=True, slots=True)
class User:
    """One who may use the API server, as a service account with a token of its own."""

    name: str
    token: str
    kubeconfig: Path


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the parts listen on 127.0.0.1."""

    api: int
    etcd: int
    etcd_peer: int
    kwok: int


@dataclass(slots=True)
class Cluster:
    """A running cluster; ``client`` is its administrator."""

    folder: Path
    options: ClusterOptions
    programs: Programs
    ports: Ports = field(default_factory=lambda: Ports(*free_ports(4)))
    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    """The administrator's bearer token."""
    start_s: float = 0.0
    """How long it took from nothing to ready."""
    was_away: bool = False
    """Whether the API server was, since the controllers started."""
    client: KubeClient = field(init=False)

    @property
    def url(self) -> str:
        """Return the API server's address."""
        return f"https://127.0.0.1:{self.ports.api}"

    @property
    def ca_file(self) -> Path:
        """Return the certificate with which the API server is verified."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig file."""
        return self.folder / "admin.kubeconfig"

    def start(self) -> None:
        """Start every part and wait until each is ready.

        Raises:
            ProgramFailedError: a part did not start; the message holds the tail of its log.
        """
        began_s = time.monotonic()
        self._write_files()
        self._start_etcd()
        self.start_api_server()
        self._start_controllers()
        self.start_s = time.monotonic() - began_s

    def stop(self) -> None:
        """Stop every part; logs stay in the folder, the stored objects do not."""
        if hasattr(self, "client"):
            self.client.close()
        self.programs.stop_all()
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def start_api_server(self) -> None:
        """Start the API server, on the same port as before, and wait until it is ready."""
        server = self.programs.start(
            "kube-apiserver", program("kube-apiserver"), *self._api_server_flags()
        )
        server.wait_ready(self._is_api_ready, patience_s=START_PATIENCE_S)

    def stop_api_server(self, *, kill: bool = False) -> None:
        """Stop the API server, or kill it where it stands; the rest of the cluster goes on."""
        self.was_away = True
        self.programs.stop("kube-apiserver", signal.SIGKILL if kill else signal.SIGTERM)

    def renew_controllers(self) -> None:
        """Start the controllers anew if the API server was away; do not wait for them.

        Each time it goes they wait twice as long before they watch again, up to a minute, and
        forget that only after two minutes in peace: the next test would begin with slow ones.
        """
        if self.was_away:
            for name in [name for name in CONTROLLERS if name in self.programs.running]:
                self.programs.stop(name, signal.SIGKILL)
            self._run_controllers()

    def restart_api_server(self, *, kill: bool = True) -> None:
        """Stop (or kill) the API server and start it anew; watches of clients break."""
        self.stop_api_server(kill=kill)
        self.start_api_server()

    def compact(self) -> int:
        """Drop etcd's history up to now; return the revision, which is a resourceVersion.

        A list that goes on with a ``continue`` token from before then gets 410. Watches are served
        from the API server's own cache: see ``expire_history``.
        """
        found = self._etcd("kv/range", {"key": "AA==", "count_only": True, "range_end": "AA=="})
        revision = int(found["header"]["revision"])
        self._etcd("kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def expire_history(self, *, kill: bool = True) -> None:
        """Make every resourceVersion known before unusable: to watch from it answers 410 Gone.

        The API server stops, the objects move on, etcd forgets, and the API server's new watch
        cache begins after that.
        """
        self.client.apply(counter())
        self.stop_api_server(kill=kill)
        self.compact()
        self.start_api_server()

    def add_user(self, name: str, rules: list[Manifest]) -> User:
        """Return a service account that may do what these RBAC rules say, cluster-wide."""
        account = {"name": name, "namespace": "default"}
        self.client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        rbac = "rbac.authorization.k8s.io/v1"
        self.client.apply(
            {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
        )
        self.client.apply(
            {
                "apiVersion": rbac,
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "subjects": [{"kind": "ServiceAccount", **account}],
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": name,
                },
            }
        )
        answer = self.client.request(
            "POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token", body={"spec": {}}
        )
        token: str = answer["status"]["token"]
        return User(name, token, self._write_kubeconfig(name, token))

    def create_node(
        self, name: str, *, gpu_count: int = 8, labels: dict[str, str] | None = None
    ) -> Manifest:
        """Create a GPU node; return it once kwok made it Ready and pods may be bound to it."""
        found = self.add_node(gpu_node(name, gpu_count=gpu_count, labels=labels))

        def takes_pods() -> bool:
            found.update(self.client.get("v1/Node", name))
            return _is_node_ready(found)

        wait_until(takes_pods, what=f"node {name} to be Ready")
        return found

    def add_node(self, manifest: Manifest) -> Manifest:
        """Create a node with the status that the manifest has; do not wait for it."""
        self.client.create(manifest)
        change = {"status": manifest["status"]}
        name = manifest["metadata"]["name"]
        return self.client.patch("v1/Node", name, change, subresource="status")

    def install_minimal_crds(self) -> None:
        """Define the kinds of other projects, minimally; return once all are served."""
        for kind in MINIMAL_KINDS:
            self.client.apply(kind.definition)
        for kind in MINIMAL_KINDS:
            wait_until(functools.partial(self.client.knows, kind.name), what=f"{kind.name}")

    def resident_bytes(self) -> dict[str, int]:
        """Return each program's resident memory."""
        return {name: p.resident_bytes for name, p in self.programs.running.items()}

    def _write_files(self) -> None:
        _make_key(self.folder / "service-accounts.key")
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n', encoding="ascii")
        self._write_kubeconfig("admin", self.token)
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": 1_000, "burst": 1_000},
            "leaderElection": {"leaderElect": False},
        }
        (self.folder / "scheduler.json").write_text(json.dumps(scheduler), encoding="ascii")

    def _write_kubeconfig(self, name: str, token: str) -> Path:
        """Write a kubeconfig file (JSON is YAML); return its path."""
        path = self.folder / f"{name}.kubeconfig"
        server = {"server": self.url, "certificate-authority": str(self.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": server}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": name}}],
            "current-context": "tests",
        }
        path.write_text(json.dumps(config), encoding="ascii")
        return path

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{p}" for p in (self.ports.etcd, self.ports.etcd_peer))
        etcd = self.programs.start(
            "etcd",
            program("etcd"),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        etcd.wait_ready(
            lambda: answers(f"{client}/health"),
            patience_s=START_PATIENCE_S,
        )

    def _api_server_flags(self) -> tuple[str, ...]:
        key = self.folder / "service-accounts.key"
        return (
            f"--etcd-servers=http://127.0.0.1:{self.ports.etcd}",
            f"--secure-port={self.ports.api}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={self.folder / 'certificates'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--event-ttl={self.options.event_ttl_s}s",
            "--shutdown-delay-duration=0s",
            *self.options.api_server_flags,
        )

    def _start_controllers(self) -> None:
        self._run_controllers()
        controllers = self.programs.running["kube-controller-manager"]
        controllers.wait_ready(self._has_default_account, patience_s=START_PATIENCE_S)
        for part in self.programs.running.values():
            part.check()

    def _run_controllers(self) -> None:
        self.was_away = False
        start = self.programs.start
        start(
            "kube-controller-manager",
            program("kube-controller-manager"),
            f"--kubeconfig={self.kubeconfig}",
            f"--service-account-private-key-file={self.folder / 'service-accounts.key'}",
            f"--root-ca-file={self.ca_file}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=500",
            "--kube-api-burst=500",
        )
        start(
            "kube-scheduler",
            program("kube-scheduler"),
            f"--config={self.folder / 'scheduler.json'}",
            "--secure-port=0",
        )
        if self.options.has_kubelets:
            self._start_kwok()

    def _start_kwok(self) -> Program:
        folder = module_files("kwok", "stage")
        stages = [f"--config={folder / name}" for name in NODE_STAGES]
        return self.programs.start(
            "kwok",
            program("kwok"),
            f"--kubeconfig={self.kubeconfig}",
            *stages,
            f"--config={STAGES}",
            "--manage-all-nodes",
            "--node-lease-duration-seconds=40",
            "--node-ip=127.0.0.1",
            f"--node-port={self.ports.kwok}",
            f"--server-address=127.0.0.1:{self.ports.kwok}",
            environment={"HOME": str(self.folder)},
        )

    def _is_api_ready(self) -> bool:
        if not self.ca_file.exists():
            return False
        if not hasattr(self, "client"):
            self.client = KubeClient(self.url, self.token, self.ca_file)
        try:
            return self.client.http.get("/readyz").is_success
        except httpx.TransportError:
            return False

    def _has_default_account(self) -> bool:
        accounts = self.client.list("v1/ServiceAccount", namespace="default")
        return any(account["metadata"]["name"] == "default" for account in accounts)

    def _etcd(self, call: str, body: Manifest) -> Manifest:
        address = f"http://127.0.0.1:{self.ports.etcd}/v3/{call}"
        answer = httpx.post(address, json=body, trust_env=False).raise_for_status()
        found: Manifest = answer.json()
        return found


def _is_node_ready(node: Manifest) -> bool:
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def _make_key(path: Path) -> None:
    command = [require_openssl(), "genrsa", "-out", str(path), "2048"]
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def running_cluster(folder: Path, options: ClusterOptions | None = None) -> Iterator[Cluster]:
    """Run a cluster for the length of the block; its logs and files are in the folder.

    Raises:
        ProgramMissingError: a program is not built; names the command that builds it.
        ProgramFailedError: a program did not start; shows its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(folder, options or ClusterOptions(), Programs(folder))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
