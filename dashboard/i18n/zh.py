"""Chinese words, by key; the same keys as every other language."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "report.period": "统计区间",
    "report.figure": "指标",
    "report.value": "数值",
    "report.coverage": "数据覆盖率",
    "report.findings": "需要关注",
    "report.no_rows": "该区间内没有数据。",
    "report.more_rows": "还有 {count} 行；用 --table {table} 查看全部",  # noqa: RUF001  # Chinese punctuation
    "report.rows": "数据来源",
    "report.footer": (
        "由 Steward 生成。覆盖率是已知的设备时间或记录所占比例；短横线表示无法测得的数值。"  # noqa: RUF001  # Chinese punctuation
    ),
    "page.overview": "总览",
    "page.measuring": "正在计算\u2026",
    "page.reports": "报告",
    "filter.period": "统计区间",
    "filter.language": "语言",
    "filter.all": "全部数据",
    "filter.24h": "24 小时",
    "filter.7d": "7 天",
    "filter.14d": "14 天",
    "filter.30d": "30 天",
    "overview.data_to": "数据截至",
    "overview.hours": "GPU 时间去向",
    "overview.rows": "查看明细",
    "overview.tenants": "按租户",
    "overview.no_findings": "该区间内没有异常。",
    "overview.waiting_and_idle": "排队与空闲对照",
    "overview.waiting": "排队等待的 GPU",
    "overview.idle": "空闲的 GPU",
    "overview.more": "全部指标与明细",
    "reports.which": "报告",
    "empty.title": "数据仓库中还没有数据。",
    "empty.next": "请先导入数据：模拟集群，或采集器的真实指标。",  # noqa: RUF001  # Chinese punctuation
    "leaf.used": "有效使用",
    "leaf.allocated_idle": "占用但闲置",
    "leaf.unknown_use": "用途未知",
    "leaf.down": "故障",
    "leaf.stranded": "搁浅",
    "leaf.reserved_unused": "预留未用",
    "leaf.free_idle": "空闲",
    "figure.capacity_gpu_hours": "总容量",
    "figure.apparent_ratio": "表观利用率",
    "figure.effective_ratio": "有效利用率",
    "figure.idle_gpu_hours": "占用但闲置",
    "figure.wait_p90_s": "排队 p90",
    "figure.fragmentation_ratio": "碎片率(占空闲)",
    "column.tenant_id": "租户",
    "column.held_gpu_hours": "占用",
    "column.utilization_ratio": "利用率",
    "column.idle_gpu_hours": "闲置",
    "column.coverage_ratio": "覆盖率",
}
