-- host ops by their own time, with the time of the kernels that they launch
with n as (select run, count(*) as steps from steps group by run)
select run, name, round(sum(count) / any_value(n.steps), 1) as count_a_step,
       round(sum(self_ns) / any_value(n.steps) / 1e6, 4) as self_ms_a_step,
       round(sum(device_ns) / any_value(n.steps) / 1e6, 4) as device_ms_a_step,
       round(sum(sum_ns) / sum(count) / 1e3, 2) as mean_us, round(max(max_ns) / 1e3, 2) as max_us
from ops join n using (run) where step is not null
group by run, name order by self_ms_a_step desc limit 30
