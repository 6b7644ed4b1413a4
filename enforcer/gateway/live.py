"""The gateway to a real API server.

Each write carries its preconditions in the request itself, so that the server refuses it if the
object was replaced or changed; each is fenced, rehearsed on wish, and made under our own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from enforcer.gateway.live_access import FIELD_MANAGER, MERGE_PATCH, LiveAccess, Request
from enforcer.gateway.live_errors import NotFoundError
from enforcer.gateway.live_kinds import Kinds, Served
from enforcer.gateway.merging import merged_object
from enforcer.gateway.places import metadata_of, place_of
from enforcer.gateway.port import JsonValue, KubernetesObject, Target, Verb, Write
from steward.errors import ConflictError, FencedError, RefusedError

PAGE_LENGTH: Final = 500
"""Objects of one answer of a list."""
_SUBRESOURCES: Final = {Verb.SCALE: "scale", Verb.EVICT: "eviction"}


class LiveGateway:
    """Reads and writes one cluster through its API server; safe for several threads.

    Args:
        access: the connection.
        is_leading: asked before each write; False raises ``FencedError``.
    """

    def __init__(self, access: LiveAccess, *, is_leading: Callable[[], bool]) -> None:
        """Keep the connection; nothing is sent yet."""
        self.access = access
        self.is_leading = is_leading
        self.kinds = Kinds(access)

    def read(self, target: Target) -> KubernetesObject | None:
        """Return the object, or None."""
        served = self.kinds.find(target.api_version, target.kind)
        if served is None:
            return None
        path = served.path(target.namespace, target.name)
        try:
            found = self.access.ask(Request(method="GET", path=path))
        except NotFoundError:
            return None
        return found if target.uid in {None, metadata_of(found).get("uid")} else None

    def list(
        self, *, api_version: str, kind: str, namespace: str | None, labels: str = ""
    ) -> Sequence[KubernetesObject]:
        """Return the objects, ascending by namespace and name."""
        served = self.kinds.find(api_version, kind)
        if served is None:
            return []
        whole = {"apiVersion": api_version, "kind": kind}
        found = [{**each, **whole} for each in self._pages(served.path(namespace), labels)]
        return sorted(found, key=place_of)

    def rehearse(self, write: Write) -> None:
        """Let the server check the write with all its admission, and store nothing."""
        self._send(write, is_rehearsal=True)

    def write(self, write: Write) -> KubernetesObject:
        """Carry out the write; return the object afterwards."""
        if not self.is_leading():
            raise FencedError(
                f"{write.target.kind} {write.target.name} was not written: another replica leads",
                hint="nothing to do: the leader goes on",
            )
        answer = self._send(write, is_rehearsal=False)
        if write.verb not in _SUBRESOURCES:
            return answer
        return self.read(write.target) or answer

    def may(self, *, verb: str, api_version: str, kind: str, namespace: str | None) -> bool:
        """Return whether the account may do this; a kind that is not served it may not."""
        served = self.kinds.find(api_version, kind)
        if served is None:
            return False
        word, _, subresource = verb.partition("/")
        asked: dict[str, JsonValue] = {
            "verb": word,
            "group": served.group,
            "version": served.version,
            "resource": served.plural,
            "subresource": subresource,
            "namespace": namespace or "",
        }
        review: KubernetesObject = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = self.access.ask(Request(method="POST", path=path, body=review))
        status = answer.get("status")
        return isinstance(status, Mapping) and status.get("allowed") is True

    def _pages(self, path: str, labels: str) -> Iterator[KubernetesObject]:
        token = ""
        while True:
            query = [("limit", str(PAGE_LENGTH))]
            query += [("labelSelector", labels)] if labels else []
            query += [("continue", token)] if token else []
            try:
                page = self.access.ask(Request(method="GET", path=path, query=tuple(query)))
            except NotFoundError:
                return
            items = page.get("items")
            if isinstance(items, list):
                yield from (each for each in items if isinstance(each, Mapping))
            token = str(metadata_of(page).get("continue") or "")
            if not token:
                return

    def _send(self, write: Write, *, is_rehearsal: bool) -> KubernetesObject:
        served = self.kinds.find(write.target.api_version, write.target.kind)
        if served is None:
            raise RefusedError(
                f"the cluster serves no {write.target.kind} of {write.target.api_version}",
                hint="install what brings this kind, if it is wanted",
            )
        query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")]
        query += [("dryRun", "All")] if is_rehearsal else []
        request = _request(write, served, tuple(query))
        try:
            return self.access.ask(request)
        except NotFoundError as error:
            raise ConflictError(
                f"{write.target.kind} {write.target.namespace}/{write.target.name} is gone",
                hint="read it anew and decide again",
            ) from error


def _request(write: Write, served: Served, query: tuple[tuple[str, str], ...]) -> Request:
    if write.verb is Verb.CREATE:
        path = served.path(write.target.namespace)
        return Request(method="POST", path=path, query=query, body=write.body)
    path = served.path(write.target.namespace, write.target.name)
    if write.verb is Verb.EVICT:
        return Request(method="POST", path=f"{path}/eviction", query=query, body=_eviction(write))
    body = merged_object(write.body, {"metadata": _preconditions(write)})
    subresource = "/scale" if write.verb is Verb.SCALE else ""
    return Request(
        method="PATCH",
        path=path + subresource,
        query=query,
        body=body,
        content_type=MERGE_PATCH,
    )


def _eviction(write: Write) -> KubernetesObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": write.target.name, "namespace": write.target.namespace},
        "deleteOptions": {"preconditions": _preconditions(write)},
    }


def _preconditions(write: Write) -> KubernetesObject:
    wanted = {"uid": write.target.uid, "resourceVersion": write.resource_version}
    return {key: text for key, text in wanted.items() if text is not None}
