-- causes of device idle time: a late host, a waiting host, other streams, or launches
with n as (select run, count(*) as steps, sum(dur_ns) as ns from steps group by run)
select run, cause, count(*) filter (where idle_ns > 0) as times,
       round(sum(idle_ns) / any_value(n.steps) / 1e6, 3) as idle_ms_a_step,
       round(100 * sum(idle_ns) / any_value(n.ns), 1) as of_step_percent
from gaps join n using (run) where step is not null
group by run, cause order by run, idle_ms_a_step desc
