"""Settings: which source wins, what each accepts, and that every fault is told at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from steward.errors import SettingsError
from steward.settings import (
    AgentSettings,
    CollectSettings,
    EnforceSettings,
    KubernetesSettings,
    OwnershipSettings,
    Settings,
    WarehouseSettings,
    load,
    resolve,
)
from steward.settings.fields import all_settings

NOTHING: Mapping[str, str] = {"HOME": "/home/nobody", "XDG_CONFIG_HOME": "/nowhere"}


def written(folder: Path, text: str) -> Path:
    """Write a settings file and return its path."""
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


def fault_of(**sources: object) -> str:
    """Return the message of the fault that these sources have."""
    with pytest.raises(SettingsError) as caught:
        load(**{"environ": NOTHING, **sources})  # type: ignore[arg-type]  # one case, many sources
    return caught.value.message


def test_nothing_said_is_all_defaults() -> None:
    settings = load(environ={"XDG_DATA_HOME": "/xdg", "XDG_CONFIG_HOME": "/nowhere"})

    assert settings == Settings(data_dir=Path("/xdg/steward"))


@pytest.mark.parametrize(
    ("has_file", "environ", "flags", "port", "origin"),
    [
        pytest.param(False, {}, {}, 8420, "default", id="nothing said"),
        pytest.param(True, {}, {}, 1, "config.toml: warehouse.port", id="the file"),
        pytest.param(
            True,
            {"STEWARD_WAREHOUSE_PORT": "2"},
            {},
            2,
            "$STEWARD_WAREHOUSE_PORT",
            id="the environment over the file",
        ),
        pytest.param(
            True,
            {"STEWARD_WAREHOUSE_PORT": "2"},
            {"warehouse.port": "3"},
            3,
            "--port",
            id="a flag over all",
        ),
    ],
)
def test_later_sources_win(
    tmp_path: Path,
    *,
    has_file: bool,
    environ: Mapping[str, str],
    flags: Mapping[str, str],
    port: int,
    origin: str,
) -> None:
    file = written(tmp_path, "[warehouse]\nport = 1\n") if has_file else None
    resolved = resolve(config=file, environ={**NOTHING, **environ}, flags=flags)

    assert resolved.settings.warehouse.port == port
    assert resolved.origins["warehouse.port"].removeprefix(f"{tmp_path}/") == origin


@pytest.mark.parametrize("place", ["flag", "variable", "home"])
def test_the_file_is_found(tmp_path: Path, place: str) -> None:
    (tmp_path / "steward").mkdir()
    file = written(tmp_path / "steward", 'cluster = "blue"\n')
    environ = {
        "flag": NOTHING,
        "variable": {**NOTHING, "STEWARD_CONFIG": str(file)},
        "home": {"XDG_CONFIG_HOME": str(tmp_path)},
    }[place]

    resolved = resolve(config=file if place == "flag" else None, environ=environ)
    assert (resolved.settings.cluster, resolved.file) == ("blue", file)


def test_every_setting_can_be_said_in_the_environment() -> None:
    said = {
        "STEWARD_DATA_DIR": "/srv/steward",
        "STEWARD_CLUSTER": "blue",
        "STEWARD_LOG_LEVEL": "debug",
        "STEWARD_LOG_FORMAT": "json",
        "STEWARD_WAREHOUSE_URL": "https://warehouse:8420",
        "STEWARD_WAREHOUSE_HOST": "::1",
        "STEWARD_WAREHOUSE_PORT": "0",
        "STEWARD_WAREHOUSE_TOKEN": "t0",
        "STEWARD_WAREHOUSE_WRITER_TOKENS": "t1, t2",
        "STEWARD_WAREHOUSE_READER_TOKENS": "t3",
        "STEWARD_WAREHOUSE_ENFORCER_TOKENS": "t4",
        "STEWARD_WAREHOUSE_ADMIN_TOKENS": "",
        "STEWARD_WAREHOUSE_QUERY_TIMEOUT_S": "1.5",
        "STEWARD_WAREHOUSE_QUERY_ROW_LIMIT": "10",
        "STEWARD_WAREHOUSE_QUERY_MEMORY_BYTES": "2048",
        "STEWARD_WAREHOUSE_BODY_LIMIT_BYTES": "4096",
        "STEWARD_COLLECT_TARGETS": "http://a:9400/metrics,http://b:9400/metrics",
        "STEWARD_COLLECT_INTERVAL_S": "5",
        "STEWARD_COLLECT_TIMEOUT_S": "2",
        "STEWARD_COLLECT_BODY_LIMIT_BYTES": "1024",
        "STEWARD_COLLECT_FILE_SD": "/etc/targets/*.json",
        "STEWARD_COLLECT_HTTP_SD": "http://sd:80/a,http://sd:80/b",
        "STEWARD_COLLECT_SD_INTERVAL_S": "30",
        "STEWARD_COLLECT_SPOOL_LIMIT_BYTES": "2048",
        "STEWARD_KUBERNETES_ACCESS": "kubeconfig",
        "STEWARD_KUBERNETES_KUBECONFIG": "/etc/kube/config",
        "STEWARD_KUBERNETES_CONTEXT": "prod",
        "STEWARD_KUBERNETES_EXPORTERS": "app=dcgm-exporter@gpu:9400",
        "STEWARD_OWNERSHIP_TEAM_LABELS": "team,example.org/team",
        "STEWARD_OWNERSHIP_OWNER_LABELS": "",
        "STEWARD_OWNERSHIP_CLASS_RULES": "inference: kind=Deployment namespace=prod-*",
        "STEWARD_AGENT_HOST": "0.0.0.0",  # noqa: S104  # said, not listened on
        "STEWARD_AGENT_PORT": "9400",
        "STEWARD_AGENT_INTERVAL_S": "10",
        "STEWARD_AGENT_DEADLINE_S": "1",
        "STEWARD_AGENT_NODE": "n1",
        "STEWARD_AGENT_POD_RESOURCES": "/run/kubelet.sock",
        "STEWARD_AGENT_PROC": "/host/proc",
        "STEWARD_ENFORCE_KINDS": "Deployment,batch/v1/Job",
        "STEWARD_ENFORCE_INTERVAL_S": "30",
        "STEWARD_ENFORCE_IDENTITY": "replica-0",
        "STEWARD_ENFORCE_QUOTA_FILE": "/etc/quota.yaml",
        "STEWARD_ENFORCE_LEASE_NAMESPACE": "ops",
        "STEWARD_ENFORCE_LEASE_NAME": "lease",
        "STEWARD_ENFORCE_LEASE_S": "20",
        "STEWARD_ENFORCE_VERIFY_S": "60",
        "STEWARD_ENFORCE_UNDO_AFTER_S": "3600",
        "STEWARD_ENFORCE_LOW_PRIORITY_CLASS": "low",
        "STEWARD_ENFORCE_NOTIFY_URLS": "json://hooks/a",
        "STEWARD_ENFORCE_METRICS_HOST": "localhost",
        "STEWARD_ENFORCE_METRICS_PORT": "0",
        "STEWARD_DASHBOARD_HOST": "localhost",
        "STEWARD_DASHBOARD_PORT": "65535",
        "STEWARD_DASHBOARD_LANGUAGE": "zh",
    }
    settings = load(environ={**NOTHING, **said})

    assert set(said) == {each.environment_name for each in all_settings()}
    assert settings.data_dir == Path("/srv/steward")
    assert settings.warehouse == WarehouseSettings(
        url="https://warehouse:8420",
        host="::1",
        port=0,
        token="t0",  # noqa: S106  # not a real one
        writer_tokens=("t1", "t2"),
        reader_tokens=("t3",),
        enforcer_tokens=("t4",),
        admin_tokens=(),
        query_timeout_s=1.5,
        query_row_limit=10,
        query_memory_bytes=2048,
        body_limit_bytes=4096,
    )
    assert settings.collect == CollectSettings(
        targets=("http://a:9400/metrics", "http://b:9400/metrics"),
        interval_s=5.0,
        timeout_s=2.0,
        body_limit_bytes=1024,
        file_sd=("/etc/targets/*.json",),
        http_sd=("http://sd:80/a", "http://sd:80/b"),
        sd_interval_s=30.0,
        spool_limit_bytes=2048,
    )
    assert settings.kubernetes == KubernetesSettings(
        access="kubeconfig",
        kubeconfig=Path("/etc/kube/config"),
        context="prod",
        exporters=("app=dcgm-exporter@gpu:9400",),
    )
    assert settings.ownership == OwnershipSettings(
        team_labels=("team", "example.org/team"),
        owner_labels=(),
        class_rules=("inference: kind=Deployment namespace=prod-*",),
    )
    assert settings.agent == AgentSettings(
        host="0.0.0.0",  # noqa: S104  # said, not listened on
        port=9400,
        interval_s=10.0,
        deadline_s=1.0,
        node="n1",
        pod_resources=Path("/run/kubelet.sock"),
        proc=Path("/host/proc"),
    )
    assert settings.enforce == EnforceSettings(
        kinds=("Deployment", "batch/v1/Job"),
        interval_s=30.0,
        identity="replica-0",
        quota_file=Path("/etc/quota.yaml"),
        lease_namespace="ops",
        lease_name="lease",
        lease_s=20.0,
        verify_s=60.0,
        undo_after_s=3600.0,
        low_priority_class="low",
        notify_urls=("json://hooks/a",),
        metrics_host="localhost",
        metrics_port=0,
    )


def test_every_fault_of_every_source_is_told_at_once(tmp_path: Path) -> None:
    file = written(tmp_path, "clustre = 'x'\n[warehouse]\nport = '80'\nprot = 1\n")
    message = fault_of(
        config=file,
        environ={**NOTHING, "STEWARD_LOG_LEVEL": "loud", "STEWARD_COLECT_TARGETS": ""},
        flags={"log.format": "xml"},
    )

    assert message == (
        "6 settings are wrong:"
        f"\n  - {file}: clustre is not a setting; did you mean cluster?"
        f"\n  - {file}: warehouse.port must be a whole number, not '80'"
        f"\n  - {file}: warehouse.prot is not a setting; did you mean warehouse.port?"
        "\n  - $STEWARD_COLECT_TARGETS is not a setting; did you mean STEWARD_COLLECT_TARGETS?"
        "\n  - $STEWARD_LOG_LEVEL must be one of debug, info, warning, error, not 'loud'"
        "\n  - --log-format must be one of console, json, not 'xml'"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("-1", "must be at least 0, not -1", id="just below"),
        pytest.param("0", None, id="the lowest"),
        pytest.param("65535", None, id="the highest"),
        pytest.param("65536", "must be at most 65535, not 65536", id="just above"),
        pytest.param("", "must be a whole number, not ''", id="nothing"),
        pytest.param("80.0", "must be a whole number, not '80.0'", id="a fraction"),
    ],
)
def test_a_port(text: str, fault: str | None) -> None:
    environ = {**NOTHING, "STEWARD_DASHBOARD_PORT": text}
    if fault is None:
        assert load(environ=environ).dashboard.port == int(text)
    else:
        assert fault_of(environ=environ) == f"$STEWARD_DASHBOARD_PORT {fault}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("0", "must be at least 0.1, not 0.0", id="zero"),
        pytest.param("0.099", "must be at least 0.1, not 0.099", id="just below"),
        pytest.param("0.1", None, id="the shortest"),
        pytest.param("86400", None, id="a day"),
        pytest.param("86400.1", "must be at most 86400, not 86400.1", id="more than a day"),
        pytest.param("nan", "must be a finite number, not nan", id="not a number"),
        pytest.param("inf", "must be a finite number, not inf", id="for ever"),
        pytest.param("15s", "must be a number, not '15s'", id="with a unit"),
    ],
)
def test_an_interval(text: str, fault: str | None) -> None:
    environ = {**NOTHING, "STEWARD_COLLECT_INTERVAL_S": text}
    if fault is None:
        assert load(environ=environ).collect.interval_s == float(text)
    else:
        assert fault_of(environ=environ) == f"$STEWARD_COLLECT_INTERVAL_S {fault}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(
            "cluster = ''", "cluster must be a name that is not empty, not ''", id="empty"
        ),
        pytest.param("cluster = 7", "cluster must be text, not 7", id="a number as text"),
        pytest.param("data_dir = ''", "data_dir must be a path that is not empty", id="no path"),
        pytest.param("data_dir = 1", "data_dir must be a path, not 1", id="a number as path"),
        pytest.param(
            "[warehouse]\nport = true", "warehouse.port must be a whole number, not True", id="bool"
        ),
        pytest.param(
            "[collect]\ninterval_s = false",
            "collect.interval_s must be a number, not False",
            id="bool as a number",
        ),
        pytest.param(
            "[collect]\ntargets = 'http://a'",
            "collect.targets must be a list of text",
            id="text as a list",
        ),
        pytest.param(
            "[collect]\ntargets = ['ftp://a']",
            "collect.targets must be host:port or an address that starts with http:// or https://,"
            " not 'ftp://a'",
            id="an address with another scheme",
        ),
        pytest.param(
            "warehouse = 3",
            "warehouse is a section: write [warehouse] above its settings",
            id="a section as a value",
        ),
        pytest.param("[weather]\nport = 1", "weather is not a setting", id="unknown section"),
    ],
)
def test_a_wrong_file_entry(tmp_path: Path, text: str, fault: str) -> None:
    file = written(tmp_path, text)

    assert fault_of(config=file) == f"{file}: {fault}"


def test_a_file_takes_whole_numbers_for_seconds_and_paths_beside_itself(tmp_path: Path) -> None:
    file = written(tmp_path, "data_dir = 'state'\n[collect]\ninterval_s = 30\ntargets = []\n")
    settings = load(config=file, environ=NOTHING)

    assert settings.data_dir == tmp_path / "state"
    assert settings.collect == CollectSettings(interval_s=30.0)
    assert isinstance(settings.collect.interval_s, float)


@pytest.mark.parametrize(
    "target", ["node1", "node1:9400", "[::1]:9400/metrics", "https://10.0.0.1/m?x=1", "http://a/"]
)
def test_a_target_may_be_short(target: str) -> None:
    settings = load(environ={**NOTHING, "STEWARD_COLLECT_TARGETS": target})

    assert settings.collect.targets == (target,)


def test_a_file_that_is_not_there_or_not_toml(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    broken = written(tmp_path, "port = \n")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")

    assert fault_of(config=missing) == f"{missing}: cannot be read (No such file or directory)"
    assert fault_of(config=broken).startswith(f"{broken}: is not TOML (")
    assert fault_of(config=binary).startswith(f"{binary}: is not TOML (")
    assert fault_of(config=tmp_path) == f"{tmp_path}: cannot be read (Is a directory)"


def test_an_empty_variable_unsets_what_may_be_unset(tmp_path: Path) -> None:
    file = written(tmp_path, "[warehouse]\nurl = 'http://a'\nreader_tokens = ['x']\n")
    emptied = {"STEWARD_WAREHOUSE_URL": "", "STEWARD_WAREHOUSE_READER_TOKENS": ""}
    settings = load(config=file, environ={**NOTHING, **emptied})

    assert settings.warehouse == WarehouseSettings()


def test_a_fault_never_repeats_a_secret() -> None:
    message = fault_of(
        environ={
            **NOTHING,
            "STEWARD_WAREHOUSE_TOKEN": "se cret",
            "STEWARD_WAREHOUSE_READER_TOKENS": "ok,un lucky",
        }
    )

    assert "se cret" not in message
    assert "un lucky" not in message
    assert message.count("must be printable ASCII without spaces and commas") == 2


def test_what_kubernetes_tells_pods_about_services_is_ignored() -> None:
    links = {
        "STEWARD_SERVICE_HOST": "10.0.0.1",
        "STEWARD_SERVICE_PORT": "8420",
        "STEWARD_PORT": "tcp://10.0.0.1:8420",
        "STEWARD_PORT_8420_TCP_ADDR": "10.0.0.1",
        "STEWARD_WAREHOUSE_PORT": "tcp://10.0.0.2:8420",
        "STEWARD_WAREHOUSE_SERVICE_PORT_HTTP": "8420",
    }

    assert load(environ={**NOTHING, **links}) == load(environ=NOTHING)


def test_variables_of_others_and_documented_ones_are_left_alone() -> None:
    others = {"STEWARDSHIP": "1", "STEWARD_TEST_DATA": "/data", "PATH": "/bin"}

    assert load(environ={**NOTHING, **others}) == load(environ=NOTHING)


def test_home_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")

    settings = load(environ={**NOTHING, "STEWARD_DATA_DIR": "~/gpu"})
    assert settings.data_dir == Path("/home/ada/gpu")
