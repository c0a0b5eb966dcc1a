"""Models written for one campaign of measurements, by habits of other people than the zoo's. See README.md."""
from . import encoders, graphs, language, other, pictures, ranking, sequences, signals, sparse, vision  # noqa: F401
from .registry import MODELS

__all__ = ["MODELS"]
