"""Models written for one measurement campaign, in other coding styles than those of the zoo. See README.md."""
from . import encoders, graphs, language, other, pictures, ranking, sequences, signals, sparse, vision  # noqa: F401
from .registry import MODELS

__all__ = ["MODELS"]
