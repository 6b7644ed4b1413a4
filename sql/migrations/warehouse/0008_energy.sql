-- purpose  the energy that boards used, by day and by hour, made from the counters that were read
-- law      append only; a build of a UTC day counts once its row in energy_build is there, the
--          newest one; energy_hour holds what lies between two readings of one day, and what lies
--          between the last reading of a day and the next reading is told by energy_day

create table energy_day (
    build_id varchar not null,
    day_at timestamptz not null,
    cluster varchar not null,
    node varchar not null,
    device_uuid varchar not null,
    first_at timestamptz not null,
    first_j double not null,
    last_at timestamptz not null,
    last_j double not null
);

create table energy_hour (
    build_id varchar not null,
    hour_at timestamptz not null,
    cluster varchar not null,
    used_j bigint not null,
    known_s double not null,
    told_s double not null
);

create table energy_build (
    built_at timestamptz not null,
    build_id varchar not null,
    starts_at timestamptz not null,
    code_version varchar not null
);
