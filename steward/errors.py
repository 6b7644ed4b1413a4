"""The error tree: every failure a person can meet, with its exit code and next step.

::

    StewardError                  1   anything below, never raised bare
    ├── UsageError                2   the command line cannot be understood
    ├── SettingsError             3   settings are wrong; every fault is listed at once
    ├── InputError                4   a file or text from outside is not what it claims to be
    ├── SourceError               5   a target is down, slow, endless or redirects
    ├── WarehouseError            6   the warehouse cannot serve: corrupt, busy, disk full
    │   ├── OwnedElsewhereError   7   another process owns the same warehouse file
    │   ├── NewerSchemaError      8   the warehouse was written by a newer version
    │   └── UnreachableError      9   no answer from the warehouse's address
    ├── QueryError               10   SQL is refused, wrong, too slow or too large
    ├── AccessError              11   the token is missing or lacks the role
    ├── PortInUseError           12   the address to listen on is taken
    ├── MissingPartError         13   an optional part is not installed
    └── ClusterError             14   the Kubernetes API gives no usable answer
        ├── DeniedError          15   the account may not do this
        ├── ConflictError        16   the object is gone, is another, or was changed meanwhile
        ├── RefusedError         17   the server refuses the write: validation, admission, a budget
        └── FencedError          18   another replica leads now

A process ended by Ctrl-C exits with 130, as shells expect.
"""

from __future__ import annotations

from typing import ClassVar

INTERRUPTED_EXIT_CODE = 130


class StewardError(Exception):
    """A failure told to a person: what it concerns, and what to do next.

    Args:
        message: names the object (path, target, setting) and what is wrong with it.
        hint: the next step, in the imperative, without a final full stop.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str) -> None:
        """Keep the message as the exception's text and the hint beside it."""
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(StewardError):
    """The command line cannot be understood."""

    exit_code = 2


class SettingsError(StewardError):
    """One or more settings are wrong; the message lists all of them."""

    exit_code = 3


class InputError(StewardError):
    """A file or text from outside is not what it claims to be."""

    exit_code = 4


class SourceError(StewardError):
    """A target could not be read; other targets go on."""

    exit_code = 5


class WarehouseError(StewardError):
    """The warehouse cannot serve."""

    exit_code = 6


class OwnedElsewhereError(WarehouseError):
    """Another process owns the same warehouse file."""

    exit_code = 7


class NewerSchemaError(WarehouseError):
    """The warehouse was written by a newer version, or its migrations were changed."""

    exit_code = 8


class UnreachableError(WarehouseError):
    """No answer from the warehouse's address."""

    exit_code = 9


class QueryError(StewardError):
    """SQL is refused, wrong, too slow or too large."""

    exit_code = 10


class AccessError(StewardError):
    """The token is missing, unknown or lacks the role."""

    exit_code = 11


class PortInUseError(StewardError):
    """The address to listen on is taken."""

    exit_code = 12


class MissingPartError(StewardError):
    """An optional part (extra) is not installed."""

    exit_code = 13


class ClusterError(StewardError):
    """The Kubernetes API gives no usable answer."""

    exit_code = 14


class DeniedError(ClusterError):
    """The account may not do this."""

    exit_code = 15


class ConflictError(ClusterError):
    """The object is gone, is another, or was changed since it was read."""

    exit_code = 16


class RefusedError(ClusterError):
    """The server refuses the write: validation, admission, a disruption budget."""

    exit_code = 17


class FencedError(ClusterError):
    """Another replica leads now; nothing was written."""

    exit_code = 18
