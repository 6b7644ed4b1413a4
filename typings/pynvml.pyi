# ruff: noqa: A002, N801, N802, N803, N815, N816, SLF001, PYI042 - names as the library spells them
# Types of the part of pynvml (distribution nvidia-ml-py) that collector.sources.nvml calls.

import ctypes
from collections.abc import Sequence
from typing import TypeAlias

class struct_c_nvmlDevice_t(ctypes.Structure): ...
class struct_c_nvmlEventSet_t(ctypes.Structure): ...
class struct_c_nvmlGpmSample_t(ctypes.Structure): ...
class struct_c_nvmlGpuInstance_t(ctypes.Structure): ...

c_nvmlDevice_t: TypeAlias = ctypes._Pointer[struct_c_nvmlDevice_t]
c_nvmlEventSet_t: TypeAlias = ctypes._Pointer[struct_c_nvmlEventSet_t]
c_nvmlGpmSample_t: TypeAlias = ctypes._Pointer[struct_c_nvmlGpmSample_t]
c_nvmlGpuInstance_t: TypeAlias = ctypes._Pointer[struct_c_nvmlGpuInstance_t]

NVML_AGGREGATE_ECC: int
NVML_CLOCK_GRAPHICS: int
NVML_CLOCK_MEM: int
NVML_CLOCK_SM: int
NVML_CLOCK_VIDEO: int
NVML_ERROR_DRIVER_NOT_LOADED: int
NVML_ERROR_FUNCTION_NOT_FOUND: int
NVML_ERROR_GPU_IS_LOST: int
NVML_ERROR_GPU_NOT_FOUND: int
NVML_ERROR_INVALID_ARGUMENT: int
NVML_ERROR_LIBRARY_NOT_FOUND: int
NVML_ERROR_LIB_RM_VERSION_MISMATCH: int
NVML_ERROR_NO_DATA: int
NVML_ERROR_NO_PERMISSION: int
NVML_ERROR_NOT_FOUND: int
NVML_ERROR_NOT_SUPPORTED: int
NVML_ERROR_RESET_REQUIRED: int
NVML_ERROR_TIMEOUT: int
NVML_ERROR_UNINITIALIZED: int
NVML_ERROR_VGPU_ECC_NOT_SUPPORTED: int
NVML_FI_DEV_MEMORY_TEMP: int
NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX: int
NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX: int
NVML_FI_DEV_PCIE_COUNT_RX_BYTES: int
NVML_FI_DEV_PCIE_COUNT_TX_BYTES: int
NVML_FI_DEV_PERF_POLICY_POWER: int
NVML_FI_DEV_PERF_POLICY_THERMAL: int
NVML_FI_DEV_POWER_AVERAGE: int
NVML_FI_DEV_POWER_INSTANT: int
NVML_FI_DEV_RETIRED_DBE: int
NVML_FI_DEV_RETIRED_SBE: int
NVML_GPM_METRICS_GET_VERSION: int
NVML_GPM_METRIC_ANY_TENSOR_UTIL: int
NVML_GPM_METRIC_DRAM_BW_UTIL: int
NVML_GPM_METRIC_FP16_UTIL: int
NVML_GPM_METRIC_FP32_UTIL: int
NVML_GPM_METRIC_FP64_UTIL: int
NVML_GPM_METRIC_GRAPHICS_UTIL: int
NVML_GPM_METRIC_INTEGER_UTIL: int
NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC: int
NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC: int
NVML_GPM_METRIC_PCIE_RX_PER_SEC: int
NVML_GPM_METRIC_PCIE_TX_PER_SEC: int
NVML_GPM_METRIC_SM_OCCUPANCY: int
NVML_GPM_METRIC_SM_UTIL: int
NVML_GPU_FABRIC_STATE_COMPLETED: int
NVML_GPU_INSTANCE_PROFILE_4_SLICE: int
NVML_GPU_INSTANCE_PROFILE_7_SLICE: int
NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU: int
NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA: int
NVML_GPU_VIRTUALIZATION_MODE_NONE: int
NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH: int
NVML_GPU_VIRTUALIZATION_MODE_VGPU: int
NVML_MEMORY_ERROR_TYPE_CORRECTED: int
NVML_MEMORY_ERROR_TYPE_UNCORRECTED: int
NVML_PCIE_UTIL_RX_BYTES: int
NVML_PCIE_UTIL_TX_BYTES: int
NVML_SUCCESS: int
NVML_TEMPERATURE_GPU: int
NVML_VALUE_TYPE_DOUBLE: int
NVML_VALUE_TYPE_SIGNED_INT: int
NVML_VALUE_TYPE_SIGNED_LONG_LONG: int
NVML_VALUE_TYPE_UNSIGNED_INT: int
NVML_VALUE_TYPE_UNSIGNED_LONG: int
NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: int
NVML_VALUE_TYPE_UNSIGNED_SHORT: int
nvmlEventTypeXidCriticalError: int
nvmlMemory_v2: int

class NVMLError(Exception):
    value: int

    def __init__(self, value: int) -> None: ...

class NVMLLibraryMismatchError(Exception): ...

class c_nvmlUtilization_t(ctypes.Structure):
    gpu: int
    memory: int

class c_nvmlMemory_t(ctypes.Structure):
    total: int
    free: int
    used: int

class c_nvmlMemory_v2_t(c_nvmlMemory_t):
    reserved: int

class nvmlPciInfo_t(ctypes.Structure):
    busId: str

class c_nvmlValue_t(ctypes.Union):
    dVal: float
    uiVal: int
    ulVal: int
    ullVal: int
    sllVal: int
    siVal: int
    usVal: int

class c_nvmlFieldValue_t(ctypes.Structure):
    fieldId: int
    scopeId: int
    timestamp: int
    valueType: int
    nvmlReturn: int
    value: c_nvmlValue_t

class c_nvmlEventData_t(ctypes.Structure):
    device: c_nvmlDevice_t
    eventType: int
    eventData: int
    gpuInstanceId: int
    computeInstanceId: int

class nvmlFriendlyObject:
    pid: int
    usedGpuMemory: int | None
    gpuInstanceId: int
    computeInstanceId: int

class c_nvmlProcessUtilizationSample_t(ctypes.Structure):
    pid: int
    timeStamp: int
    smUtil: int
    memUtil: int
    encUtil: int
    decUtil: int

class c_nvmlDeviceAttributes(ctypes.Structure):
    multiprocessorCount: int
    gpuInstanceSliceCount: int
    computeInstanceSliceCount: int
    memorySizeMB: int

class c_nvmlGpuInstanceProfileInfo_v2_t(ctypes.Structure):
    sliceCount: int
    multiprocessorCount: int
    memorySizeMB: int

class c_nvmlGpuInstancePlacement_t(ctypes.Structure):
    start: int
    size: int

class c_nvmlGpuInstanceInfo_t(ctypes.Structure):
    id: int
    profileId: int
    placement: c_nvmlGpuInstancePlacement_t

class c_nvmlGpuFabricInfo_v2_t(ctypes.Structure):
    clusterUuid: Sequence[int]
    status: int
    cliqueId: int
    state: int

class c_nvmlGpmMetric_t(ctypes.Structure):
    metricId: int
    nvmlReturn: int
    value: float

class c_nvmlGpmMetricsGet_t(ctypes.Structure):
    version: int
    numMetrics: int
    sample1: c_nvmlGpmSample_t
    sample2: c_nvmlGpmSample_t
    metrics: Sequence[c_nvmlGpmMetric_t]

class c_nvmlGpmSupport_t(ctypes.Structure):
    isSupportedDevice: int

def nvmlInit() -> None: ...
def nvmlShutdown() -> None: ...
def nvmlSystemGetDriverVersion() -> str: ...
def nvmlDeviceGetCount() -> int: ...
def nvmlDeviceGetHandleByIndex(index: int) -> c_nvmlDevice_t: ...
def nvmlDeviceGetUUID(handle: c_nvmlDevice_t) -> str: ...
def nvmlDeviceGetName(handle: c_nvmlDevice_t) -> str: ...
def nvmlDeviceGetSerial(handle: c_nvmlDevice_t) -> str: ...
def nvmlDeviceGetMinorNumber(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetPciInfo(handle: c_nvmlDevice_t) -> nvmlPciInfo_t: ...
def nvmlDeviceGetVirtualizationMode(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetGpuFabricInfoV(
    device: c_nvmlDevice_t, gpuFabricInfo: ctypes._CArgObject | object
) -> int: ...
def nvmlDeviceGetUtilizationRates(handle: c_nvmlDevice_t) -> c_nvmlUtilization_t: ...
def nvmlDeviceGetEncoderUtilization(handle: c_nvmlDevice_t) -> list[int]: ...
def nvmlDeviceGetDecoderUtilization(handle: c_nvmlDevice_t) -> list[int]: ...
def nvmlDeviceGetJpgUtilization(handle: c_nvmlDevice_t) -> list[int]: ...
def nvmlDeviceGetOfaUtilization(handle: c_nvmlDevice_t) -> list[int]: ...
def nvmlDeviceGetMemoryInfo(
    handle: c_nvmlDevice_t, version: int | None = None
) -> c_nvmlMemory_v2_t: ...
def nvmlDeviceGetPowerUsage(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetEnforcedPowerLimit(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetTotalEnergyConsumption(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetTemperature(handle: c_nvmlDevice_t, sensor: int) -> int: ...
def nvmlDeviceGetTemperatureV(handle: c_nvmlDevice_t, sensor: int) -> int: ...
def nvmlDeviceGetFanSpeed(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetClockInfo(handle: c_nvmlDevice_t, type: int) -> int: ...
def nvmlDeviceGetCurrentClocksEventReasons(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetCurrentClocksThrottleReasons(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetTotalEccErrors(
    handle: c_nvmlDevice_t, errorType: int, counterType: int
) -> int: ...
def nvmlDeviceGetRemappedRows(device: c_nvmlDevice_t) -> tuple[int, int, int, int]: ...
def nvmlDeviceGetPcieReplayCounter(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetPcieThroughput(device: c_nvmlDevice_t, counter: int) -> int: ...
def nvmlDeviceGetFieldValues(
    handle: c_nvmlDevice_t, fieldIds: Sequence[int | tuple[int, int]]
) -> Sequence[c_nvmlFieldValue_t]: ...
def nvmlDeviceGetComputeRunningProcesses_v2(
    handle: c_nvmlDevice_t,
) -> list[nvmlFriendlyObject]: ...
def nvmlDeviceGetComputeRunningProcesses_v3(
    handle: c_nvmlDevice_t,
) -> list[nvmlFriendlyObject]: ...
def nvmlDeviceGetGraphicsRunningProcesses_v2(
    handle: c_nvmlDevice_t,
) -> list[nvmlFriendlyObject]: ...
def nvmlDeviceGetGraphicsRunningProcesses_v3(
    handle: c_nvmlDevice_t,
) -> list[nvmlFriendlyObject]: ...
def nvmlDeviceGetMPSComputeRunningProcesses_v3(
    handle: c_nvmlDevice_t,
) -> list[nvmlFriendlyObject]: ...
def nvmlDeviceGetProcessUtilization(
    handle: c_nvmlDevice_t, timeStamp: int
) -> list[c_nvmlProcessUtilizationSample_t]: ...
def nvmlDeviceGetMigMode(device: c_nvmlDevice_t) -> list[int]: ...
def nvmlDeviceGetMaxMigDeviceCount(device: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetMigDeviceHandleByIndex(device: c_nvmlDevice_t, index: int) -> c_nvmlDevice_t: ...
def nvmlDeviceGetGpuInstanceId(device: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetAttributes(device: c_nvmlDevice_t) -> c_nvmlDeviceAttributes: ...
def nvmlDeviceGetGpuInstanceProfileInfo(
    device: c_nvmlDevice_t, profile: int
) -> c_nvmlGpuInstanceProfileInfo_v2_t: ...
def nvmlDeviceGetGpuInstanceById(
    device: c_nvmlDevice_t, gpuInstanceId: int
) -> c_nvmlGpuInstance_t: ...
def nvmlGpuInstanceGetInfo(gpuInstance: c_nvmlGpuInstance_t) -> c_nvmlGpuInstanceInfo_t: ...
def nvmlEventSetCreate() -> c_nvmlEventSet_t: ...
def nvmlEventSetFree(eventSet: c_nvmlEventSet_t) -> None: ...
def nvmlEventSetWait_v2(eventSet: c_nvmlEventSet_t, timeoutms: int) -> c_nvmlEventData_t: ...
def nvmlDeviceRegisterEvents(
    handle: c_nvmlDevice_t, eventTypes: int, eventSet: c_nvmlEventSet_t
) -> None: ...
def nvmlGpmQueryDeviceSupport(device: c_nvmlDevice_t) -> c_nvmlGpmSupport_t: ...
def nvmlGpmSampleAlloc() -> c_nvmlGpmSample_t: ...
def nvmlGpmSampleFree(gpmSample: c_nvmlGpmSample_t) -> None: ...
def nvmlGpmSampleGet(device: c_nvmlDevice_t, gpmSample: c_nvmlGpmSample_t) -> c_nvmlGpmSample_t: ...
def nvmlGpmMigSampleGet(
    device: c_nvmlDevice_t, gpuInstanceId: int, gpmSample: c_nvmlGpmSample_t
) -> c_nvmlGpmSample_t: ...
def nvmlGpmMetricsGet(metricsGet: c_nvmlGpmMetricsGet_t) -> c_nvmlGpmMetricsGet_t: ...
