"""Owners' mail, chat and webhooks, by Apprise: one address per channel, in its own words of URLs.

An address holds secrets, so that messages and rows name a channel by its service and number only.
Nothing can be asked back: a notice interrupted while it was sent is told anew.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from enforcer.gateway.port import Target
from enforcer.notify import Channel, OwnerWarning, Told
from steward.errors import MissingPartError, SettingsError

if TYPE_CHECKING:
    from apprise import Apprise

TITLE: Final = "Idle GPUs"
TIMEOUT_S: Final = 20
"""For one address: a round must not wait for a chat that hangs."""


class AppriseChannel:
    """One address."""

    def __init__(self, sender: Apprise, *, name: str) -> None:
        """Keep what sends; ``apprise_channels`` is the door."""
        self._sender = sender
        self.name: Final = name

    def tell(self, warning: OwnerWarning) -> Told:
        """Deliver it; Apprise says whether the service took it, not why it did not."""
        is_delivered = bool(
            self._sender.notify(
                title=f"{TITLE}: {warning.workload.namespace}/{warning.workload.name}",
                body=warning.text,
                timeout=TIMEOUT_S,
            )
        )
        detail = None if is_delivered else f"{self.name} did not take it"
        return Told(channel=self.name, is_delivered=is_delivered, detail=detail)

    def was_told(self, _action_id: str, _target: Target) -> bool:
        """Return False: a mail or a chat cannot be asked whether it arrived."""
        return False


def apprise_channels(urls: Sequence[str]) -> tuple[Channel, ...]:
    """Return one channel per address, in their order.

    Args:
        urls: as Apprise writes them, such as ``mailto://user:pass@host`` or ``feishu://token``.

    Raises:
        MissingPartError: Apprise is not installed.
        SettingsError: an address is none.
    """
    if not urls:
        return ()
    try:
        from apprise import Apprise  # noqa: PLC0415 - an extra, and a second to import
    except ImportError as error:
        raise MissingPartError(
            "notices by mail, chat or webhook need Apprise",
            hint='install it with: pip install "gpu-steward[notify]"',
        ) from error
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its messages spell addresses out
    found: list[Channel] = []
    for number, url in enumerate(urls, start=1):
        sender = Apprise()
        if not sender.add(url):
            raise SettingsError(
                f"address {number} of enforce.notify_urls is none that Apprise knows",
                hint="write it as its documentation shows, for example json://host/path",
            )
        service = url.partition("://")[0]
        found.append(AppriseChannel(sender, name=f"{service}-{number}"))
    return tuple(found)
