"""Protobuf's wire format, reading only: numbered fields of a message, in order.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steward.errors import SourceError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT: Final = 10
_KIND_BITS: Final = 3
_KIND_MASK: Final = 7


class MessageError(SourceError):
    """The bytes are no message."""

    def __init__(self, fault: str) -> None:
        """Say what is wrong with the bytes."""
        super().__init__(
            f"the kubelet's answer is no PodResources message: {fault}",
            hint="check what listens on the socket",
        )


def fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield each field's number with its value; fields of fixed size are passed over.

    Raises:
        MessageError: cut off, or no message at all.
    """
    place, end = 0, len(message)
    while place < end:
        key, place = _varint(message, place)
        number, kind = key >> _KIND_BITS, key & _KIND_MASK
        if kind == _VARINT:
            integer, place = _varint(message, place)
            yield number, integer
        elif kind == _BYTES:
            size, place = _varint(message, place)
            yield number, _slice(message, place, size)
            place += size
        elif kind in _FIXED_SIZES:
            _slice(message, place, _FIXED_SIZES[kind])
            place += _FIXED_SIZES[kind]
        else:
            raise MessageError(f"wire type {kind} at byte {place}")


def text(value: bytes | int) -> str:
    """Return a string field's text.

    Raises:
        MessageError: no string, or not UTF-8.
    """
    try:
        return nested(value).decode()
    except UnicodeDecodeError as error:
        raise MessageError(f"a text is not UTF-8: {error}") from error


def nested(value: bytes | int) -> bytes:
    """Return a field's bytes.

    Raises:
        MessageError: it holds a number.
    """
    if isinstance(value, int):
        raise MessageError("a number stands where a text or message belongs")
    return value


def _slice(message: bytes, place: int, size: int) -> bytes:
    if place + size > len(message):
        raise MessageError(f"cut off at byte {len(message)}")
    return message[place : place + size]


def _varint(message: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(message[place : place + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return number, place + shift + 1
    raise MessageError(f"an endless or cut off number at byte {place}")
