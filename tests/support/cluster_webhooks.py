"""How the API server reaches an operator's webhooks on loopback, and the certificates for it."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster_client import KubeClient
from tests.support.cluster_programs import ProgramMissingError, require_openssl

SERVICE = re.compile(
    r"service:\n\s+name: webhook-service\n\s+namespace: system\n\s+path: (?P<path>\S+)"
)


@dataclass(frozen=True, slots=True)
class Reached:
    """How the API server reaches an operator's webhooks."""

    port: int
    certificate: Path

    def instead_of_service(self, text: str) -> str:
        """Return webhook definitions with the address where they name a service."""
        return SERVICE.sub(lambda match: self._client_config(match["path"]), text)

    def with_conversion(self, text: str) -> str:
        """Return a kind's definition with the conversion of its older versions."""
        conversion = (
            "spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n"
            "      conversionReviewVersions: [v1]\n      clientConfig:\n"
            f"        {self._client_config('/convert', indent=8)}\n"
        )
        return text.replace("spec:\n", conversion, 1)

    def _client_config(self, path: str, *, indent: int = 4) -> str:
        bundle = base64.b64encode(self.certificate.read_bytes()).decode("ascii")
        address = f"https://127.0.0.1:{self.port}{path}"
        return f"url: {address}\n{' ' * indent}caBundle: {bundle}"


def make_certificate(folder: Path) -> None:
    """Make a key and a certificate for 127.0.0.1 that is its own authority."""
    command = [
        require_openssl(), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        "-subj", "/CN=operator", "-addext", "subjectAltName=IP:127.0.0.1",
        "-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt"),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def certificates_in(folder: Path) -> Iterator[None]:
    """Have a certificate where a program insists on one; leave nothing that was not there.

    Raises:
        ProgramMissingError: it is not there and this account may not put it there.
    """
    if (folder / "tls.crt").exists():
        yield
        return
    top = next(p for p in (*reversed(folder.parents[:-2]), folder) if not p.exists())
    try:
        folder.mkdir(parents=True)
    except PermissionError as error:
        raise ProgramMissingError(
            f"{folder} must hold tls.crt and tls.key: run as root or put them there"
        ) from error
    try:
        make_certificate(folder)
        yield
    finally:
        shutil.rmtree(top)


def register_webhooks(
    client: KubeClient, manifests: Path, reached: Reached, *, prefix: str = ""
) -> None:
    """Send admissions to an operator's webhooks, as its own manifests have it.

    Manifests of several operators have the same names; a prefix tells them apart.
    """
    text = reached.instead_of_service(manifests.read_text(encoding="utf-8"))
    for each in text.split("\n---\n"):
        kind = re.findall(r"^kind: (\w+)$", each, re.MULTILINE)[0]
        name = re.findall(r"^  name: (\S+)$", each, re.MULTILINE)[0]
        own = each.replace(f"  name: {name}\n", f"  name: {prefix}{name}\n", 1)
        client.apply_text(f"admissionregistration.k8s.io/v1/{kind}", f"{prefix}{name}", own)
