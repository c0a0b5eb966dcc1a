-- kernels that take longer per step than in the first run by name (mean over ranks)
with n as (select run, count(*) as steps from steps group by run),
each as (
    select run, name, sum(sum_ns) / any_value(n.steps) as ns, sum(count) / any_value(n.steps) as count
    from kernels join n using (run) where step is not null group by run, name
),
first as (select min(run) as run from n),
before as (select * from each where run = (select run from first)),
others as (select run from n where run <> (select run from first)),
names as (select o.run, name from others o, (select distinct name from each))
select (select run from first) as before, names.run as after, names.name,
       round(coalesce(b.ns, 0) / 1e6, 4) as before_ms, round(coalesce(a.ns, 0) / 1e6, 4) as after_ms,
       round((coalesce(a.ns, 0) - coalesce(b.ns, 0)) / 1e6, 4) as more_ms_a_step,
       round(coalesce(b.count, 0), 1) as before_count, round(coalesce(a.count, 0), 1) as after_count
from names left join before b using (name) left join each a on a.run = names.run and a.name = names.name
order by more_ms_a_step desc limit 30
