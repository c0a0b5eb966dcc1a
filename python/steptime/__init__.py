"""Records one PyTorch training step: its true time, and the traces that explain it.

>>> import steptime
>>> steptime.record(train_step, loader, out="recordings/my_model", batch=2048)  # doctest: +SKIP

    recording.py   record(): the order of things, and meta.json
    settings.py    how many windows, steps and profiled steps
    loop.py        the step and its batches; timing without a profiler
    profiling.py   the three trace files, by PyTorch
    checks.py      is what was recorded consistent? (drift, run-ahead, op sequence)
    stats.py       medians and quantiles
    describe.py    what meta.json says of the model and the machine
    folder.py      all of the folder, or nothing
    command.py     the command: python -m steptime record
    measure/       the command: python -m steptime.measure, kernels of this machine's GPU
    operators/     embedding and interaction kernels of ours as PyTorch ops
"""

from steptime.checks import RecordWarning
from steptime.recording import record
from steptime.settings import UsageError

__version__ = "0.1.0"
__all__ = ["RecordWarning", "UsageError", "__version__", "record"]
