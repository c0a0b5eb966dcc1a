"""Measures the kernels of this machine's GPU: `python -m steptime.measure --out sweep.parquet`.

    __main__.py   the command
    sweep.py      the order of things: batches, the time budget, resuming, checkpoints
    case.py       what a case is; case i of a family is always the same one
    draw.py       random sizes as models have them, and awkward ones
    tensors.py    the tensors of a case
    families/     the cases of each family of kernels, one file each
    runner.py     runs a batch of cases under PyTorch's profiler, with cold, warm and half-cold caches
    harvest.py    from the profiler's trace to rows: which operator took how long on the GPU
    kernels.py    short names of kernels
    sheet.py      the rows in a file: Parquet, or JSON lines where pyarrow is not installed
    machine.py    which GPU this is, and its peaks
    collectives/  a command of its own: what ranks of a job exchange, timed under torchrun
"""
