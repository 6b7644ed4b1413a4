"""Pages of lists and events of watches, decoded from raw JSON into a resource's own struct.

An object that is not of the expected shape costs that object, not the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from collector.sources.kubernetes.api_error import Status
from collector.sources.kubernetes.resource import KubernetesObject, Resource

Item = TypeVar("Item")

BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"
DELETED: Final = "DELETED"


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct, Generic[Item]):
    metadata: _ListMetadata
    items: list[Item] | None = None


class BareMetadata(msgspec.Struct, rename="camel"):
    """What every object has."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    namespace: str | None = None


class BareObject(msgspec.Struct):
    """An object of which only its identity is known."""

    metadata: BareMetadata


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list."""

    objects: Sequence[KubernetesObject]
    undecodable: Sequence[BareObject]
    """Objects of an unexpected shape."""
    resource_version: str
    """Of the whole list: where to watch from."""
    continue_token: str
    """Asks for the next page; empty after the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a watch."""

    type: str
    """``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK``, or what a newer server says."""
    object: KubernetesObject | None
    """None for a bookmark, and for an object of an unexpected shape."""
    bare: BareObject
    """Identity and version; a bookmark has the version only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent:
    """The server ends a watch and says why."""

    status: Status


class ObjectDecoder:
    """Decodes what the server says of one resource.

    Args:
        resource: its ``decode`` struct says which fields are kept.
    """

    def __init__(self, resource: Resource) -> None:
        """Build the decoders once: they are reused for every page and event."""
        decode: Any = resource.decode
        self._page = msgspec.json.Decoder(_Page[decode])
        self._raw_page = msgspec.json.Decoder(_Page[msgspec.Raw])
        self._object = msgspec.json.Decoder(decode)
        self._event = msgspec.json.Decoder(_Event)
        self._bare = msgspec.json.Decoder(BareObject)
        self._status = msgspec.json.Decoder(Status)

    def page(self, body: bytes) -> Page:
        """Return the objects of one page.

        Raises:
            msgspec.DecodeError: the body is no list of objects.
        """
        try:
            page = _decoded_by(self._page, body)
        except msgspec.ValidationError:
            return self._page_one_by_one(body)
        return Page(
            objects=page.items or (),
            undecodable=(),
            resource_version=page.metadata.resource_version,
            continue_token=page.metadata.continue_,
        )

    def event(self, line: bytes) -> Event | ErrorEvent:
        """Return what one line of a watch says.

        Raises:
            msgspec.DecodeError: the line is no event.
        """
        event = _decoded_by(self._event, line)
        if event.type == ERROR:
            return ErrorEvent(status=self._status.decode(event.object))
        bare = self._bare.decode(event.object)
        whole = None if event.type == BOOKMARK else self._decoded(event.object)
        return Event(type=event.type, object=whole, bare=bare)

    def _page_one_by_one(self, body: bytes) -> Page:
        page = _decoded_by(self._raw_page, body)
        raw = page.items or []
        decoded = [self._decoded(item) for item in raw]
        strange = [item for item, whole in zip(raw, decoded, strict=True) if whole is None]
        return Page(
            objects=[whole for whole in decoded if whole is not None],
            undecodable=[self._bare.decode(item) for item in strange],
            resource_version=page.metadata.resource_version,
            continue_token=page.metadata.continue_,
        )

    def _decoded(self, item: msgspec.Raw) -> KubernetesObject | None:
        try:
            whole: KubernetesObject = self._object.decode(item)
        except msgspec.ValidationError:
            return None
        return whole


def _decoded_by(decoder: msgspec.json.Decoder[Item], body: bytes) -> Item:
    """Return what the decoder makes of a body.

    Raises:
        msgspec.DecodeError: it is no such document, or nested deeper than any object is.
    """
    try:
        return decoder.decode(body)
    except RecursionError as error:
        raise msgspec.DecodeError(str(error)) from error
