-- purpose  small mutable state: prices, policies, approvals, exemptions, the action ledger, reports
-- law      instants are ISO 8601 texts in UTC; money is an integer in millionths of the currency;
--          nothing is overwritten: a change is a new row

create table price (
    price_id integer primary key,
    gpu_model text not null,
    tenant_id text,
    amount_micros_per_gpu_hour integer not null check (amount_micros_per_gpu_hour >= 0),
    currency text not null check (length(currency) = 3 and currency = upper(currency)),
    valid_from_at text not null,
    valid_until_at text check (valid_until_at is null or valid_until_at > valid_from_at),
    source text not null,
    approver text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table policy_version (
    policy_version_id integer primary key,
    policy text not null,
    version_number integer not null check (version_number > 0),
    body_json text not null check (json_valid(body_json)),
    author text not null,
    note text,
    valid_from_at text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    unique (policy, version_number)
);

create table approval (
    approval_id integer primary key,
    subject_kind text not null,
    subject_uid text not null,
    verdict text not null check (verdict in ('requested', 'granted', 'refused', 'withdrawn')),
    requester text not null,
    approver text,
    reason text,
    expires_at text,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    check (verdict = 'requested' or approver is not null)
);

create table exemption (
    exemption_id integer primary key,
    scope_kind text not null check (scope_kind in ('workload', 'tenant', 'namespace', 'device')),
    scope_key text not null,
    policy text not null,
    reason text not null,
    approver text not null,
    valid_from_at text not null,
    valid_until_at text not null check (valid_until_at > valid_from_at),
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table action (
    action_id integer primary key,
    plan_id text not null,
    step_number integer not null check (step_number >= 0),
    kind text not null,
    subject_kind text not null,
    subject_uid text not null,
    actor text not null,
    is_dry_run integer not null check (is_dry_run in (0, 1)),
    reason_codes text not null,
    evidence_json text not null check (json_valid(evidence_json)),
    before_image_json text check (before_image_json is null or json_valid(before_image_json)),
    outcome text not null
    check (outcome in ('planned', 'done', 'failed', 'skipped', 'undone')),
    detail text,
    undoes_action_id integer references action (action_id),
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    unique (plan_id, step_number, outcome)
);

create table report_definition (
    report_id integer primary key,
    name text not null unique,
    report text not null,
    parameters_json text not null default '{}' check (json_valid(parameters_json)),
    schedule text,
    time_zone text not null default 'UTC',
    recipients_json text not null default '[]' check (json_valid(recipients_json)),
    is_enabled integer not null default 1 check (is_enabled in (0, 1)),
    author text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table report_run (
    report_run_id integer primary key,
    report_id integer not null references report_definition (report_id),
    scheduled_for_at text not null,
    started_at text,
    finished_at text,
    outcome text not null check (outcome in ('started', 'sent', 'failed', 'skipped')),
    detail text,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    unique (report_id, scheduled_for_at)
);

create index price_by_model on price (gpu_model, valid_from_at);
create index approval_by_subject on approval (subject_kind, subject_uid, approval_id);
create index action_by_subject on action (subject_kind, subject_uid, action_id);
