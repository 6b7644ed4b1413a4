"""The desk in every round: what is granted is carried out, what is over taken back, by the leader.

A fault of one of them stops no other and no round: it is logged, and tried again in the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from enforcer.desk.grants import with_grants
from enforcer.desk.office import Desk
from enforcer.desk.settling import Find, settle_kept, settle_priorities, settle_quotas
from enforcer.hands import Hands
from enforcer.quota.applying import BY_FILE, carry_out
from enforcer.quota.comparing import Comparison, compared
from enforcer.quota.model import QuotaFile
from enforcer.quota.reading import file_at
from steward.errors import FencedError, InputError, StewardError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskTender:
    """Carries out and takes back, for one cluster."""

    desk: Desk
    quota_path: Path | None
    """The quota file, read anew in every round; None: quotas are nobody's business here."""

    def tend(self, hands: Hands, find: Find) -> None:
        """Do all that is due.

        Raises:
            FencedError: another replica leads now.
        """
        self._try(self._kept)
        self._try(lambda: settle_priorities(self.desk, hands, find))
        if self.quota_path is not None:
            path = self.quota_path
            self._try(lambda: self._quotas(path, hands))

    def _kept(self) -> None:
        settle_kept(self.desk)

    def _quotas(self, path: Path, hands: Hands) -> None:
        file = file_at(path)
        if file.cluster != hands.ledger.cluster:
            raise InputError(
                f"{path} is of cluster {file.cluster!r}, not of {hands.ledger.cluster!r}",
                hint="name the file of this cluster in enforce.quota_file",
            )
        found = compared(with_grants(file, self.desk.cases(), now=hands.clock.now()), hands.gateway)
        settle_quotas(self.desk, in_order(file, found, hands))

    def _try(self, part: Callable[[], object]) -> None:
        try:
            part()
        except FencedError:
            raise
        except StewardError as error:
            logger.warning("the desk: %s (%s)", error.message, error.hint)


def in_order(file: QuotaFile, found: Comparison, hands: Hands) -> tuple[str, ...]:
    """Write what differs, as far as the operator allows; return the teams whose quotas then hold.

    A kind that may not be written is only told: its quotas drift until somebody applies the file.
    """
    behind = {one.tenant_id for one in found.troubles}
    for trouble in found.troubles:
        logger.warning("%s: %s", trouble.message, trouble.hint)
    for change in found.changes:
        teams = {one.tenant_id for one in change.differences}
        if not hands.reach.may_write(change.holder):
            logger.info("quota of %s differs from the file", ", ".join(sorted(teams)))
            behind |= teams
            continue
        done = carry_out(change, hands, reasons=(BY_FILE,), facts_at=hands.clock.now())
        if not done.is_done:
            logger.warning("quota of %s: %s", ", ".join(sorted(teams)), done.detail)
            behind |= teams
    return tuple(one.tenant_id for one in file.teams if one.tenant_id not in behind)
