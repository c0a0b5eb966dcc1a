"""Exceptions of steptime. Each message has the fault, its place and the remedy."""

from __future__ import annotations


class Error(Exception):
    """Base class of all exceptions of steptime."""


class UsageError(Error, ValueError):
    """Wrong arguments: an unknown option, a value out of range, a GPU without a profile."""


class NotFound(Error, FileNotFoundError):
    """A file or folder does not exist."""


class InputError(Error):
    """An input is damaged, or lacks data that the query needs."""


class NotApplicable(Error):
    """A change does not apply to the step."""


class NothingRecorded(Error, RuntimeError):
    """The step ran, but none of its ops can be used."""


class MissingTorch(Error, ImportError):
    """PyTorch, which recording needs, is not installed."""


class MissingLibrary(Error, ImportError):
    """A library is not installed that only this method needs."""


class MissingCore(Error, ImportError):
    """The native half of the package is missing: the package was not installed from a wheel."""
