"""All objects of one kind as they are now, read once: for looking, not for following."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiFault
from collector.sources.kubernetes.resource import KubernetesObject, Resource
from collector.sources.kubernetes.wire_faults import wire_error
from collector.sources.kubernetes.wire_objects import ObjectDecoder, Page

PAGE_SIZE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All objects of one kind."""

    objects: tuple[KubernetesObject, ...]
    undecodable_count: int
    """Objects left out since they are not of the expected shape."""


def listed(access: ApiAccess, resource: Resource, *, version: str, answer_s: float) -> Listing:
    """Return the objects of a kind.

    Args:
        access: whom to ask.
        resource: what to list, with its selectors.
        version: one that the server serves.
        answer_s: for each page.

    Raises:
        ApiError: the server refuses, or a page does not come.
    """
    pages = list(_pages(access, resource, version=version, answer_s=answer_s))
    return Listing(
        objects=tuple(found for page in pages for found in page.objects),
        undecodable_count=sum(len(page.undecodable) for page in pages),
    )


def _pages(
    access: ApiAccess, resource: Resource, *, version: str, answer_s: float
) -> Iterator[Page]:
    decoder, token = ObjectDecoder(resource), ""
    while True:
        more = [("continue", token)] if token else []
        question = resource.question("list", version, [("limit", str(PAGE_SIZE)), *more])
        try:
            page = decoder.page(access.get(question, answer_s=answer_s))
        except msgspec.DecodeError as error:
            what = f"the answer is not what it should be: {error}"
            raise wire_error(ApiFault.UNREADABLE, question, what, server=access.server) from error
        yield page
        token = page.continue_token
        if not token:
            return
