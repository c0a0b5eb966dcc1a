-- steps that took over 1.2 times the median of their rank, and the parts that grew
with beside as (
    select *, median(dur_ns) over one as usual, median(idle_ns) over one as idle, median(compute_ns) over one as compute,
           median(comm_exposed_ns) over one as exposed
    from steps window one as (partition by run, rank)
)
select run, rank, step, round(dur_ns / 1e6, 3) as step_ms, round(usual / 1e6, 3) as median_ms,
       round((idle_ns - idle) / 1e6, 3) as more_idle_ms, round((compute_ns - compute) / 1e6, 3) as more_compute_ms,
       round((comm_exposed_ns - exposed) / 1e6, 3) as more_exposed_comm_ms
from beside where dur_ns > 1.2 * usual order by dur_ns / usual desc limit 30
