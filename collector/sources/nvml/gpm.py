"""Profiling signals of Hopper and newer (GPM): averages between two samples of the counters.

No profiling lock is taken and no right beyond NVML's own is needed. The sample before is kept per
device and instance; it is not used after a gap, nor for an instance that was made anew.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import pynvml

from collector.sources.nvml import scales
from collector.sources.nvml.calls import RefusedError, call, optional
from collector.sources.nvml.rates import LONGEST_GAP_S
from collector.sources.nvml.records import Absence, Measure, Readings
from collector.sources.nvml.scales import Scale
from collector.sources.nvml.signals import Handle, keep

SHORTEST_GAP_S: Final = 0.1
"""Samples closer than this give an error for each signal."""


@dataclass(frozen=True, slots=True)
class _Metric:
    gpm_id: int
    measure: Measure
    scale: Scale = scales.PROFILING_PERCENT


_RATIOS: Final = (
    _Metric(pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL, Measure.GRAPHICS_ACTIVE),
    _Metric(pynvml.NVML_GPM_METRIC_SM_UTIL, Measure.SM_ACTIVE),
    _Metric(pynvml.NVML_GPM_METRIC_SM_OCCUPANCY, Measure.SM_OCCUPANCY),
    _Metric(pynvml.NVML_GPM_METRIC_INTEGER_UTIL, Measure.INTEGER_ACTIVE),
    _Metric(pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL, Measure.TENSOR_ACTIVE),
    _Metric(pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL, Measure.DRAM_ACTIVE),
    _Metric(pynvml.NVML_GPM_METRIC_FP64_UTIL, Measure.FP64_ACTIVE),
    _Metric(pynvml.NVML_GPM_METRIC_FP32_UTIL, Measure.FP32_ACTIVE),
    _Metric(pynvml.NVML_GPM_METRIC_FP16_UTIL, Measure.FP16_ACTIVE),
)
_LINKS: Final = (
    _Metric(pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC, Measure.PCIE_TRANSMIT, scales.MIB_PER_S),
    _Metric(pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC, Measure.PCIE_RECEIVE, scales.MIB_PER_S),
)
_ASKED: Final = (*_RATIOS, *_LINKS)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Counters of one device or instance at one moment."""

    buffer: pynvml.c_nvmlGpmSample_t
    taken_s: float
    owner: str
    """The UUID: another one under the same instance id is another instance."""


class GpmReader:
    """The profiling counters of one GPU and its instances; used by one thread."""

    def __init__(self) -> None:
        """Start without samples."""
        self._before: dict[int | None, _Sample] = {}
        self._spare: list[pynvml.c_nvmlGpmSample_t] = []
        self._request = pynvml.c_nvmlGpmMetricsGet_t()
        self._is_supported: bool | None = None

    def is_supported(self, handle: Handle) -> bool:
        """Return whether this GPU has the counters; asked once."""
        if self._is_supported is None:
            support = optional(pynvml.nvmlGpmQueryDeviceSupport, handle)
            self._is_supported = support is not None and bool(support.isSupportedDevice)
        return self._is_supported

    def take(self, handle: Handle, *, owner: str, instance_id: int | None, into: Readings) -> None:
        """Take a sample, and keep the averages since the one before; at first sight, none.

        Args:
            handle: the board, also for an instance.
            owner: UUID of the board or instance.
            instance_id: None for the board.
            into: takes the values.
        """
        before = self._before.get(instance_id)
        now_s = time.monotonic()
        if before is not None and now_s - before.taken_s < SHORTEST_GAP_S:
            return
        try:
            self._before[instance_id] = self._sample(
                handle, owner=owner, instance_id=instance_id, now_s=now_s
            )
        except RefusedError as refused:
            miss_all(into, refused.reason)
            return
        if before is None:
            return
        if before.owner == owner and now_s - before.taken_s <= LONGEST_GAP_S:
            self._compare(before, self._before[instance_id], into=into)
        self._spare.append(before.buffer)

    def keep_only(self, instance_ids: set[int]) -> None:
        """Forget instances that are gone."""
        for gone in self._before.keys() - instance_ids - {None}:
            self._spare.append(self._before.pop(gone).buffer)

    def _sample(
        self, handle: Handle, *, owner: str, instance_id: int | None, now_s: float
    ) -> _Sample:
        buffer = self._spare.pop() if self._spare else call(pynvml.nvmlGpmSampleAlloc)
        try:
            if instance_id is None:
                call(pynvml.nvmlGpmSampleGet, handle, buffer)
            else:
                call(pynvml.nvmlGpmMigSampleGet, handle, instance_id, buffer)
        except RefusedError:
            self._spare.append(buffer)
            raise
        return _Sample(buffer=buffer, taken_s=now_s, owner=owner)

    def _compare(self, before: _Sample, after: _Sample, *, into: Readings) -> None:
        request = self._request
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(_ASKED)
        request.sample1, request.sample2 = before.buffer, after.buffer
        for place, metric in enumerate(_ASKED):
            request.metrics[place].metricId = metric.gpm_id
        try:
            call(pynvml.nvmlGpmMetricsGet, request)
        except RefusedError as refused:
            miss_all(into, refused.reason)
            return
        for place, metric in enumerate(_ASKED):
            self._keep(metric, request.metrics[place], into=into)

    @staticmethod
    def _keep(metric: _Metric, answer: pynvml.c_nvmlGpmMetric_t, *, into: Readings) -> None:
        if answer.nvmlReturn == pynvml.NVML_SUCCESS:
            keep(into, metric.measure, answer.value, scale=metric.scale)
        elif metric in _RATIOS:
            into.miss(metric.measure, Absence.NOT_SUPPORTED)


def miss_all(into: Readings, reason: Absence) -> None:
    """Note one reason for all profiling signals."""
    for metric in _RATIOS:
        into.miss(metric.measure, reason)
