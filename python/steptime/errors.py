"""What steptime raises. Each message says what is wrong, where, and the remedy."""

from __future__ import annotations


class Error(Exception):
    """Whatever steptime refuses; every other exception here is one."""


class UsageError(Error, ValueError):
    """Asked for something that cannot be: an unknown option, a value out of range, a GPU without a profile."""


class NotFound(Error, FileNotFoundError):
    """A file or folder that is not there."""


class InputError(Error):
    """An input that is damaged, or holds too little for the question."""


class NotApplicable(Error):
    """A change that does not apply to the step."""


class NothingRecorded(Error, RuntimeError):
    """The step ran, and no op of it can be used."""


class MissingTorch(Error, ImportError):
    """PyTorch is not there to record with."""


class MissingLibrary(Error, ImportError):
    """A library that one method needs, and the package does not."""


class MissingCore(Error, ImportError):
    """The native half of the package is not there: the package was not installed from a wheel."""
