"""Predicts how long a PyTorch training step takes on a GPU you may not have, explains why, and suggests what would make it shorter.

>>> import steptime
>>> p = steptime.predict("examples/dlrm_default_2048")
>>> round(p.step_ms, 3)
3.416

Names are loaded on first use: importing steptime imports neither PyTorch nor the native half.
"""

from __future__ import annotations

# Stands in for `typing.TYPE_CHECKING`, since importing `typing` takes longer than all of this; type checkers take the name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from steptime.changes import Changed as Changed
    from steptime.changes import what_if as what_if
    from steptime.checks import RecordWarning as RecordWarning
    from steptime.choosing import Choice as Choice
    from steptime.choosing import choose as choose
    from steptime.errors import Error as Error
    from steptime.errors import InputError as InputError
    from steptime.errors import MissingCore as MissingCore
    from steptime.errors import MissingLibrary as MissingLibrary
    from steptime.errors import MissingTorch as MissingTorch
    from steptime.errors import NotApplicable as NotApplicable
    from steptime.errors import NotFound as NotFound
    from steptime.errors import NothingRecorded as NothingRecorded
    from steptime.errors import UsageError as UsageError
    from steptime.explanation import Explanation as Explanation
    from steptime.explanation import explain as explain
    from steptime.job import JobPrediction as JobPrediction
    from steptime.prediction import Prediction as Prediction
    from steptime.prediction import predict as predict
    from steptime.profiles import device_profile as device_profile
    from steptime.profiles import devices as devices
    from steptime.profiles import fit_device_profile as fit_device_profile
    from steptime.profiles import fit_host_profile as fit_host_profile
    from steptime.profiles import gather_plan as gather_plan
    from steptime.profiles import host_profile as host_profile
    from steptime.profiles import kernels as kernels
    from steptime.querying import QueryError as QueryError
    from steptime.querying import ask as ask
    from steptime.querying import query as query
    from steptime.querying import questions as questions
    from steptime.recording import record as record
    from steptime.report import compare as compare
    from steptime.report import inspect as inspect
    from steptime.report import roofline as roofline
    from steptime.report import validate as validate
    from steptime.sharding import scale_out as scale_out
    from steptime.sharding import shard as shard
    from steptime.sharding import torchrec_plan as torchrec_plan
    from steptime.table import Table as Table
    from steptime.viewing import view as view
    from steptime.watching import watch as watch

__version__ = "0.1.0"

_PLACES = {
    "changes": ("Changed", "what_if"),
    "checks": ("RecordWarning",),
    "choosing": ("Choice", "choose"),
    "errors": ("Error", "InputError", "MissingCore", "MissingLibrary", "MissingTorch", "NotApplicable", "NotFound", "NothingRecorded", "UsageError"),
    "explanation": ("Explanation", "explain"),
    "job": ("JobPrediction",),
    "prediction": ("Prediction", "predict"),
    "profiles": ("device_profile", "devices", "fit_device_profile", "fit_host_profile", "gather_plan", "host_profile", "kernels"),
    "querying": ("QueryError", "ask", "query", "questions"),
    "recording": ("record",),
    "report": ("compare", "inspect", "roofline", "validate"),
    "sharding": ("scale_out", "shard", "torchrec_plan"),
    "table": ("Table",),
    "viewing": ("view",),
    "watching": ("watch",),
}
_OF = {name: module for module, names in _PLACES.items() for name in names}
__all__ = ["__version__", *sorted(_OF)]


def __getattr__(name: str) -> Any:
    """Loads a name or a submodule (such as `steptime.lightning`) on first use."""
    import importlib

    if name in _OF:
        found = getattr(importlib.import_module(f"steptime.{_OF[name]}"), name)
    else:
        try:
            found = importlib.import_module(f"steptime.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"steptime.{name}":
                raise
            raise AttributeError(f"module 'steptime' has no attribute {name!r}") from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_OF])
