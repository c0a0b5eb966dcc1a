-- collectives by operation, group and size, with their rate as seen by the last rank to arrive
with calls as (
    select run, coalesce(op, kernel) as op, group_name, group_size, in_bytes, dur_ns, exposed_ns,
           min(dur_ns) over (partition by run, step, group_name, coalesce(op, kernel), nth) as least
    from collectives where dur_ns is not null
)
select run, op, group_name, group_size, in_bytes, count(*) as count,
       round(median(dur_ns) / 1e3, 1) as median_us, round(median(least) / 1e3, 1) as last_rank_us,
       round(in_bytes / median(least), 2) as last_rank_gb_per_s,
       round(100 * sum(exposed_ns) / sum(dur_ns), 1) as exposed_percent
from calls group by run, op, group_name, group_size, in_bytes order by sum(dur_ns) desc limit 30
