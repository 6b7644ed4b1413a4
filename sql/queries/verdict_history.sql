-- purpose    what was judged of each workload, for the way from detected to reclaimed
-- grain      one row per verdict: those in the period and the last one before it
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    judged_at,
    cluster,
    workload_uid,
    verdict,
    reason_codes,
    window_s,
    coverage_ratio,
    policy_version
from verdict
where judged_at < $until_at
qualify
    judged_at >= $from_at
    or row_number() over (
        partition by cluster, workload_uid, judged_at < $from_at
        order by judged_at desc
    ) = 1
order by cluster, workload_uid, judged_at, verdict
