-- purpose  what the Kubernetes, NVML and vendor collectors add: pods, conditions, claims, processes
-- law      append only; no unique index; a measurement that is missing is null, never 0

alter table node add column allocatable_gpu_count integer;
alter table node add column taints_json varchar;

alter table device_sample add column integer_active_ratio double;
alter table device_sample add column power_limit_w double;
alter table device_sample add column fan_ratio double;
alter table device_sample add column clock_event_reason_bits bigint;
alter table device_sample add column power_throttled_s double;
alter table device_sample add column thermal_throttled_s double;
alter table device_sample add column ecc_corrected_count bigint;
alter table device_sample add column ecc_uncorrected_count bigint;
alter table device_sample add column row_remap_corrected_count bigint;
alter table device_sample add column row_remap_uncorrected_count bigint;
alter table device_sample add column row_remap_failed_count bigint;
alter table device_sample add column process_count bigint;

alter table allocation add column claim varchar;
alter table allocation add column resource varchar;
alter table allocation add column ownership_level varchar;
alter table allocation add column queue varchar;
alter table allocation add column workload_class varchar;
alter table allocation add column priority_class varchar;
alter table allocation add column priority integer;
alter table allocation add column conflict varchar;

create table pod (
    observed_at timestamptz not null,
    cluster varchar not null,
    pod_uid varchar not null,
    namespace varchar not null,
    pod varchar not null,
    node varchar,
    workload_uid varchar,
    phase varchar not null,
    reason varchar,
    created_at timestamptz not null,
    scheduled_at timestamptz,
    started_at timestamptz,
    ready_at timestamptz,
    finished_at timestamptz,
    deleted_at timestamptz,
    gpu_count integer,
    gpu_resource varchar,
    restart_count integer,
    scheduler varchar,
    labels_json varchar,
    source varchar not null
);

create table condition_change (
    occurred_at timestamptz not null,
    observed_at timestamptz not null,
    cluster varchar not null,
    kind varchar not null,
    namespace varchar,
    name varchar not null,
    object_uid varchar not null,
    condition varchar not null,
    status varchar not null,
    reason varchar,
    message varchar,
    source varchar not null
);

create table priority_class (
    observed_at timestamptz not null,
    cluster varchar not null,
    priority_class varchar not null,
    priority integer,
    preemption_policy varchar,
    is_default boolean,
    is_present boolean not null,
    source varchar not null
);

create table device_claim (
    observed_at timestamptz not null,
    cluster varchar not null,
    claim_uid varchar not null,
    namespace varchar not null,
    claim varchar not null,
    driver varchar,
    pool varchar,
    device varchar,
    request varchar,
    device_uuid varchar,
    parent_uuid varchar,
    mig_profile varchar,
    is_admin_access boolean,
    pod varchar,
    pod_uid varchar,
    state varchar not null,
    reason varchar,
    source varchar not null
);

create table device_process (
    sampled_at timestamptz not null,
    cluster varchar not null,
    node varchar not null,
    device_uuid varchar not null,
    instance_id integer,
    pid integer not null,
    process varchar,
    pod_uid varchar,
    container_id varchar,
    memory_used_bytes bigint,
    sm_ratio double,
    source varchar not null
);
