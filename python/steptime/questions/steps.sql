-- step times of each run, over all ranks
select run, count(distinct rank) as ranks, count(*) as steps, round(median(dur_ns) / 1e6, 3) as median_ms,
       round(quantile_cont(dur_ns, 0.9) / 1e6, 3) as p90_ms, round(max(dur_ns) / 1e6, 3) as max_ms,
       round(avg(active_ns) / 1e6, 3) as active_ms, round(avg(idle_ns) / 1e6, 3) as idle_ms,
       round(avg(comm_exposed_ns) / 1e6, 3) as comm_exposed_ms
from steps group by run order by run
