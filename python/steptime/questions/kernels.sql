-- kernels with the most time, with percentiles over all ranks and steps (to 1 %)
with merged as (
    select run, name, bin, sum(n) as n
    from (select run, name, unnest(bins) as bin, unnest(bin_counts) as n from kernels) group by all
),
upto as (
    select run, name, bin, sum(n) over (partition by run, name order by bin) as upto,
           sum(n) over (partition by run, name) as total from merged
),
quantiles as (
    select run, name, min(sketch_ns(bin)) filter (where upto >= 0.5 * total) as p50,
           min(sketch_ns(bin)) filter (where upto >= 0.99 * total) as p99 from upto group by all
)
select k.run, k.name, sum(k.count)::bigint as count, round(sum(k.sum_ns) / 1e6, 3) as total_ms,
       round(100 * sum(k.sum_ns) / sum(sum(k.sum_ns)) over (partition by k.run), 1) as share_percent,
       round(any_value(q.p50) / 1e3, 2) as p50_us, round(any_value(q.p99) / 1e3, 2) as p99_us,
       round(max(k.max_ns) / 1e3, 2) as max_us
from kernels k join quantiles q using (run, name)
group by k.run, k.name order by total_ms desc limit 30
