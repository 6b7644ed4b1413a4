"""Addresses as people write them, and the URLs they mean."""

from __future__ import annotations

import pytest

from collector.discovery import target_url, target_urls
from steward.errors import UsageError


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("host:9400", "http://host:9400/metrics"),
        ("host", "http://host/metrics"),
        (" host:9400 ", "http://host:9400/metrics"),
        ("HTTP://Host:80/", "http://host/metrics"),
        ("https://host:443", "https://host/metrics"),
        ("http://host:443", "http://host:443/metrics"),
        ("10.0.0.7:9400/gpu/metrics?all=1", "http://10.0.0.7:9400/gpu/metrics?all=1"),
        ("[::1]:9400", "http://[::1]:9400/metrics"),
        ("gpu_node-1.rack.:1", "http://gpu_node-1.rack.:1/metrics"),
        ("host:65535", "http://host:65535/metrics"),
    ],
)
def test_one_spelling_of_each_target(address: str, url: str) -> None:
    assert target_url(address) == url
    assert target_url(url) == url


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("", "it is empty"),
        ("a b", "it contains a space"),
        ("ftp://host", "the scheme 'ftp'"),
        ("http://", "it names no host"),
        ("/metrics", "it names no host"),
        ("host:0", "not between 1 and 65535"),
        ("host:", "not between 1 and 65535"),
        ("host:65536", "Port out of range"),
        ("host:abc", "Port could not be cast"),
        ("-host:1", "is not a host name"),
        ("[zz]:1", "IPv6"),
        ("[::1", "IPv6"),
        ("host#top", "fragment"),
    ],
)
def test_what_is_no_address(address: str, fault: str) -> None:
    with pytest.raises(UsageError, match=r"^bad target ") as caught:
        target_url(address)
    assert fault in caught.value.message


def test_credentials_are_refused_and_not_printed() -> None:
    with pytest.raises(UsageError, match="credentials") as caught:
        target_url("http://anna:secret@host:9400")
    assert "secret" not in caught.value.message


def test_duplicates_are_one_target_in_whatever_order() -> None:
    addresses = ["b:1", "http://a:80/metrics", "a", "b:1/metrics", "A:80"]
    expected = ("http://a/metrics", "http://b:1/metrics")
    assert target_urls(addresses) == expected
    assert target_urls(reversed(addresses)) == expected


def test_all_bad_addresses_are_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        target_urls(["good:1", "ftp://x", "y:0", "also-good"])
    assert "'ftp://x'" in caught.value.message
    assert "'y:0'" in caught.value.message
    assert "good" not in caught.value.message


def test_no_address_is_no_target() -> None:
    assert target_urls([]) == ()
