"""What Kubernetes objects mean: from each change of an object to the rows it is worth. Pure.

``Lifecycle`` is the door: changes of one cluster's objects in, rows and durable memory out.
"""

from collector.lifecycle.lifecycle import Lifecycle
from collector.lifecycle.output import Output, PodEnd
from collector.lifecycle.ownership_rules import OwnershipRules, ownership_rules
from collector.lifecycle.view import MetadataSource

__all__ = [
    "Lifecycle",
    "MetadataSource",
    "Output",
    "OwnershipRules",
    "PodEnd",
    "ownership_rules",
]
