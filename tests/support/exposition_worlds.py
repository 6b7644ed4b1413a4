"""Random exporters of every dialect, whose texts change from scrape to scrape as real ones do."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from collector.normalize.dictionary import METRICS
from collector.normalize.metric import Metric, Role
from collector.normalize.told import PROCESS_ROLES
from tests.support.exposition_texts import line

ODD_NUMBERS: Final = (
    *("NaN", "+Inf", "-Inf", "-1", "0", "1.02", "1.9", "99.5", "104", "137", "1e30", "-0", "+5"),
    *("2147483632", "2147483634", "9223372036854775794", "18446744073709551615", "140737488355328"),
    *(
        "1_0",
        "0x10",
        "1e400",
        "abc",
        "",
        " 5",
        "5 ",
        "5\r",
        "5 1767225600000",
        "5 x",
        "٣",
        "1e-400",
    ),
    *("9007199254740993", '5 # {a="b"} 5', "1e", ".", "+", "infinity", "5\x0b", "4294967295"),
)
"""What a line may end in beside an ordinary number."""
PODS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"pod": "", "namespace": "", "container": ""},
    {"pod": "p", "namespace": "team", "container": "main"},
    {"exported_pod": "q", "exported_namespace": "team", "exported_container": "main"},
)
INSTANCES: Final = (None, "7", "9")
UNKNOWN_NAMES: Final = ("vendor_unknown", "go_goroutines", "DCGM_FI_DEV_UNHEARD_OF")


@dataclass(slots=True)
class World:
    """One exporter's text, line by line, and how it changes.

    Args:
        dice: decides everything.
        names: of the metrics it shows.
        device_count: 1 or 2.
    """

    dice: random.Random
    names: list[str]
    device_count: int
    is_calm: bool
    """Each device has one label set, and what repeats a number agrees with it."""
    lines: list[list[str]] = field(default_factory=list)
    """Each line's beginning and number; comments have no number."""
    metrics: list[Metric | None] = field(default_factory=list)
    calm_seed: float = 0.0

    def __post_init__(self) -> None:
        """Write the first text."""
        self.calm_seed = self.dice.random()
        for name in self.names:
            self._add([f"# TYPE {name} gauge", ""], None)
            for labels in self._label_sets(METRICS.get(name)):
                shown, extra = _printed(name)
                start = line(shown, "", labels | extra)
                self._add([start, ""], METRICS.get(name))
        self._fill(1.0)

    def text(self) -> bytes:
        """Return the text as it is now."""
        return ("\n".join(start + number for start, number in self.lines) + "\n").encode()

    def change_numbers(self) -> None:
        """Give ordinary numbers to some lines; mostly to all."""
        self._fill(self.dice.choice((0.1, 1.0, 1.0)))

    def change_something(self) -> None:
        """Change one thing that is no ordinary number."""
        changes = (self._odd, self._drop, self._swap, self._repeat, self._rename, self._comment)
        self.dice.choice(changes)()

    def _fill(self, share: float) -> None:
        told: dict[tuple[str, str], str] = {}
        for place in self._numbered():
            if self.dice.random() >= share:
                continue
            start, metric = self.lines[place][0], self.metrics[place]
            if self.is_calm and not _is_restless(metric) and self.lines[place][1]:
                continue
            device = (start.partition("{")[0], "GPU-b" if "GPU-b" in start else "GPU-a")
            number = self._number(metric)
            self.lines[place][1] = told.setdefault(device, number) if self.is_calm else number

    def _add(self, content: list[str], metric: Metric | None) -> None:
        self.lines.append(content)
        self.metrics.append(metric)

    def _numbered(self) -> list[int]:
        return [n for n, (start, _) in enumerate(self.lines) if not start.startswith("#")]

    def _number(self, metric: Metric | None) -> str:
        if metric is None:
            return self.dice.choice(("1", "17", "3.25", "1e6"))
        if metric.role in (Role.LAST_EVENT, Role.PRESENCE, Role.ABSENCE):
            return self.dice.choice(("0", "1", "1", "31"))
        unit = metric.unit
        high = unit.highest if unit.clamp_at is None else unit.clamp_at
        drawn = self.dice.uniform(max(unit.lowest, 0), min(high, 1e12))
        return self.dice.choice((f"{drawn:.6f}", f"{drawn:.0f}", "0", f"{high:g}", f"{high / 2:g}"))

    def _odd(self) -> None:
        place = self.dice.choice(self._numbered())
        self.lines[place][1] = self.dice.choice(ODD_NUMBERS)

    def _drop(self) -> None:
        place = self.dice.randrange(len(self.lines))
        if len(self._numbered()) > 1:
            del self.lines[place], self.metrics[place]

    def _swap(self) -> None:
        one, other = (self.dice.randrange(len(self.lines)) for _ in range(2))
        self.lines[one], self.lines[other] = self.lines[other], self.lines[one]
        self.metrics[one], self.metrics[other] = self.metrics[other], self.metrics[one]

    def _repeat(self) -> None:
        place = self.dice.randrange(len(self.lines))
        self._add([*self.lines[place]], self.metrics[place])

    def _rename(self) -> None:
        old, new = self.dice.choice((("GPU-a", "GPU-c"), ('"p"', '"r"'), ('"n1"', '"n2"')))
        for content in self.lines:
            content[0] = content[0].replace(old, new)

    def _comment(self) -> None:
        self._add([self.dice.choice(("# HELP x y", "", "  ", "# EOF", "\t# odd")), ""], None)

    def _label_sets(self, metric: Metric | None) -> list[dict[str, str]]:
        if metric is None:
            return [{"a": str(number)} for number in range(2)]
        found = []
        dice = random.Random(self.calm_seed) if self.is_calm else self.dice  # noqa: S311 - test input
        for number in range(self.device_count):
            instance, pod = dice.choice(INSTANCES), dice.choice(PODS)
            found.append(_labels(metric, number=number, instance=instance, pod=pod))
            if dice.random() < 0.3:
                found.append(_labels(metric, number=number, instance=instance, pod=PODS[2]))
        return [dict(one) for one in {tuple(one.items()): None for one in found}]


def _is_restless(metric: Metric | None) -> bool:
    """Tell whether the number changes all the time, also while nothing happens."""
    restless = {Role.MEASURE, Role.IDENTITY, *PROCESS_ROLES}
    return metric is None or (metric.role in restless and metric.column != "memory_total_bytes")


def _printed(name: str) -> tuple[str, dict[str, str]]:
    """Return the name as it stands in a text, and the label that a split family needs."""
    base, _, rest = name.partition("{")
    label, _, value = rest.rstrip("}").partition("=")
    return base, {label: value} if rest else {}


def _labels(
    metric: Metric, *, number: int, instance: str | None, pod: dict[str, str]
) -> dict[str, str]:
    dialect = metric.dialect
    labels = {dialect.uuid[0]: f"GPU-{'ab'[number]}", dialect.index[0]: str(number)}
    labels |= {"Hostname": "n1", "node": "n1"}
    if instance is not None and dialect.instance:
        labels[dialect.instance[0]] = instance
    if metric.label is not None:
        labels[metric.label] = "31"
    if metric.role is Role.ABSENCE:
        labels |= {"measure": "power_w", "reason": "timeout"}
    return labels | pod
