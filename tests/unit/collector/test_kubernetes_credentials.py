"""Where address and credentials come from, and what is said where they do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collector.sources.kubernetes.api_error import ApiError, ApiFault
from collector.sources.kubernetes.credentials import Origin, load_configuration


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


def config(path: Path, *, server: str = "https://one.example:6443", **more: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [
            {"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("blue", "green")
        ],
        "current-context": "blue",
        **more,
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def refusal(origin: Origin) -> ApiError:
    with pytest.raises(ApiError) as caught:
        load_configuration(origin)
    assert caught.value.fault is ApiFault.CREDENTIALS
    return caught.value


def test_named_file_is_read(tmp_path: Path) -> None:
    loaded = load_configuration(Origin(kubeconfig=config(tmp_path / "own")))
    assert loaded.host == "https://one.example:6443"
    assert loaded.auth_settings()["BearerToken"]["value"] == "Bearer t"


def test_file_of_the_environment_wins_over_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(tmp_path / "home/.kube/config", server="https://home.example")
    monkeypatch.setenv("KUBECONFIG", str(config(tmp_path / "env", server="https://env.example")))
    assert load_configuration(Origin()).host == "https://env.example"


def test_usual_file_is_found(tmp_path: Path) -> None:
    config(tmp_path / "home/.kube/config", server="https://home.example")
    assert load_configuration(Origin(context="green")).host == "https://home.example"


def test_in_a_pod_its_own_account_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """No account is mounted here, so that is what is told."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert "the pod's service account cannot be used" in refusal(Origin()).message


def test_file_that_is_named_wins_over_the_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    loaded = load_configuration(Origin(kubeconfig=config(tmp_path / "own")))
    assert loaded.host == "https://one.example:6443"


def test_no_file_anywhere(tmp_path: Path) -> None:
    error = refusal(Origin())
    assert str(tmp_path / "home/.kube/config") in error.message
    assert "this is no pod" in error.message


def test_context_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    error = refusal(Origin(kubeconfig=config(tmp_path / "own"), context="red"))
    assert "has no context 'red'; it has: blue, green" in error.message


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({"current-context": ""}, "has no current context", id="no current context"),
        pytest.param({"contexts": []}, "it has: none", id="no context"),
        pytest.param({"clusters": []}, "cannot be used", id="no cluster"),
        pytest.param({"contexts": [{"nome": "x"}]}, "cannot be used", id="misspelt"),
        pytest.param({"contexts": 3}, "cannot be used", id="of the wrong type"),
        pytest.param(
            {"users": [{"name": "u", "user": {"tokenFile": "/nowhere"}}]},
            "/nowhere",
            id="token file missing",
        ),
        pytest.param(
            {"users": [{"name": "u", "user": {"client-certificate-data": "a"}}]},
            "cannot be used",
            id="certificate not base64",
        ),
    ],
)
def test_broken_file_is_told(tmp_path: Path, more: dict[str, object], words: str) -> None:
    path = config(tmp_path / "own", **more)
    error = refusal(Origin(kubeconfig=path))
    assert str(path) in error.message
    assert words in error.message
    assert error.hint


@pytest.mark.parametrize("server", ["", "no url", "ftp://x", "https://", "https://x:99999"])
def test_address_that_is_none(tmp_path: Path, server: str) -> None:
    error = refusal(Origin(kubeconfig=config(tmp_path / "own", server=server)))
    assert str(tmp_path / "own") in error.message


def test_plugin_that_gives_nothing_is_told(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}
    path = config(tmp_path / "own", users=[{"name": "u", "user": {"exec": plugin}}])
    assert "the credential plugin of" in refusal(Origin(kubeconfig=path)).message


def test_account_without_credentials_is_allowed(tmp_path: Path) -> None:
    """As with a proxy that knows who asks."""
    path = config(tmp_path / "own", users=[])
    assert load_configuration(Origin(kubeconfig=path)).host == "https://one.example:6443"


@pytest.mark.parametrize("text", ["", "just text", "a: [", "- 1\n"])
def test_file_that_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    path = tmp_path / "own"
    path.write_text(text, encoding="utf-8")
    assert str(path) in refusal(Origin(kubeconfig=path)).message


def test_file_nested_without_end_is_told(tmp_path: Path) -> None:
    path = tmp_path / "deep"
    path.write_text("[" * 20_000, encoding="utf-8")
    assert "cannot be used" in refusal(Origin(kubeconfig=path)).message


def test_path_longer_than_any_is_told() -> None:
    assert "cannot be used" in refusal(Origin(kubeconfig=Path("/" + "x" * 5_000))).message
