"""Measures the kernels of this machine's GPU: `python -m steptime.measure --out sweep.parquet`.

    __main__.py   the command
    sweep.py      the sweep: batches, time budget, resuming, checkpoints
    case.py       cases; case i of a family and seed is always the same
    draw.py       random sizes: typical ones of models, and awkward ones
    tensors.py    the tensors of a case
    families/     the cases of each family of kernels, one file each; mixtures.py: rare shapes of several families
    runner.py     runs a batch of cases under PyTorch's profiler, with cold, warm and half-cold caches
    harvest.py    converts the profiler's trace to rows: GPU time of each operator
    kernels.py    short names of kernels
    sheet.py      files of rows: Parquet, or JSON lines where pyarrow is not installed
    machine.py    description of the GPU, and its measured peaks
    collectives/  a separate command: times collectives between ranks under torchrun
"""
