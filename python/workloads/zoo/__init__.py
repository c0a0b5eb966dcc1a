"""Models of many fields, each a function from a batch size to a training task.

    STEPTIME_MODEL=din STEPTIME_BATCH=4096 python -m steptime record workloads/zoo_step.py --out recordings/din_4096

STEPTIME_VARIANT: words of `variants.py` joined by `+`.
"""
from . import other, recommenders, text, vision

MODELS = {name: make for module in (recommenders, vision, text, other) for name, make in vars(module).items() if hasattr(make, "batch")}
