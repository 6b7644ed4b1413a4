-- purpose  what collectors observe: nodes, devices, samples, device events, scrapes
-- law      append only; no unique index; a measurement that is missing is null, never 0

create table node (
    observed_at timestamptz not null,
    cluster varchar not null,
    node varchar not null,
    gpu_model varchar,
    gpu_count integer,
    cpu_milli bigint,
    memory_bytes bigint,
    is_schedulable boolean,
    rack varchar,
    nvlink_domain varchar,
    labels_json varchar,
    source varchar not null
);

create table device (
    observed_at timestamptz not null,
    cluster varchar not null,
    node varchar not null,
    device_uuid varchar not null,
    instance_id integer,
    vendor varchar,
    model varchar,
    device_index integer,
    memory_total_bytes bigint,
    mig_profile varchar,
    sm_share_ratio double,
    memory_share_ratio double,
    is_present boolean not null,
    driver_version varchar,
    labels_json varchar,
    source varchar not null
);

create table device_sample (
    sampled_at timestamptz not null,
    cluster varchar not null,
    node varchar not null,
    device_uuid varchar not null,
    instance_id integer,
    source varchar not null,
    busy_ratio double,
    memory_busy_ratio double,
    graphics_active_ratio double,
    sm_active_ratio double,
    sm_occupancy_ratio double,
    tensor_active_ratio double,
    dram_active_ratio double,
    fp64_active_ratio double,
    fp32_active_ratio double,
    fp16_active_ratio double,
    encoder_ratio double,
    decoder_ratio double,
    memory_used_bytes bigint,
    memory_free_bytes bigint,
    memory_reserved_bytes bigint,
    memory_total_bytes bigint,
    power_w double,
    energy_j double,
    temperature_celsius double,
    memory_temperature_celsius double,
    sm_clock_hz bigint,
    memory_clock_hz bigint,
    pcie_transmit_bytes_per_s double,
    pcie_receive_bytes_per_s double,
    pcie_replay_count bigint,
    nvlink_bytes_per_s double,
    namespace varchar,
    pod varchar,
    container varchar,
    absences varchar
);

create table device_event (
    occurred_at timestamptz not null,
    cluster varchar not null,
    node varchar not null,
    device_uuid varchar not null,
    instance_id integer,
    kind varchar not null,
    code integer,
    detail varchar,
    source varchar not null
);

create table scrape (
    scraped_at timestamptz not null,
    cluster varchar not null,
    target varchar not null,
    is_ok boolean not null,
    reason varchar,
    duration_s double not null,
    body_bytes bigint not null,
    sample_count integer not null,
    dropped_line_count integer not null,
    duplicate_count integer not null,
    unknown_metric_count integer not null
);
