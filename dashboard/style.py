"""The look of every screen: mark and style sheet, both inside the page."""

from __future__ import annotations

from typing import Final

LOGO: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 150 32" width="150" height="32">
<rect x="2" y="4" width="24" height="24" rx="5" fill="#1f4e79"/>
<rect x="7" y="17" width="4" height="6" fill="#8fbf9f"/><rect x="12" y="13" width="4" height="10"
 fill="#e0a33a"/><rect x="17" y="9" width="4" height="14" fill="#ffffff"/>
<text x="34" y="23" font-family="sans-serif" font-size="19" font-weight="700"
 fill="#1a2330">Steward</text></svg>"""

MARK: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="32" height="32">
<rect x="2" y="2" width="28" height="28" rx="6" fill="#1f4e79"/>
<rect x="8" y="17" width="4" height="7" fill="#8fbf9f"/><rect x="14" y="12" width="4" height="12"
 fill="#e0a33a"/><rect x="20" y="8" width="4" height="16" fill="#ffffff"/></svg>"""
"""The tab's icon: named icons would be fetched from outside."""

STYLE: Final = """\
<style>
.stMainBlockContainer { padding: 4.1rem 1.6rem 1.5rem; max-width: 1320px; }
.stMainBlockContainer h3 { font-size: 1.02rem; padding: 0.3rem 0 0.45rem; }
[data-testid="stMetric"] { background: #f7f9fb; padding: 0; }
[data-testid="stMetric"] > div { padding: 0.5rem 0.7rem; }
[data-testid="stMetricValue"] { font-size: 1.45rem; font-variant-numeric: tabular-nums; }
[data-testid="stMetricDelta"] { font-size: 0.74rem; }
[data-testid="stCaptionContainer"] p { font-size: 0.8rem; }
.st-key-cards { gap: 0.7rem; }
.st-key-cards > div { min-width: 150px; flex: 1 1 150px; }
.st-key-findings p, .st-key-findings li { font-size: 0.9rem; line-height: 1.4; }
@media (max-width: 640px) { .stMainBlockContainer { padding: 4rem 0.8rem 1rem; } }
@media print { header, [data-testid="stToolbar"] { display: none; } }
</style>"""
