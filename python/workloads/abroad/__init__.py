"""Models written for one campaign of measurements, by habits of other people than the zoo's. See README.md."""
from . import attention, other, ranking, sparse, vision  # noqa: F401
from .registry import MODELS

__all__ = ["MODELS"]
