-- purpose  what was judged of each workload, with the evidence it was judged from
-- law      append only; UNKNOWN never acts

create table verdict (
    judged_at timestamptz not null,
    cluster varchar not null,
    workload_uid varchar not null,
    verdict varchar not null,
    reason_codes varchar not null,
    window_s double not null,
    coverage_ratio double,
    evidence_json varchar not null,
    policy_version varchar
);
