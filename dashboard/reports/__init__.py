"""Reports on their way to a person: loading one, and rendering it for terminal, file and print.

Renderers know the shape of a report (``analytics.reports.model``) and no particular report.
"""
