-- purpose  what enforcing needs: who was told, what was asked for, what was done and by whom
-- law      as before: instants are ISO 8601 texts in UTC, nothing is overwritten; an action is
--          written here before it is done; each audit row holds the hash of the one before it

alter table action add column cluster text;
alter table action add column api_version text;
alter table action add column object_kind text;
alter table action add column namespace text;
alter table action add column name text;
alter table action add column object_uid text;
alter table action add column tenant_id text;
alter table action add column gpu_milli integer;
alter table action add column policy text;
alter table action add column policy_version integer;
alter table action add column rule text;
alter table action add column evidence_sha256 text;
alter table action add column fence text;
alter table action add column undo_at text;

create table notice (
    notice_id integer primary key,
    cluster text not null,
    workload_uid text not null,
    policy text not null,
    policy_version integer not null,
    rule text not null,
    channel text not null,
    is_delivered integer not null check (is_delivered in (0, 1)),
    detail text,
    idle_since_at text,
    act_at text not null,
    told_at text not null,
    idempotency_key text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table enforcement_switch (
    enforcement_switch_id integer primary key,
    cluster text,
    is_stopped integer not null check (is_stopped in (0, 1)),
    actor text not null,
    reason text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table request (
    request_id integer primary key,
    cluster text not null,
    kind text not null check (kind in ('quota', 'priority', 'exemption', 'keep_alive')),
    tenant_id text,
    scope_kind text not null,
    scope_key text not null,
    body_json text not null check (json_valid(body_json)),
    requester text not null,
    reason text not null,
    valid_from_at text not null,
    valid_until_at text not null check (valid_until_at > valid_from_at),
    idempotency_key text not null unique,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table request_event (
    request_event_id integer primary key,
    request_id integer not null references request (request_id),
    event text not null
    check (event in ('applied', 'failed', 'expired', 'taken_back', 'take_back_failed')),
    before_image_json text check (before_image_json is null or json_valid(before_image_json)),
    detail text,
    actor text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table verdict_feedback (
    verdict_feedback_id integer primary key,
    cluster text not null,
    workload_uid text not null,
    judged_at text not null,
    word text not null check (word in ('wrong', 'done', 'keep')),
    actor text not null,
    detail text,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table backtest_run (
    backtest_run_id integer primary key,
    policy text not null,
    policy_version integer not null,
    from_at text not null,
    until_at text not null check (until_at > from_at),
    action_count integer not null check (action_count >= 0),
    regret_24h_micros integer check (regret_24h_micros between 0 and 1000000),
    coverage_micros integer check (coverage_micros between 0 and 1000000),
    result_json text not null check (json_valid(result_json)),
    author text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table audit (
    audit_id integer primary key,
    occurred_at text not null,
    actor text not null,
    action text not null,
    subject_kind text not null,
    subject_uid text not null,
    body_json text not null check (json_valid(body_json)),
    previous_sha256 text not null check (length(previous_sha256) = 64),
    sha256 text not null unique check (length(sha256) = 64)
);

create index notice_by_workload on notice (cluster, workload_uid, notice_id);
create index request_by_scope on request (scope_kind, scope_key, request_id);
create index request_event_by_request on request_event (request_id, request_event_id);
create unique index audit_by_previous on audit (previous_sha256);
