-- ranks that others wait for in collectives: the last rank to arrive waits least, and all others wait for it
with calls as (
    select run, rank, step, group_name, coalesce(op, kernel) as op, nth, dur_ns,
           min(dur_ns) over one as least, count(*) over one as ranks, arg_min(rank, dur_ns) over one as last
    from collectives where dur_ns is not null and step is not null
    window one as (partition by run, step, group_name, coalesce(op, kernel), nth)
),
waits as (select * from calls where ranks > 1),
n as (select run, count(distinct step) as steps from waits group by run),
caused as (select run, last as rank, sum(dur_ns - least) as ns from waits group by all)
select w.run, w.rank,
       count(*) filter (where w.rank = w.last) as came_last, count(*) as collectives,
       round(coalesce(any_value(c.ns), 0) / any_value(n.steps) / 1e6, 3) as others_wait_ms_a_step,
       round(sum(w.dur_ns - w.least) / any_value(n.steps) / 1e6, 3) as waits_ms_a_step
from waits w join n using (run) left join caused c on c.run = w.run and c.rank = w.rank
group by w.run, w.rank
order by others_wait_ms_a_step desc, w.run, w.rank
