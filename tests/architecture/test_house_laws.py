"""Laws of the house that no linter knows."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("steward", "collector", "sql", "analytics", "enforcer", "dashboard")
HEAVY = ("duckdb", "polars", "pyarrow", "numpy", "sqlalchemy", "streamlit", "starlette", "rich")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCES = sorted(
    path for folder in (*ROOMS, "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("room", ROOMS)
def test_no_other_distribution_owns_our_names(room: str) -> None:
    owners = set(packages_distributions().get(room, ["gpu-steward"]))
    assert owners == {"gpu-steward"}


def test_nothing_in_dashboard_shadows_a_root_package() -> None:
    """`streamlit run` puts dashboard/ first on sys.path."""
    inside = {path.stem for path in (ROOT / "dashboard").iterdir() if path.suffix in {"", ".py"}}
    own = {"reports"}  # dashboard.reports is not a root package: analytics.reports has a parent
    assert inside & ({*ROOMS, *HEAVY, *sys.stdlib_module_names} - own) == set()


def test_the_front_door_stays_light() -> None:
    """`steward --help` loads no engine, so that it answers at once."""
    program = (
        "import sys, contextlib\n"
        "from steward.main import main\n"
        "with contextlib.suppress(SystemExit):\n"
        "    main(['--help'])\n"
        f"print('HEAVY', sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_exemption_gives_its_reason(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    exemption = re.compile(r"# (noqa|type: ignore)\b(?P<rest>.*)$")
    with_reason = re.compile(r"^(: [A-Z0-9, ]+|\[[a-z-, ]+\]).*? (#|-|—) *\w+")
    found = [match["rest"] for line in lines if (match := exemption.search(line))]
    assert [rest for rest in found if not with_reason.match(rest)] == []


def test_every_dependency_gives_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    requirement = re.compile(
        r'^ {4}"[A-Za-z0-9_.-]+(\[[a-z]+\])?[<>=!~].*",(?P<rest>.*)$', re.MULTILINE
    )
    rests = [match["rest"] for match in requirement.finditer(text)]
    assert len(rests) > len(PROJECT["project"]["dependencies"])
    assert [rest for rest in rests if not re.match(r" +# \w+", rest)] == []


def test_no_file_names_a_package_registry() -> None:
    hosts = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "crates" + ".io"]
    tracked = subprocess.run(
        ["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    texts = {name: (ROOT / name).read_bytes() for name in tracked if (ROOT / name).is_file()}
    assert [n for n, text in texts.items() if any(h.encode() in text for h in hosts)] == []


def test_the_lock_holds_every_direct_dependency() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    groups = [
        *PROJECT["project"]["dependencies"],
        *(d for extra in PROJECT["project"]["optional-dependencies"].values() for d in extra),
        *(
            d
            for group in PROJECT["dependency-groups"].values()
            for d in group
            if isinstance(d, str)
        ),
    ]
    names = {re.match(r"[A-Za-z0-9_-]+", d).group().lower().replace("_", "-") for d in groups}  # type: ignore[union-attr] # every requirement starts with a name
    assert names - {"gpu-steward"} - locked == set()


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_states_its_law(room: str) -> None:
    text = (ROOT / room / "__init__.py").read_text(encoding="utf-8")
    assert re.match(r'"""(FLOOR|CORE|WAREHOUSE|EDGE [A-Z ]+): ', text)
