-- purpose  what money needs: the kind of each price, exchange rates, energy, shared costs, budgets,
--          closed periods; and what judging value needs: target workloads, capability, value
-- law      as before: instants are ISO 8601 texts in UTC, money is in millionths of the currency,
--          nothing is overwritten: of rows for one key and instant the one recorded last counts

alter table price add column purchase_type text not null default 'on_demand'
check (purchase_type in ('on_demand', 'reserved', 'spot', 'tco'));
alter table price add column cluster text;
alter table price add column sku text;
alter table price add column includes_energy integer not null default 1
check (includes_energy in (0, 1));
alter table price add column list_amount_micros_per_gpu_hour integer;
alter table price add column calculator_json text
check (calculator_json is null or json_valid(calculator_json));
alter table price add column is_withdrawn integer not null default 0
check (is_withdrawn in (0, 1));

create table exchange_rate (
    exchange_rate_id integer primary key,
    from_currency text not null
    check (length(from_currency) = 3 and from_currency = upper(from_currency)),
    to_currency text not null check (length(to_currency) = 3 and to_currency = upper(to_currency)),
    rate_micros integer not null check (rate_micros > 0),
    valid_from_at text not null,
    valid_until_at text check (valid_until_at is null or valid_until_at > valid_from_at),
    source text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table energy_tariff (
    energy_tariff_id integer primary key,
    cluster text,
    currency text not null check (length(currency) = 3 and currency = upper(currency)),
    amount_micros_per_kwh integer not null check (amount_micros_per_kwh >= 0),
    pue_micros integer not null check (pue_micros >= 1000000),
    host_factor_micros integer not null default 1000000 check (host_factor_micros >= 1000000),
    kgco2e_micros_per_kwh integer check (kgco2e_micros_per_kwh >= 0),
    time_zone text not null default 'UTC',
    from_hour integer not null default 0 check (from_hour between 0 and 23),
    until_hour integer not null default 24 check (until_hour between 1 and 24),
    valid_from_at text not null,
    valid_until_at text check (valid_until_at is null or valid_until_at > valid_from_at),
    source text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    check (until_hour > from_hour)
);

create table shared_cost (
    shared_cost_id integer primary key,
    name text not null,
    cluster text,
    currency text not null check (length(currency) = 3 and currency = upper(currency)),
    amount_micros integer not null,
    split_rule text not null
    check (split_rule in ('proportional', 'even_all', 'even_active', 'custom')),
    weights_json text check (weights_json is null or json_valid(weights_json)),
    valid_from_at text not null,
    valid_until_at text not null check (valid_until_at > valid_from_at),
    approver text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table budget (
    budget_id integer primary key,
    tenant_id text,
    currency text not null check (length(currency) = 3 and currency = upper(currency)),
    amount_micros integer not null check (amount_micros >= 0),
    time_zone text not null default 'UTC',
    valid_from_at text not null,
    valid_until_at text not null check (valid_until_at > valid_from_at),
    thresholds_json text not null default '[0.5, 0.8, 1.0]' check (json_valid(thresholds_json)),
    approver text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table closed_period (
    closed_period_id integer primary key,
    statement_id text not null,
    from_at text not null,
    until_at text not null check (until_at > from_at),
    time_zone text not null,
    currency text not null check (length(currency) = 3 and currency = upper(currency)),
    kind text not null check (kind in ('statement', 'correction')),
    corrects_statement_id text,
    statement_json text not null check (json_valid(statement_json)),
    statement_sha256 text not null check (length(statement_sha256) = 64),
    price_book_version text not null,
    watermark_at text not null,
    closed_by text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    check ((kind = 'correction') = (corrects_statement_id is not null)),
    unique (statement_id)
);

create table target_workload (
    target_workload_id integer primary key,
    version text not null unique,
    learnt_from_at text not null,
    learnt_until_at text not null check (learnt_until_at > learnt_from_at),
    popular_share_micros integer not null check (popular_share_micros between 1 and 1000000),
    shapes_json text not null check (json_valid(shapes_json)),
    author text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table capability (
    capability_id integer primary key,
    gpu_model text not null,
    tier text not null check (tier in ('S', 'A', 'B', 'C', 'D')),
    memory_bytes integer check (memory_bytes > 0),
    source text not null,
    author text not null,
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table business_value (
    business_value_id integer primary key,
    scope_kind text not null
    check (scope_kind in ('tenant', 'queue', 'workload', 'workload_class', 'priority_class')),
    scope_key text not null,
    value_level text not null check (value_level in ('critical', 'high', 'normal', 'low')),
    start_objective_s integer check (start_objective_s > 0),
    reason text not null,
    approver text not null,
    valid_from_at text not null,
    valid_until_at text check (valid_until_at is null or valid_until_at > valid_from_at),
    recorded_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create index exchange_rate_by_pair on exchange_rate (from_currency, to_currency, valid_from_at);
create index budget_by_tenant on budget (tenant_id, valid_from_at);
create index closed_period_by_span on closed_period (from_at, until_at);
create index business_value_by_scope on business_value (scope_kind, scope_key);
