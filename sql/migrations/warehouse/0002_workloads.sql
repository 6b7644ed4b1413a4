-- purpose  who holds and who waits: allocations, workloads and their lifecycle, events, quota
-- law      append only; periods are half-open; an open end is null

create table allocation (
    observed_at timestamptz not null,
    cluster varchar not null,
    node varchar not null,
    device_uuid varchar not null,
    instance_id integer,
    replica integer,
    started_at timestamptz not null,
    ended_at timestamptz,
    gpu_share_ratio double not null,
    sharing_mode varchar not null,
    namespace varchar,
    pod varchar,
    pod_uid varchar,
    container varchar,
    workload_uid varchar,
    tenant_id varchar,
    attribution_source varchar not null
);

create table workload (
    observed_at timestamptz not null,
    cluster varchar not null,
    workload_uid varchar not null,
    kind varchar not null,
    namespace varchar,
    name varchar not null,
    tenant_id varchar,
    owner varchar,
    workload_class varchar,
    queue varchar,
    priority_class varchar,
    priority integer,
    cpu_milli bigint,
    memory_bytes bigint,
    gpu_count integer,
    gpu_milli integer,
    gpu_models varchar,
    qos_class varchar,
    source varchar not null
);

create table workload_transition (
    occurred_at timestamptz not null,
    observed_at timestamptz not null,
    cluster varchar not null,
    workload_uid varchar not null,
    pod_uid varchar,
    attempt integer not null,
    transition varchar not null,
    reason varchar,
    message varchar,
    source varchar not null
);

create table kubernetes_event (
    occurred_at timestamptz not null,
    cluster varchar not null,
    event_uid varchar not null,
    namespace varchar,
    kind varchar not null,
    name varchar not null,
    object_uid varchar,
    type varchar,
    reason varchar,
    message varchar,
    occurrence_count integer
);

create table quota_snapshot (
    observed_at timestamptz not null,
    cluster varchar not null,
    queue varchar not null,
    tenant_id varchar,
    cohort varchar,
    gpu_model varchar,
    guaranteed_gpu_count double,
    limit_gpu_count double,
    used_gpu_count double,
    borrowed_gpu_count double,
    pending_workload_count integer,
    source varchar not null
);
