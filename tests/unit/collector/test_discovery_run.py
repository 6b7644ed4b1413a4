"""All places that targets come from, as one set."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from collector.discovery import ScrapeTarget
from collector.discovery_files import FileDiscovery
from collector.discovery_http import HttpDiscovery
from collector.discovery_labels import SourceState
from collector.discovery_run import TargetDiscovery, TargetSources
from tests.support.exporter_server import Answer, exporter_server


class NamedExporters:
    """Exporters that a test names."""

    def __init__(self, *targets: ScrapeTarget) -> None:
        """Begin with these."""
        self.targets = targets

    def look(self) -> tuple[ScrapeTarget, ...]:
        return self.targets

    def states(self) -> tuple[SourceState, ...]:
        return (SourceState(source="named", target_count=len(self.targets), error=None),)


def target(name: str, node: str | None = None) -> ScrapeTarget:
    return ScrapeTarget(url=f"http://{name}:1/metrics", node=node)


def test_all_sources_add_up(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"targets": ["file:1", "both:1"]}]))
    answer = Answer(body=json.dumps([{"targets": ["http:1"]}]).encode())
    with exporter_server({"/sd": answer}) as server:
        sources = TargetSources(
            static=[target("static").url],
            files=FileDiscovery([str(path)]),
            http=HttpDiscovery([server.url("/sd")], refresh_s=60),
            cluster=NamedExporters(target("both", node="n1")),
        )
        found = TargetDiscovery(sources)
        assert asyncio.run(found.look()) == (
            target("both", node="n1"),
            target("file"),
            target("http"),
            target("static"),
        )
    assert [one.source for one in found.states()] == [str(path), server.url("/sd"), "named"]


def test_no_source_is_an_empty_set() -> None:
    found = TargetDiscovery(TargetSources())
    assert asyncio.run(found.look()) == ()
    assert found.states() == ()


def test_set_is_told_at_the_start_and_when_it_changes() -> None:
    named = NamedExporters()
    found = TargetDiscovery(TargetSources(cluster=named), look_s=0.01)
    told: list[Sequence[ScrapeTarget]] = []

    async def follow() -> None:
        stop = asyncio.Event()

        def take(targets: Sequence[ScrapeTarget]) -> None:
            told.append(targets)
            if len(told) == 1:
                asyncio.get_running_loop().call_later(0.05, name_one)
            else:
                stop.set()

        def name_one() -> None:
            named.targets = (target("a"),)

        await asyncio.wait_for(found.run(stop, take), timeout=5)

    asyncio.run(follow())
    assert told == [(), (target("a"),)]


def test_urls_are_asked_at_their_own_interval() -> None:
    with exporter_server({"/sd": Answer(body=b"[]")}) as server:
        http = HttpDiscovery([server.url("/sd")], refresh_s=3_600)
        found = TargetDiscovery(TargetSources(http=http))

        async def look_twice() -> None:
            await found.look()
            await found.look()

        asyncio.run(look_twice())
        assert server.requests["/sd"] == 1


def test_trouble_is_told_once_and_again_when_it_is_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t.json"
    found = TargetDiscovery(TargetSources(files=FileDiscovery([str(path)])))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            asyncio.run(found.look())
        path.write_text("oops")
        for _ in range(3):
            asyncio.run(found.look())
    told = [one.getMessage() for one in caplog.records]
    assert len(told) == 2
    assert f"no file matches {path}" in told[0]
    assert "is no JSON" in told[1]
