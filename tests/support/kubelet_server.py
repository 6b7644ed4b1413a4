"""A real gRPC server on a unix socket that speaks the kubelet's PodResources API.

Its messages are those of protobuf's own runtime, compiled from ``api.proto``: nothing of the reader
under test is used to write them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import Message
from grpc_tools import protoc

import collector.sources.podresources

FOLDER = Path(collector.sources.podresources.__file__).parent
Json = Mapping[str, Any]


@cache
def message_classes() -> Mapping[str, type[Message]]:
    """Return the classes of ``api.proto`` by name."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "descriptors"
        code = protoc.main(["", f"-I{FOLDER}", f"--descriptor_set_out={out}", "api.proto"])
        assert code == 0
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for each in files.file:
        pool.Add(each)
    found = message_factory.GetMessageClassesForFiles(["api.proto"], pool)
    return {name.removeprefix("v1."): each for name, each in found.items()}


def encoded(name: str, content: Json) -> bytes:
    """Return a message of this type as bytes."""
    message = message_classes()[name]()
    json_format.ParseDict(content, message)
    return message.SerializeToString()


def container(
    name: str, *, devices: Mapping[str, Sequence[str]] | None = None, claims: Sequence[Json] = ()
) -> Json:
    """Return a container with devices by resource, and claims."""
    return {
        "name": name,
        "devices": [
            {"resourceName": resource, "deviceIds": list(ids), "topology": {"nodes": [{"ID": 1}]}}
            for resource, ids in (devices or {}).items()
        ],
        "cpuIds": [0, 1, 300],
        "memory": [{"memoryType": "hugepages-1Gi", "size": 2**40}],
        "dynamicResources": list(claims),
    }


def claim(name: str, *devices: str, driver: str = "gpu.nvidia.com") -> Json:
    """Return a claim that holds these devices of this node's pool."""
    return {
        "claimName": name,
        "claimNamespace": "team-a",
        "claimResources": [
            {
                "cdiDevices": [{"name": f"k8s.{driver}/device={device}"}],
                "driverName": driver,
                "poolName": "node-1",
                "deviceName": device,
            }
            for device in devices
        ],
    }


def pod(name: str, *containers: Json, namespace: str = "team-a") -> Json:
    """Return a pod."""
    return {"name": name, "namespace": namespace, "containers": list(containers)}


@dataclass(slots=True)
class Kubelet:
    """What the server answers; may change while it runs."""

    socket: Path
    pods: Sequence[Json] = ()
    allocatable: Mapping[str, Sequence[str]] | None = field(default_factory=dict)
    """None: this kubelet does not know the question."""
    delay_s: float = 0.0
    refusal: str | None = None
    raw: bytes | None = None
    """Bytes to answer instead of a message."""
    questions: list[str] = field(default_factory=list)

    def answer(self, method: str, context: grpc.ServicerContext) -> bytes:
        """Return the message for one question."""
        self.questions.append(method)
        if self.delay_s:
            time.sleep(self.delay_s)
        if self.refusal is not None:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, self.refusal)
        if self.raw is not None:
            return self.raw
        if method == "List":
            return encoded("ListPodResourcesResponse", {"podResources": list(self.pods)})
        if self.allocatable is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method")
        devices = [
            {"resourceName": resource, "deviceIds": list(ids)}
            for resource, ids in (self.allocatable or {}).items()
        ]
        return encoded("AllocatableResourcesResponse", {"devices": devices, "cpuIds": [0]})


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc brings no types
    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        service, _, method = details.method.rpartition("/")
        if service != "/v1.PodResourcesLister":
            return None
        return grpc.unary_unary_rpc_method_handler(
            lambda _request, context: self._kubelet.answer(method, context)
        )


@contextmanager
def running_kubelet(socket: Path) -> Iterator[Kubelet]:
    """Serve on this socket for the length of the block."""
    kubelet = Kubelet(socket)
    threads = futures.ThreadPoolExecutor(max_workers=2)
    server = grpc.server(threads)
    server.add_generic_rpc_handlers((_Handler(kubelet),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        yield kubelet
    finally:
        server.stop(grace=None).wait()
        threads.shutdown()
