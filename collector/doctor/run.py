"""What ``steward collect doctor`` does: look, print, and end with the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from collector.doctor.examine import examine
from collector.doctor.report import print_diagnosis
from steward.command import Context


def run_doctor(urls: Sequence[str], *, context: Context, form: str, is_patient: bool) -> int:
    """Examine everything, print what was found and return the exit code.

    Args:
        urls: static targets.
        context: settings and clock.
        form: ``table`` or ``json``.
        is_patient: ask targets a second time, one interval later.

    Raises:
        SettingsError: rules of ownership or selections of exporters are wrong.
    """
    diagnosis = asyncio.run(
        examine(context.settings, urls=urls, clock=context.clock, is_patient=is_patient)
    )
    print_diagnosis(diagnosis, form=form)
    return diagnosis.exit_code
