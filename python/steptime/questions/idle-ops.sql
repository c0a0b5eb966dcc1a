-- ops and calls of the host while devices are idle
with n as (select run, count(*) as steps from steps group by run)
select run, host_op, host_call, cause, count(*) as times,
       round(sum(idle_ns) / any_value(n.steps) / 1e6, 4) as idle_ms_a_step
from gaps join n using (run) where step is not null and idle_ns > 0
group by run, host_op, host_call, cause order by idle_ms_a_step desc limit 30
