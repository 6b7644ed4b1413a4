"""How to reach an API server and as whom: from a kubeconfig file, or from the pod's own account.

Everything that a kubeconfig can say (certificates, tokens, files, exec plugins, proxies) is read by
the ``kubernetes`` package's own loader.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import yaml
from kubernetes.client import Configuration
from kubernetes.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
)
from kubernetes.config.kube_config import KubeConfigMerger

from collector.sources.kubernetes.api_error import ApiError, ApiFault

IN_CLUSTER_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"
"""Set in every pod."""
KUBECONFIG_VARIABLE: Final = "KUBECONFIG"
USUAL_KUBECONFIG: Final = "~/.kube/config"
LOOPBACK: Final = "localhost,127.0.0.0/8,::1"
"""Never reached through a proxy, as other clients have it too."""

# The loader lets these out of a file whose parts are of the wrong type, nested without end or not
# base64.
_LOADER_FAULTS: Final = (ConfigException, yaml.YAMLError, OSError, LookupError, TypeError)
_MORE_LOADER_FAULTS: Final = (AttributeError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the connection is described."""

    kubeconfig: Path | None = None
    """None: the pod's own account, or else ``$KUBECONFIG`` or ``~/.kube/config``."""
    context: str | None = None
    """None: the file's current context."""

    @property
    def is_in_cluster(self) -> bool:
        """Return whether the account of the pod is meant."""
        is_named = self.kubeconfig is not None or self.context is not None
        return not is_named and bool(os.environ.get(IN_CLUSTER_VARIABLE))

    @property
    def files(self) -> str:
        """Return the kubeconfig path, or several joined as in ``$KUBECONFIG``."""
        if self.kubeconfig is not None:
            return str(self.kubeconfig.expanduser())
        return os.environ.get(KUBECONFIG_VARIABLE) or str(Path(USUAL_KUBECONFIG).expanduser())

    def __str__(self) -> str:
        """Return the words with which messages name it."""
        if self.is_in_cluster:
            return "the pod's service account"
        return f"kubeconfig {self.files}"


def load_configuration(origin: Origin) -> Configuration:
    """Return address and credentials.

    Raises:
        ApiError: there is no kubeconfig, or it is broken, or it lacks the context.
    """
    configuration = Configuration()
    configuration.no_proxy = ",".join(filter(None, (configuration.no_proxy, LOOPBACK)))
    if origin.is_in_cluster:
        with _told_as_ours(origin):
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]  # untyped there
        return configuration
    with _told_as_ours(origin):
        _check_exists(origin)
        has_plugin = _has_plugin(origin)
        load_kube_config(  # type: ignore[no-untyped-call]  # untyped there
            origin.files, origin.context, client_configuration=configuration, persist_config=False
        )
        _check_server(origin, configuration)
    if has_plugin and not (configuration.api_key or configuration.cert_file):
        raise ApiError(
            f"the credential plugin of {origin} gave no credentials; its error is in the log",
            hint="run `kubectl --kubeconfig FILE get nodes`, and log in where the plugin asks",
            fault=ApiFault.CREDENTIALS,
        )
    return configuration


@contextmanager
def _told_as_ours(origin: Origin) -> Iterator[None]:
    try:
        yield
    except (*_LOADER_FAULTS, *_MORE_LOADER_FAULTS) as error:
        raise ApiError(
            f"{origin} cannot be used: {error}",
            hint="try `kubectl --kubeconfig FILE get nodes`, and mend the file until that works",
            fault=ApiFault.CREDENTIALS,
        ) from error


def _check_exists(origin: Origin) -> None:
    if any(Path(one).expanduser().is_file() for one in origin.files.split(os.pathsep) if one):
        return
    raise ApiError(
        f"no Kubernetes API server is known: {origin.files} is not a file, and this is no pod",
        hint="name a kubeconfig file, or run the collector in the cluster",
        fault=ApiFault.CREDENTIALS,
    )


def _has_plugin(origin: Origin) -> bool:
    """Return whether the context's user gets credentials from a program.

    Raises:
        ApiError: the context is missing; the loader's own message would not name the others.
    """
    merged = KubeConfigMerger(origin.files).config  # type: ignore[no-untyped-call]  # untyped there
    content = {} if merged is None else merged.value
    wanted = origin.context or content.get("current-context")
    contexts = {one["name"]: one["context"] for one in content.get("contexts") or ()}
    if wanted not in contexts:
        raise _context_error(origin, wanted, known=contexts)
    users = {one["name"]: one["user"] for one in content.get("users") or ()}
    name = contexts[wanted].safe_get("user") if "user" in contexts[wanted] else None
    return "exec" in (users.get(name) or ())


def _context_error(origin: Origin, wanted: str | None, *, known: Iterable[str]) -> ApiError:
    names = ", ".join(sorted(known)) or "none"
    missing = f"has no context {wanted!r}" if wanted else "has no current context"
    return ApiError(
        f"{origin} {missing}; it has: {names}",
        hint="name one of its contexts",
        fault=ApiFault.CREDENTIALS,
    )


def _check_server(origin: Origin, configuration: Configuration) -> None:
    """Raise where the address cannot be one; a port out of range raises ValueError."""
    parts = urlsplit(configuration.host)
    if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
        return
    raise ApiError(
        f"{origin}: {configuration.host!r} is not the address of a server",
        hint="write server: https://HOST:PORT",
        fault=ApiFault.CREDENTIALS,
    )
