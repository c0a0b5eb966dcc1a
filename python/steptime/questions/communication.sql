-- communication time of a step, and its exposed part that no computation hides, by rank
select run, rank, count(*) as steps, round(avg(dur_ns) / 1e6, 3) as step_ms,
       round(avg(comm_ns) / 1e6, 3) as comm_ms, round(avg(comm_exposed_ns) / 1e6, 3) as exposed_ms,
       round(100 * sum(comm_exposed_ns) / sum(dur_ns) filter (where comm_exposed_ns is not null), 1) as exposed_of_step_percent
from steps group by run, rank order by exposed_of_step_percent desc, run, rank
