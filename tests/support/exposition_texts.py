"""Builders of exposition texts and of the rows they lead to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from collector.normalize import NormalizedScrape, NormalizeState, normalize
from collector.sources.exposition import ExpositionParser

NOON: Final = datetime(2026, 5, 4, 12, tzinfo=UTC)
INTERVAL: Final = timedelta(seconds=15)
TARGET: Final = "http://10.0.0.5:9400/metrics"
GPU: Final = {"gpu": "0", "UUID": "GPU-a", "Hostname": "n1"}
OTHER_GPU: Final = {"gpu": "1", "UUID": "GPU-b", "Hostname": "n1"}


def instance(number: int, *, profile: str = "1g.5gb") -> dict[str, str]:
    """Return the labels of a MIG instance of ``GPU``."""
    return GPU | {"GPU_I_PROFILE": profile, "GPU_I_ID": str(number)}


def pod(name: str, *, namespace: str = "team", container: str = "main") -> dict[str, str]:
    """Return the labels of a holder."""
    return {"pod": name, "namespace": namespace, "container": container}


def line(name: str, value: float | str, labels: dict[str, str] | None = None) -> str:
    """Return one line; labels default to those of ``GPU``."""
    shown = GPU if labels is None else labels
    inside = ",".join(f'{key}="{text}"' for key, text in shown.items())
    return f"{name}{{{inside}}} {value}"


class Exporter:
    """A target that is scraped again and again, every 15 seconds from noon."""

    def __init__(self, target: str = TARGET, *, state: NormalizeState | None = None) -> None:
        """Start with nothing remembered but what discovery knows of the target."""
        self.target = target
        self.state = NormalizeState() if state is None else state
        self.parser = ExpositionParser()
        self.at = NOON - INTERVAL

    def scrape(self, *lines: str, after: timedelta = INTERVAL) -> NormalizedScrape:
        """Return the next scrape of these lines as rows."""
        self.at += after
        exposition = self.parser.parse("\n".join(lines) + "\n", target=self.target)
        return normalize(
            exposition, target=self.target, cluster="c1", scraped_at=self.at, state=self.state
        )


def scrape_once(*lines: str, target: str = TARGET) -> NormalizedScrape:
    """Return the first scrape of a fresh target."""
    return Exporter(target).scrape(*lines)


def cells(scrape: NormalizedScrape, *columns: str) -> list[tuple[Any, ...]]:
    """Return these columns of the sample rows."""
    return [tuple(row[name] for name in columns) for row in scrape.samples.to_pylist()]


def events(scrape: NormalizedScrape) -> list[tuple[str, int | None, str]]:
    """Return kind, code and device of the scrape's events."""
    return [(row["kind"], row["code"], row["device_uuid"]) for row in scrape.events.to_pylist()]
