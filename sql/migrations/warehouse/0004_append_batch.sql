-- purpose  which batches were stored, so that a repeated append is recognised
-- law      written in the same transaction as the batch's rows; append only; no unique index

create table append_batch (
    stored_at timestamptz not null,
    batch_id varchar not null,
    table_name varchar not null,
    row_count bigint not null
);
