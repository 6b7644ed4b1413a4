"""Acts on Kubernetes objects as values: which write reclaims a kind, and which one undoes it.

Nothing here reaches a cluster. The way of one act::

    act = reclaim(step, subject, around, order=order)      # Act, or a Refusal with its reason
    ledger row: act.before.text()                          # before anything is written
    gateway.rehearse(act.write); gateway.write(act.write)
    current = gateway.read(before.holder); pods = gateway.list(... labels=before.pod_labels)
    is_effective(before, current, pods)                    # only then are GPUs freed
    restore(before, gateway.read(before.holder), order=order)   # Write, or a Refusal
    is_restored(before, current); tidied(before, current)       # None, or one more Write

After a crash ``before_image(row)`` brings the before-image back, and ``is_taken`` tells whether the
write had happened.
"""

from enforcer.actuators.acts import (
    Act,
    BeforeImage,
    Order,
    Refusal,
    RefusalReason,
    Restoring,
    Surroundings,
    before_image,
)
from enforcer.actuators.managers import managers_of
from enforcer.actuators.reclaiming import reclaim
from enforcer.actuators.restoring import (
    is_effective,
    is_restored,
    is_taken,
    live_pods,
    restore,
    tidied,
)

__all__ = [
    "Act",
    "BeforeImage",
    "Order",
    "Refusal",
    "RefusalReason",
    "Restoring",
    "Surroundings",
    "before_image",
    "is_effective",
    "is_restored",
    "is_taken",
    "live_pods",
    "managers_of",
    "reclaim",
    "restore",
    "tidied",
]
