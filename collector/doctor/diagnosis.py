"""All that was found, and the one sentence that sums it up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from collector.doctor.codes import Code
from collector.doctor.finding import Finding, Severity, counted, share
from collector.scrape import Reason
from steward.errors import SourceError

_UNREAD: Final = "unread"
_OF_TARGETS: Final[Mapping[str, str]] = MappingProxyType(
    {
        _UNREAD: "{targets} cannot be read",
        Code.NO_DEVICES: "{targets} show no GPU",
        Code.DEVICES_SILENT: "GPUs that do not answer on {targets}",
        Code.DEVICES_UNRESOLVED: "held devices that are no GPU of the node on {targets}",
        Code.PROFILING_ABSENT: "effective utilisation unknown on {targets}",
        Code.PROFILING_PARTIAL: "effective utilisation only an upper bound on {targets}",
        Code.PROFILING_UNEVEN: "effective utilisation unknown for some devices of {targets}",
        Code.UTILISATION_ABSENT: "utilisation unknown on {targets}",
        Code.MEMORY_ABSENT: "memory in use unknown on {targets}",
        Code.POWER_ABSENT: "power unknown on {targets}",
        Code.UNIT_UNSETTLED: "values left out for their unit on {targets}",
        Code.VALUES_OLD: "values minutes old on {targets}",
        Code.CLOCK_SKEW: "wrong clocks on {targets}",
        Code.UUID_ABSENT: "devices without UUID on {targets}",
        Code.MODEL_ABSENT: "devices without model on {targets}",
        Code.NO_PODRESOURCES: "holders of devices unknown on {targets}",
        Code.POD_LABELS_ABSENT: "no labels for pods on {targets}",
        Code.NODE_UNKNOWN: "{targets} name nodes that the cluster does not have",
    }
)
"""``{targets}`` is ``2 of 4 targets``."""
_OTHERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        Code.NO_TARGETS: "no exporter is read",
        Code.TARGETS_UNLISTED: "lists of targets unread",
        Code.NODE_UNSEEN: "GPU nodes without an exporter",
        Code.NODE_PARTLY_SEEN: "GPUs missing on nodes",
        Code.CLUSTER_UNREADABLE: "the cluster cannot be read",
        Code.PERMISSION_MISSING: "permissions missing in the cluster",
        Code.VERSIONS_UNKNOWN: "kinds of unknown versions",
        Code.KINDS_UNREAD: "kinds that could not be read",
        Code.GPU_NODES_ABSENT: "no GPU in the cluster",
        Code.MODEL_LABELS_ABSENT: "nodes do not say their GPU model",
        Code.PODS_WITHOUT_TEAM: "pods with GPUs belong to no team",
        Code.WAREHOUSE_AWAY: "the warehouse does not answer",
        Code.WAREHOUSE_REFUSES: "the warehouse refuses the token",
        Code.WAREHOUSE_MISMATCH: "the warehouse's tables do not fit",
        Code.FOLDER_UNWRITABLE: "the data folder cannot be written",
        Code.SPOOL_WAITS: "rows wait and nobody delivers them",
        Code.SPOOL_FILLS: "the spool fills up",
        Code.SPOOL_UNREADABLE: "the spool cannot be read",
        Code.DISK_SHORT: "the disk is nearly full",
        Code.PART_MISSING: "a part is not installed",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the doctor has to say."""

    findings: Sequence[Finding]
    """From the worst to the best."""
    target_count: int
    device_count: int
    cluster_role: str | None = None
    """YAML of the ClusterRole that the collector's account needs; None where it lacks nothing."""
    binding_command: str | None = None
    """Binds that role to the account; None where it lacks nothing or is not known."""

    def of(self, severity: Severity) -> list[Finding]:
        """Return the findings of one severity."""
        return [one for one in self.findings if one.severity is severity]

    @property
    def exit_code(self) -> int:
        """Return 0 where nothing is a fault, else that of a source that cannot be read."""
        return SourceError.exit_code if self.of(Severity.FAULT) else 0

    @property
    def conclusion(self) -> str:
        """Return one sentence: how many kinds of faults and gaps there are, and which."""
        worst = self.of(Severity.FAULT)
        told = {one.code for one in worst}
        faults = self._phrases(worst)
        gaps = self._phrases(one for one in self.of(Severity.GAP) if one.code not in told)
        note_count = len({one.code for one in self.of(Severity.NOTE)})
        notes = f" ({counted(note_count, 'note')} beside)" if note_count else ""
        if not (faults or gaps):
            return f"nothing is missing: {self._seen()}{notes}"
        counts = [
            counted(len(phrases), word)
            for phrases, word in ((faults, "fault"), (gaps, "gap"))
            if phrases
        ]
        return f"{' and '.join(counts)}: {'; '.join([*faults, *gaps])}{notes}"

    def _seen(self) -> str:
        devices = counted(self.device_count, "device")
        return f"{counted(self.target_count, 'target')} with {devices}"

    def _phrases(self, findings: Iterable[Finding]) -> list[str]:
        """Return one phrase for each code; targets that were not read are one."""
        subjects: dict[str, set[str]] = {}
        for one in findings:
            word = _UNREAD if one.code in set(Reason) else one.code
            subjects.setdefault(word, set()).add(one.subject)
        return [self._phrase(word, len(named)) for word, named in subjects.items()]

    def _phrase(self, word: str, count: int) -> str:
        if word in _OTHERS:
            return _OTHERS[word]
        return _OF_TARGETS[word].format(targets=share(count, self.target_count, "target"))
