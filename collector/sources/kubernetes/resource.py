"""What a kind of objects is called at the API server, and into what its objects are decoded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from collector.sources.kubernetes.api_error import Question


class ObjectMetadata(Protocol):
    """What the transport reads of an object; a struct may have more."""

    @property
    def name(self) -> str:
        """Return the object's name."""
        ...

    @property
    def namespace(self) -> str | None:
        """Return the namespace; None for an object of the whole cluster."""
        ...

    @property
    def uid(self) -> str:
        """Return the identity that no other object ever has."""
        ...

    @property
    def resource_version(self) -> str:
        """Return the opaque version, which changes with each write."""
        ...


class KubernetesObject(Protocol):
    """A decoded object: a ``msgspec.Struct`` with the fields that are used and no more."""

    @property
    def metadata(self) -> ObjectMetadata:
        """Return the object's identity and version."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of objects to list and watch, in all namespaces or in one."""

    group: str
    """API group; the empty text is the core group."""
    versions: tuple[str, ...]
    """In order of preference; the first that the server serves is used."""
    plural: str
    kind: str
    is_namespaced: bool
    decode: type[KubernetesObject]
    """A ``msgspec.Struct`` type, the same for all versions."""
    is_optional: bool = False
    """Whether clusters without it are usual: its absence is no fault, and it may come later."""
    namespace: str | None = None
    """The one namespace that is wanted; None reads all.

    A selector of the field ``metadata.namespace`` will not do: from an API server 1.36 it brings
    the first page of a list and says that there is no more.
    """
    label_selector: str | None = None
    field_selector: str | None = None

    @property
    def name(self) -> str:
        """Return the name people use: ``pods``, ``jobsets.jobset.x-k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def title(self) -> str:
        """Return the name, and what narrows it where something does: ``pods (app=x)``."""
        narrowed = (self.namespace, self.label_selector, self.field_selector)
        words = " ".join(one for one in narrowed if one)
        return f"{self.name} ({words})" if words else self.name

    def question(self, verb: str, version: str, query: Iterable[tuple[str, str]] = ()) -> Question:
        """Return a list or a watch of the wanted objects; ``query`` comes before what narrows."""
        narrowing = {
            "labelSelector": self.label_selector,
            "fieldSelector": self.field_selector,
        }
        narrowed = ((name, text) for name, text in narrowing.items() if text)
        return Question(
            path=self.path(version),
            query=(*query, *narrowed),
            verb=verb,
            group=self.group,
            plural=self.plural,
        )

    def path(self, version: str) -> str:
        """Return the URL path of the objects."""
        within = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{self.root(version)}{within}/{self.plural}"

    def root(self, version: str) -> str:
        """Return the URL path of the group and version."""
        return f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
