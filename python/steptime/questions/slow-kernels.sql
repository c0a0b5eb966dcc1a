-- kernels that are slower on one rank than on the median rank, by additional time per step
with each as (
    select run, rank, name, sum(sum_ns) / sum(count) as mean_ns, sum(count) as count, count(distinct step) as steps
    from kernels where not collective and kind = 'kernel' group by all
),
beside as (select *, median(mean_ns) over (partition by run, name) as usual,
                  count(*) over (partition by run, name) as ranks from each)
select run, rank, name, round(mean_ns / 1e3, 2) as mean_us, round(usual / 1e3, 2) as median_rank_us,
       round(100 * (mean_ns / usual - 1), 1) as slower_percent,
       round((mean_ns - usual) * count / greatest(steps, 1) / 1e6, 4) as costs_ms_a_step
from beside where ranks > 1 and mean_ns > usual order by costs_ms_a_step desc limit 30
