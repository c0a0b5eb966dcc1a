"""Recordings of a script before and after a change, made without a GPU: see `__main__.py`."""

from . import images, others, recommenders, text
from .case import MAKERS

__all__ = ["MAKERS", "images", "others", "recommenders", "text"]
