"""Times collectives over the ranks of a job: `torchrun --nproc-per-node N -m steptime.measure.collectives -o FILE.csv`.

Rank 0 writes FILE.csv, a row for each op, group and size, and FILE.json, which says on what and how it was measured.
Both appear whole, at the end. A group is the first ranks of the job, so many as its column `world` says. Columns:

    op         all_reduce, reduce_scatter, all_gather, all_to_all, all_to_all_v, broadcast, send_receive (rank 0 to 1)
    world      how many ranks take part; 2 for send_receive, whatever the groups
    nodes      on how many nodes of torchrun these ranks are
    bytes      what one rank holds as its larger buffer, see BYTES
    dtype      of the elements
    skew       of all_to_all_v, what the largest rank sends over the mean of all ranks; 1 for others
    median_us  one call alone, after a small all_reduce that lets all start together: the median over calls, on the
               slowest rank. By the GPU's clock it holds what of the launch does not hide behind that all_reduce; by
               the host's clock (gloo) it holds the whole call
    min_us     likewise, the shortest call, on the slowest rank
    kernel_us  NCCL's kernel by PyTorch's profiler, launches hidden: of each call the rank where it is shortest, which
               waited for no other; the median over calls. Empty where nothing was seen
    link       the slowest link among the GPUs of the group, as `nvidia-smi topo -m` calls it; NET over several nodes,
               HOST with gloo, empty where unknown

Sizes are the powers of two, and others drawn between: from the same seed the same ones. Each is cut to what the ranks
can share evenly. What all_to_all_v sends from rank r is the same to every rank, in proportion to r + 1 for powers of
two, and to a drawn power of r + 1 for drawn sizes. Cases come in a random order: what is there when the time is up is
a sample of all. Exit codes: 0 measured, 1 failed, 2 wrong usage.

    __main__.py   the command, started
    command.py    the command: its options, and what is done in which order
    cases.py      what is measured: ops, groups and sizes, the same on every rank
    job.py        this rank among the others
    calls.py      what a rank runs for a case
    timing.py     measures: by the clocks, and by PyTorch's profiler
    topology.py   where ranks run, and the links among their GPUs
    files.py      the table, and what is said of the machine
"""

from steptime.measure.collectives.cases import BYTES, DTYPES, WHOLE, Case, amount, plan
from steptime.measure.collectives.command import OK, USAGE, main, parse, started
from steptime.measure.collectives.files import COLUMNS, rows, shared
from steptime.measure.collectives.timing import Timing, cut
from steptime.measure.collectives.topology import Member, link, links, slowness

__all__ = [
    "BYTES",
    "COLUMNS",
    "DTYPES",
    "OK",
    "USAGE",
    "WHOLE",
    "Case",
    "Member",
    "Timing",
    "amount",
    "cut",
    "link",
    "links",
    "main",
    "parse",
    "plan",
    "rows",
    "shared",
    "slowness",
    "started",
]
