"""One connection to an API server for reading and writing: JSON in, JSON out, one error tree.

Address, credentials and TLS are those of the ``kubernetes`` package; its typed models are never
built. Credentials that the server refuses are loaded anew once: tokens are replaced on disk, and
plugins hand out new ones.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlencode

import urllib3
import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from urllib3.exceptions import HTTPError

from enforcer.gateway.live_errors import answer_error
from enforcer.gateway.port import JsonValue, KubernetesObject
from steward.errors import ClusterError
from steward.version import __version__

FIELD_MANAGER: Final = "gpu-steward"
"""The name under which the API server notes what was written here."""
CONNECT_S: Final = 5.0
ANSWER_S: Final = 30.0
CONNECTIONS: Final = 16
RELOAD_S: Final = 1.0
"""Refused credentials are loaded anew at most this often: it may start a plugin."""
LOOPBACK: Final = "localhost,127.0.0.0/8,::1"
"""Never reached through a proxy, as other clients have it too."""
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
_LOADER_FAULTS: Final = (
    AttributeError,
    ConfigException,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    yaml.YAMLError,
)
"""What the loader lets out of a file that is broken in one way or another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request in the words of the API."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: KubernetesObject | None = None
    content_type: str = JSON

    def __str__(self) -> str:
        """Return how messages name it."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where address and credentials are described."""

    kubeconfig: Path | None = None
    """None: the pod's own account where there is one, else ``$KUBECONFIG`` or the usual file."""
    context: str | None = None
    """None: the file's current context."""
    is_in_cluster: bool = False


class LiveAccess:
    """A pool of connections to one API server; safe for several threads.

    Raises:
        ClusterError: the description is missing or broken; the server itself is not asked.
    """

    def __init__(self, origin: Origin) -> None:
        """Load the credentials; nothing is sent yet."""
        self.origin = origin
        self._lock = threading.Lock()
        self._load()

    @property
    def server(self) -> str:
        """Return the API server's address."""
        return str(self._configuration.host)

    def ask(self, request: Request) -> KubernetesObject:
        """Return the answer's object.

        Raises:
            ClusterError: there is none; ``answer_error`` tells the kinds apart.
        """
        configuration = self._configuration
        status, body = self._sent(request)
        if status == HTTPStatus.UNAUTHORIZED:
            self._reload(instead_of=configuration)
            status, body = self._sent(request)
        answer = _decoded(body)
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES and answer is not None:
            return answer
        raise answer_error(status, answer, asked=f"{self.server} to {request}")

    def close(self) -> None:
        """End every connection that is not in use."""
        self._pool.clear()

    def _load(self) -> None:
        configuration = _configuration(self.origin)
        configuration.retries = False
        configuration.connection_pool_maxsize = CONNECTIONS
        self._pool = RESTClientObject(configuration).pool_manager
        self._configuration = configuration
        self._loaded_s = time.monotonic()

    def _reload(self, *, instead_of: Configuration) -> None:
        """Load the credentials anew, unless that was done just now."""
        with self._lock:
            is_due = time.monotonic() - self._loaded_s > RELOAD_S
            if self._configuration is instead_of and is_due:
                self._load()

    def _sent(self, request: Request) -> tuple[int, bytes]:
        url = self.server.rstrip("/") + request.path
        try:
            answer = self._pool.request(
                request.method,
                f"{url}?{urlencode(request.query)}" if request.query else url,
                body=None if request.body is None else json.dumps(request.body).encode(),
                headers=self._headers(request),
                timeout=urllib3.Timeout(connect=CONNECT_S, read=ANSWER_S),
                redirect=False,
                retries=False,
            )
        except HTTPError as error:
            words = str(error.__cause__ or error) or type(error).__name__
            raise ClusterError(
                f"{self.server} gave no answer to {request}: {words}",
                hint="check that the API server runs and can be reached from here",
            ) from error
        return answer.status, answer.data

    def _headers(self, request: Request) -> dict[str, str]:
        """Return the headers that say who asks; tokens about to expire are renewed first."""
        with self._lock:
            try:
                entry = self._configuration.auth_settings().get("BearerToken")
            except (ConfigException, OSError) as error:
                raise ClusterError(
                    f"the credentials for {self.server} could not be renewed: {error}",
                    hint="try `kubectl get nodes` with the same kubeconfig",
                ) from error
        token = {} if entry is None else {"authorization": str(entry["value"]).strip()}
        return {
            "accept": JSON,
            "content-type": request.content_type,
            "user-agent": f"{FIELD_MANAGER}/{__version__}",
            **token,
        }


def _configuration(origin: Origin) -> Configuration:
    configuration = Configuration()
    configuration.no_proxy = ",".join(filter(None, (configuration.no_proxy, LOOPBACK)))
    try:
        if origin.is_in_cluster:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]  # untyped there
        else:
            load_kube_config(  # type: ignore[no-untyped-call]  # untyped there
                None if origin.kubeconfig is None else str(origin.kubeconfig),
                origin.context,
                client_configuration=configuration,
                persist_config=False,
            )
    except _LOADER_FAULTS as error:
        raise ClusterError(
            f"no Kubernetes API server is known: {error}",
            hint="name a kubeconfig file, or run in the cluster with a service account",
        ) from error
    return configuration


def _decoded(body: bytes) -> Mapping[str, JsonValue] | None:
    """Return the answer's object; None where it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, JsonValue]", found) if isinstance(found, dict) else None
