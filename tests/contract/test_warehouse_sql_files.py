"""Every shipped .sql file runs on an empty warehouse and says what it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from analytics.inputs import queries
from sql.assets import sql_files
from sql.catalogue import named_queries
from sql.quality import checks, purpose_of, violations
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.ports import Parameter
from tests.support.warehouse_rows import NOON, samples

UNITS = (
    "_ratio", "_bytes", "_w", "_j", "_wh", "_s", "_hz", "_celsius", "_count", "_bits", "_gpu_hours",
    "_milli", "_per_s", "_number",
)  # fmt: skip
IDENTITIES = {
    "device_key",
    "instance_id",
    "device_index",
    "replica",
    "attempt",
    "code",
    "priority",
    "tier",
}
PARAMETERS: dict[str, Parameter] = {
    "from_at": NOON,
    "until_at": NOON + timedelta(days=1),
    "cluster": "c",
    "source": "s",
    "batch_id": "b",
    "grain": "hour",
    "columns": "model,stuck_s",
    "cell_s": 60,
    "tenant_id": "t",
    "workload_uid": "w",
    "pieces": "/".join(at.isoformat() for at in (NOON, NOON, NOON, NOON)),
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedWarehouse]:
    with closing(open_embedded(tmp_path_factory.mktemp("empty"))) as opened:
        yield opened


def without_unit(schema: pa.Schema) -> list[str]:
    numbers = [
        field.name
        for field in schema
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    ]
    return [name for name in numbers if not name.endswith(UNITS) and name not in IDENTITIES]


@pytest.mark.parametrize("name", named_queries())
def test_a_named_query_runs_on_an_empty_warehouse(warehouse: EmbeddedWarehouse, name: str) -> None:
    query = named_queries()[name]
    rows = warehouse.query(name, {each: PARAMETERS[each] for each in query.parameters})
    assert query.purpose
    assert query.grain
    assert without_unit(rows.schema) == []
    assert "order by" in query.text


@pytest.mark.parametrize("name", queries())
def test_an_input_of_reports_can_be_narrowed_to_a_cluster(
    warehouse: EmbeddedWarehouse, name: str
) -> None:
    query = named_queries()[name]
    assert set(query.parameters) <= {"from_at", "until_at"}
    columns = warehouse.query(name, {each: PARAMETERS[each] for each in query.parameters}).schema
    assert {"cluster", "device_key"} & set(columns.names)


@pytest.mark.parametrize("view", [file.name for file in sql_files("views")])
def test_a_view_runs_on_an_empty_warehouse(warehouse: EmbeddedWarehouse, view: str) -> None:
    rows = warehouse.sql(f"from {view}")
    assert rows.num_rows == 0
    assert without_unit(rows.schema) == []


@pytest.mark.parametrize("table", ["device_sample", "node", "device", "allocation", "workload"])
def test_a_table_names_its_units(warehouse: EmbeddedWarehouse, table: str) -> None:
    assert without_unit(warehouse.shapes[table].schema) == []


def test_the_extent_of_nothing_is_unknown(warehouse: EmbeddedWarehouse) -> None:
    assert warehouse.query("data_extent").to_pylist() == [{"first_at": None, "last_at": None}]


def test_an_empty_warehouse_violates_nothing(warehouse: EmbeddedWarehouse) -> None:
    found = violations(warehouse)
    assert [violation.name for violation in found] == [check.name for check in checks()]
    assert [violation.row_count for violation in found] == [0] * len(found)
    assert all(purpose_of(check) for check in checks())


def device(at: datetime) -> pa.Table:
    return pa.table(
        {
            "observed_at": [at],
            "cluster": ["c"],
            "node": ["n"],
            "device_uuid": ["GPU-0"],
            "is_present": [True],
            "source": ["test"],
        }
    )


ZERO_TO_ONE = [0.0, 1.0, None]


@pytest.mark.parametrize(
    ("check", "rows", "violation_count"),
    [
        pytest.param("ratio_in_range", samples(busy_ratio=ZERO_TO_ONE), 0, id="0, 1, null"),
        pytest.param("ratio_in_range", samples(busy_ratio=[-0.01, 1.01, 0.5]), 2, id="outside"),
        pytest.param("sample_key_unique", samples(), 0, id="distinct"),
        pytest.param(
            "sample_key_unique", pa.concat_tables([samples(), samples(1)]), 1, id="one twice"
        ),
        pytest.param(
            "energy_not_decreasing",
            samples(device_uuid=["GPU-0"] * 3, energy_j=[0.0, 0.0, 5.0]),
            0,
            id="growing",
        ),
        pytest.param(
            "energy_not_decreasing",
            samples(device_uuid=["GPU-0"] * 3, energy_j=[9.0, 8.0, None]),
            1,
            id="shrinking",
        ),
        pytest.param(
            "energy_not_decreasing",
            samples(device_uuid=["GPU-0"] * 3, energy_j=[9.0, 0.0, 1.0]),
            0,
            id="restart",
        ),
        pytest.param("sample_has_device", samples(1), 0, id="known device"),
        pytest.param("sample_has_device", samples(3), 2, id="two unknown devices"),
        pytest.param(
            "memory_used_within_total",
            samples(memory_used_bytes=[0, 8, 9], memory_total_bytes=[8, 8, 8]),
            1,
            id="one over",
        ),
        pytest.param(
            "sample_not_after_storing", samples(at=NOON.replace(year=2999)), 3, id="future"
        ),
    ],
)
def test_a_check_finds_what_it_is_for(
    tmp_path: Path, check: str, rows: pa.Table, violation_count: int
) -> None:
    with closing(open_embedded(tmp_path)) as warehouse:
        warehouse.append("device", device(NOON), batch_id="device")
        warehouse.append("device_sample", rows, batch_id="rows")
        found = {violation.name: violation.row_count for violation in violations(warehouse)}
    assert found[check] == violation_count
