"""Which GPU a row speaks of, where several clusters use the same device id.

A device is known by cluster and id. Elsewhere in this package the id alone tells devices apart;
here it is made to: an id that several clusters use becomes ``cluster/id``.
"""

from __future__ import annotations

import polars as pl


def shared_ids(*frames: pl.DataFrame) -> pl.Series:
    """Return the device ids that occur in more than one cluster, ascending.

    Args:
        frames: rows with cluster str and device_uuid str.
    """
    pairs = pl.concat([frame.select("cluster", "device_uuid") for frame in frames]).unique()
    many = pairs.group_by("device_uuid").len().filter(pl.col("len") > 1)
    return many["device_uuid"].sort()


def named_by_cluster(rows: pl.DataFrame, shared: pl.Series) -> pl.DataFrame:
    """Return rows that have a cluster, in order, with shared ids replaced by ``cluster/id``."""
    return rows.with_columns(device_uuid=_named(shared))


def named_by_node(rows: pl.DataFrame, shared: pl.Series, *, devices: pl.DataFrame) -> pl.DataFrame:
    """Return rows whose cluster may be unknown, in order, with shared ids replaced.

    Args:
        rows: with node str | null, device_uuid str and, where it is told, cluster str | null.
        shared: the ids to replace.
        devices: rows of ``device_history`` as stored; where the cluster is not told, they say
            which one has the device on the node. Where that is none or several, the bare id stays:
            it fits no device.

    Returns:
        the rows without cluster
    """
    homes = devices.select("node", "device_uuid", home="cluster").unique()
    certain = homes.filter(pl.len().over("node", "device_uuid") == 1)
    known = rows.join(certain, on=["node", "device_uuid"], how="left", maintain_order="left")
    told = pl.coalesce("cluster", "home") if "cluster" in rows.columns else pl.col("home")
    return (
        known.with_columns(cluster=told)
        .with_columns(device_uuid=_named(shared))
        .drop("cluster", "home")
    )


def with_own_keys(devices: pl.DataFrame) -> pl.DataFrame:
    """Return rows of ``device_history`` with device_key null where several devices have the key.

    Readings carry the key alone: those of such a key cannot be told apart and are left out.

    Args:
        devices: device_uuid already told apart.
    """
    is_own = pl.col("device_uuid").n_unique().over("device_key") == 1
    return devices.with_columns(device_key=pl.when(is_own).then("device_key"))


def _named(shared: pl.Series) -> pl.Expr:
    is_certain = pl.col("device_uuid").is_in(shared.implode()) & pl.col("cluster").is_not_null()
    name = pl.concat_str("cluster", pl.lit("/"), "device_uuid")
    return pl.when(is_certain).then(name).otherwise("device_uuid")
