"""The enforcer's own metrics for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram, start_http_server
from prometheus_client import Counter as Counted

from enforcer.apply import Applied
from enforcer.decisions import Decision, Plan, Verdict
from enforcer.entries import Outcome
from enforcer.planning.reasons import Breaker
from enforcer.settling import Settled
from steward.errors import PortInUseError
from steward.units import GPU_MILLI

ROUND_BUCKETS_S: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


class EnforcerMetrics:
    """One registry per process."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.registry: Final = CollectorRegistry()
        own = self.registry
        self._rounds = Counted(
            "steward_enforce_rounds", "Rounds by how they ended", ["outcome"], registry=own
        )
        self._seconds = Histogram(
            "steward_enforce_round_duration_seconds",
            "Length of a round",
            buckets=ROUND_BUCKETS_S,
            registry=own,
        )
        self._verdicts = Gauge(
            "steward_enforce_workloads", "Workloads by verdict", ["verdict"], registry=own
        )
        self._actions = Counted(
            "steward_enforce_actions", "Planned actions", ["step", "result"], registry=own
        )
        self._ended = Counted(
            "steward_enforce_ended_actions",
            "Acts by step and how they ended",
            ["step", "outcome"],
            registry=own,
        )
        self._freed = Counted(
            "steward_enforce_freed_gpus", "GPUs seen to be free after an act", registry=own
        )
        self._open = Gauge("steward_enforce_open_actions", "Acts not yet ended", registry=own)
        self._deferred = Gauge(
            "steward_enforce_deferred", "Due steps left out, by reason", ["reason"], registry=own
        )
        self._breakers = Gauge(
            "steward_enforce_breaker_open", "1 while it is open", ["breaker"], registry=own
        )
        self._calls = Counted(
            "steward_enforce_api_calls", "Kubernetes calls", ["call", "outcome"], registry=own
        )
        self._leading = Gauge("steward_enforce_leading", "1 while it leads", registry=own)

    def serve(self, host: str, port: int) -> int:
        """Serve them from now on, in a thread; return the port.

        Raises:
            PortInUseError: the address is taken.
        """
        try:
            server, _thread = start_http_server(port, addr=host, registry=self.registry)
        except OSError as error:
            raise PortInUseError(
                f"the metrics cannot be served on {host}:{port}: {error.strerror}",
                hint="choose another enforce.metrics_port, or 0 for a free one",
            ) from error
        return server.server_port

    def count_call(self, name: str, has_failed: bool) -> None:  # noqa: FBT001  # a callback's two words
        """Count a call of the cluster."""
        self._calls.labels(name, "failed" if has_failed else "answered").inc()

    def count_round(self, outcome: str, seconds: float) -> None:
        """Count a round."""
        self._rounds.labels(outcome).inc()
        self._seconds.observe(seconds)

    def show_leading(self, *, is_leading: bool) -> None:
        """Show whether this replica leads."""
        self._leading.set(is_leading)

    def show_plan(self, decisions: Iterable[Decision], plan: Plan) -> None:
        """Show what was decided and planned."""
        verdicts = Counter(one.judgement.verdict for one in decisions)
        for verdict in Verdict:
            self._verdicts.labels(verdict.value).set(verdicts[verdict])
        self._deferred.clear()
        reasons = Counter(reason for one in plan.deferred for reason in one.reasons)
        for reason, count in sorted(reasons.items()):
            self._deferred.labels(reason).set(count)
        for breaker in Breaker:
            self._breakers.labels(breaker.value).set(breaker in plan.breakers)

    def count_applied(self, applied: Iterable[Applied]) -> None:
        """Count what became of planned actions."""
        for one in applied:
            self._actions.labels(one.action.step.value, one.result.value).inc()

    def count_settled(self, settled: Iterable[Settled]) -> None:
        """Count acts that ended, and show those that did not."""
        open_count = 0
        for one in settled:
            if one.outcome is Outcome.PLANNED:
                open_count += 1
                continue
            self._ended.labels(one.entry.step, one.outcome.value).inc()
            if one.outcome is Outcome.DONE and not one.entry.is_undo:
                self._freed.inc(one.entry.gpu_milli / GPU_MILLI)
        self._open.set(open_count)
