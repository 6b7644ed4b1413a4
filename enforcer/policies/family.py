"""Parents and children among policies: who must be there, and who bounds whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from enforcer.policies.model import Policy
from enforcer.policies.shapes import Fault
from enforcer.policies.tightening import loosenings


def family_faults(policy: Policy, others: Iterable[Policy]) -> tuple[Fault, ...]:
    """Return what is wrong between a policy and those that hold.

    Args:
        policy: that is to hold.
        others: those that hold; one of the same name is the one that it replaces.
    """
    by_name = {one.name: one for one in others} | {policy.name: policy}
    return (*_with_parent(policy, by_name), *_with_children(policy, by_name))


def children(name: str, others: Iterable[Policy]) -> tuple[Policy, ...]:
    """Return the policies that name this one as parent, ascending by name."""
    found = (one for one in others if one.parent == name and one.name != name)
    return tuple(sorted(found, key=lambda one: one.name))


def _with_parent(policy: Policy, by_name: Mapping[str, Policy]) -> tuple[Fault, ...]:
    if policy.parent is None:
        return ()
    if policy.parent not in by_name:
        return (Fault("parent", f"there is no policy {policy.parent!r} that holds"),)
    if _comes_round(policy, by_name):
        return (Fault("parent", f"{policy.parent!r} has {policy.name!r} above it"),)
    return loosenings(policy, by_name[policy.parent])


def _comes_round(policy: Policy, by_name: Mapping[str, Policy]) -> bool:
    seen, above = {policy.name}, policy.parent
    while above is not None and above in by_name:
        if above in seen:
            return True
        seen.add(above)
        above = by_name[above].parent
    return False


def _with_children(policy: Policy, by_name: Mapping[str, Policy]) -> tuple[Fault, ...]:
    return tuple(
        Fault(f"child {child.name}: {fault.path}", fault.text)
        for child in children(policy.name, by_name.values())
        for fault in loosenings(child, policy)
    )
