"""A small client of a real Kubernetes API server, for tests only; it shares no code with Steward.

Kinds are named ``apiVersion/Kind``: ``v1/Pod``, ``batch/v1/Job``.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx

Manifest: TypeAlias = dict[str, Any]
"""One Kubernetes object as its JSON has it."""
Manifests: TypeAlias = list[Manifest]
Parameter: TypeAlias = str | int | bool

FORCED: Final[dict[str, Parameter]] = {"fieldManager": "steward-tests", "force": True}
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
DEADLINE_S = 30.0
RETRY_S = 0.2


class KubeStatusError(Exception):
    """The API server refused; ``code`` is the HTTP status, also for an error event of a watch."""

    def __init__(self, status: Manifest) -> None:
        """Keep the server's Status object."""
        self.code: int = status.get("code", 0)
        self.reason: str = status.get("reason", "")
        super().__init__(f"{self.code} {self.reason}: {status.get('message')}")


@dataclass(frozen=True, slots=True)
class Resource:
    """Where the objects of one kind live."""

    root: str
    plural: str
    is_namespaced: bool

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """Return the URL path of one object, or of all (of one namespace)."""
        scope = f"/namespaces/{namespace}" if self.is_namespaced and namespace else ""
        return f"{self.root}{scope}/{self.plural}" + (f"/{name}" if name else "")


@dataclass(slots=True)
class KubeClient:
    """One user's connection."""

    url: str
    token: str
    ca_file: Path
    http: httpx.Client = field(init=False, repr=False)
    resources: dict[str, Resource] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Open the connection pool; nothing is sent yet."""
        self.http = httpx.Client(
            base_url=self.url,
            headers={"authorization": f"Bearer {self.token}"},
            verify=ssl.create_default_context(cafile=self.ca_file),
            timeout=DEADLINE_S,
            trust_env=False,
        )

    def close(self) -> None:
        """Close all connections."""
        self.http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Manifest | None = None,
        content_type: str = "application/json",
        params: Mapping[str, Parameter] | None = None,
    ) -> Manifest:
        """Return the answer's object.

        Raises:
            KubeStatusError: the server refused.
            httpx.TransportError: there was no answer.
        """
        content = None if body is None else json.dumps(body)
        answer = self._send(method, path, content, content_type=content_type, params=params)
        return answer.json() if answer.content else {}

    def resource(self, kind: str) -> Resource:
        """Return where a kind lives, by the server's discovery.

        Raises:
            LookupError: the server does not know the kind.
        """
        if kind not in self.resources:
            api_version, name = kind.rsplit("/", 1)
            root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            found = self.request("GET", root)["resources"]
            entry = next((r for r in found if r["kind"] == name and "/" not in r["name"]), None)
            if entry is None:
                raise LookupError(f"the API server knows no {kind}")
            self.resources[kind] = Resource(root, entry["name"], entry["namespaced"])
        return self.resources[kind]

    def apply(self, manifest: Manifest, *, namespace: str | None = None) -> Manifest:
        """Create or change an object (server-side apply); return it as the server has it."""
        path = self._path_of(manifest, namespace)
        return self.request(
            "PATCH",
            path,
            body=manifest,
            content_type=APPLY,
            params=FORCED,
        )

    def create(self, manifest: Manifest, *, namespace: str | None = None) -> Manifest:
        """Create an object (also with ``generateName``); return it as the server has it."""
        metadata = manifest["metadata"]
        resource = self.resource(f"{manifest['apiVersion']}/{manifest['kind']}")
        path = resource.path(namespace or metadata.get("namespace"))
        return self.request("POST", path, body=manifest)

    def apply_text(self, kind: str, name: str, text: str) -> None:
        """Create or change a cluster-scoped object that is given as YAML text."""
        path = self.resource(kind).path(None, name)
        self._send("PATCH", path, text, content_type=APPLY, params=FORCED)

    def knows(self, kind: str) -> bool:
        """Whether the server serves a kind now."""
        try:
            self.resource(kind)
        except (LookupError, KubeStatusError):
            return False
        return True

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Manifest:
        """Return one object."""
        return self.request("GET", self.resource(kind).path(namespace, name))

    def list(self, kind: str, *, namespace: str | None = None, **params: Parameter) -> Manifests:
        """Return all objects of a kind; ``labelSelector=`` and ``fieldSelector=`` narrow."""
        answer = self.request("GET", self.resource(kind).path(namespace), params=params)
        items: Manifests = answer["items"]
        return items

    def patch(
        self,
        kind: str,
        name: str,
        change: Manifest,
        *,
        namespace: str | None = None,
        subresource: str = "",
    ) -> Manifest:
        """Merge a change into an object or one of its subresources (``status``)."""
        path = self.resource(kind).path(namespace, name)
        path += f"/{subresource}" if subresource else ""
        return self.request("PATCH", path, body=change, content_type=MERGE)

    def delete(
        self, kind: str, name: str, *, namespace: str | None = None, **params: Parameter
    ) -> None:
        """Ask for an object's end; its dependents end in the background."""
        path = self.resource(kind).path(namespace, name)
        self.request("DELETE", path, params={"propagationPolicy": "Background", **params})

    def delete_all(self, kind: str, *, namespace: str | None = None, **params: Parameter) -> None:
        """Ask for the end of all objects of a kind (of one namespace)."""
        path = self.resource(kind).path(namespace)
        self.request("DELETE", path, params={"propagationPolicy": "Background", **params})

    @contextmanager
    def watch(
        self, kind: str, *, namespace: str | None = None, **params: Parameter
    ) -> Iterator[Iterator[Manifest]]:
        """Yield the events of a watch, raw, error events raised; closes with the block."""
        path = self.resource(kind).path(namespace)
        with self.http.stream("GET", path, params={"watch": True, **params}) as answer:
            if answer.is_error:
                answer.read()
                raise KubeStatusError(_status(answer))
            yield _events(answer.iter_lines())

    def _send(
        self,
        method: str,
        path: str,
        content: str | None,
        *,
        content_type: str,
        params: Mapping[str, Parameter] | None,
    ) -> httpx.Response:
        """Return the answer; ask again while the server wants to be asked later (429)."""
        headers = {"content-type": content_type}
        until_s = time.monotonic() + DEADLINE_S
        while True:
            answer = self.http.request(
                method, path, content=content, headers=headers, params=params
            )
            if not answer.is_error:
                return answer
            if answer.status_code != httpx.codes.TOO_MANY_REQUESTS or time.monotonic() > until_s:
                raise KubeStatusError(_status(answer))
            time.sleep(RETRY_S)

    def _path_of(self, manifest: Mapping[str, Any], namespace: str | None) -> str:
        metadata = manifest["metadata"]
        resource = self.resource(f"{manifest['apiVersion']}/{manifest['kind']}")
        return resource.path(namespace or metadata.get("namespace"), metadata["name"])


def _events(lines: Iterator[str]) -> Iterator[Manifest]:
    for line in lines:
        event = json.loads(line)
        if event["type"] == "ERROR":
            raise KubeStatusError(event["object"])
        yield event


def _status(answer: httpx.Response) -> Manifest:
    try:
        status: Manifest = answer.json()
    except json.JSONDecodeError:
        return {"code": answer.status_code, "message": answer.text}
    return {"code": answer.status_code, **status}
