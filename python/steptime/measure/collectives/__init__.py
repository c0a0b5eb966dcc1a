"""Times collectives over the ranks of a job: `torchrun --nproc-per-node N -m steptime.measure.collectives -o FILE.csv`.

Rank 0 writes FILE.csv, a row for each op, group and size, and FILE.json, which describes the machine and the measurement.
Both appear complete, at the end. A group is the first `world` ranks of the job. Columns:

    op         all_reduce, reduce_scatter, all_gather, all_to_all, all_to_all_v, broadcast, send_receive (rank 0 to 1)
    world      number of ranks that take part; always 2 for send_receive
    nodes      number of torchrun nodes of these ranks
    bytes      size of the larger buffer of a rank, see BYTES
    dtype      type of the elements
    skew       for all_to_all_v, bytes sent by the largest rank over the mean of all ranks; 1 for others
    median_us  one call alone, after a small all_reduce that synchronises the ranks: the median over calls, on the
               slowest rank. By the GPU's clock it includes the part of the launch that is not hidden by that
               all_reduce; by the host's clock (gloo) it includes the whole call
    min_us     likewise, the shortest call, on the slowest rank
    kernel_us  NCCL's kernel by PyTorch's profiler, with launches hidden: of each call the time on the rank where it is
               shortest, which waited for no other; the median over calls. Empty without profiled kernels
    link       the slowest link among the GPUs of the group, as named by `nvidia-smi topo -m`; NET over several nodes,
               HOST with gloo, empty where unknown

Sizes are the powers of two, and random ones between them, determined by the seed. Each is rounded down to a multiple that
the ranks can share evenly. In all_to_all_v, rank r sends the same amount to every rank, in proportion to r + 1 for powers of
two, and to a random power of r + 1 for random sizes. Cases run in a random order, so that those measured when the time is up
are a sample of all. Exit codes: 0 measured, 1 failed, 2 wrong usage.

    __main__.py   starts the command
    command.py    the command: its options and its order of work
    cases.py      the cases: ops, groups and sizes, the same on every rank
    job.py        this rank in its job
    calls.py      the call of a rank for a case
    timing.py     measurement by clocks, and by PyTorch's profiler
    topology.py   nodes and GPUs of ranks, and the links between GPUs
    files.py      the table, and the description of the machine
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
