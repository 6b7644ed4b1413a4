"""Where the objects of a kind live on a server, by its discovery; remembered for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from enforcer.gateway.live_access import LiveAccess, Request
from enforcer.gateway.live_errors import NotFoundError
from enforcer.gateway.port import KubernetesObject

KNOWN_S: Final = 600.0
MISSING_S: Final = 60.0
"""A kind that is not served may be installed later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One kind of one version."""

    group: str
    version: str
    plural: str
    is_namespaced: bool

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """Return the URL path of one object, or of all (of one namespace)."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.is_namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")


@dataclass(slots=True)
class Kinds:
    """The kinds of one server."""

    access: LiveAccess
    monotonic: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[float, Mapping[str, Served]]] = field(default_factory=dict)

    def find(self, api_version: str, kind: str) -> Served | None:
        """Return where a kind lives; None: the server does not serve it.

        Raises:
            ClusterError: the server could not be asked.
        """
        until_s, kinds = self._known.get(api_version, (0.0, {}))
        if self.monotonic() >= until_s:
            kinds = self._asked(api_version)
            keep_s = KNOWN_S if kind in kinds else MISSING_S
            self._known[api_version] = (self.monotonic() + keep_s, kinds)
        return kinds.get(kind)

    def _asked(self, api_version: str) -> Mapping[str, Served]:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            answer = self.access.ask(Request(method="GET", path=root))
        except NotFoundError:
            return {}
        found = answer.get("resources")
        entries = found if isinstance(found, list) else []
        pairs = (_served(each, api_version) for each in entries if isinstance(each, Mapping))
        return {kind: served for kind, served in pairs if "/" not in served.plural}


def _served(entry: KubernetesObject, api_version: str) -> tuple[str, Served]:
    group, _, version = api_version.rpartition("/")
    served = Served(
        group=group,
        version=version,
        plural=str(entry.get("name")),
        is_namespaced=entry.get("namespaced") is True,
    )
    return str(entry.get("kind")), served
