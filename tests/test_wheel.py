"""The package as others get it.

Built, installed beside nothing of this checkout, and asked to work from somewhere else.
"""

import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import whorl

HOME = Path(__file__).parent.parent
PACKAGES = ("whorl", "whorl_audit", "whorl_cli", "whorl_studies")


def sources():
    listing = [
        "git",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        *(f"src/{name}" for name in PACKAGES),
    ]
    names = subprocess.run(
        listing, cwd=HOME, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return {name.removeprefix("src/") for name in names if name and (HOME / name).is_file()}


def inside(wheel):
    return {
        name for name in zipfile.ZipFile(wheel).namelist() if name.partition("/")[0] in PACKAGES
    }


def test_the_version_is_the_same_everywhere():
    written = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["version"]
    cited = re.search(r"^version: (.+)$", (HOME / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited
    assert whorl.__version__ == written == cited[1]


def test_every_package_says_that_it_is_typed():
    assert all((HOME / "src" / name / "py.typed").is_file() for name in PACKAGES)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A source distribution, and the wheel that is built from what it holds."""
    place = tmp_path_factory.mktemp("built")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(place)]
    subprocess.run([*build, "-t", "sdist"], cwd=HOME, check=True, capture_output=True)
    (sdist,) = place.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    subprocess.run(
        [*build, "-t", "wheel"],
        cwd=place / sdist.name.removesuffix(".tar.gz"),
        check=True,
        capture_output=True,
    )
    (wheel,) = place.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The wheel in an environment of its own.

    The packages that it needs are those of this one, so that no network is asked.
    """
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    target = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        str(built),
    ]
    subprocess.run(install, check=True)
    # A path in a file of this kind is taken as it is: what this environment itself links to, our
    # sources among it, is not.
    (Path(target) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin"


def called(installed, where, program, *arguments):
    return subprocess.run(
        [installed / program, *arguments], cwd=where, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_sources_and_no_other(built):
    assert inside(built) == sources()


@pytest.mark.slow
def test_the_library_comes_from_the_wheel(installed, tmp_path):
    for package in PACKAGES:
        found = called(
            installed, tmp_path, "python", "-c", f"import {package}; print({package}.__file__)"
        )
        assert Path(found.strip()).is_relative_to(installed.parent)


@pytest.mark.slow
def test_the_command_of_the_wheel_helps(installed, tmp_path):
    assert "reproduce" in called(installed, tmp_path, "whorl", "--help")


@pytest.mark.slow
def test_the_wheel_reproduces(installed, tmp_path):
    said = called(installed, tmp_path, "whorl", "reproduce", "--quick")
    assert "claims rederived by other routes, all hold" in said
    assert (tmp_path / "runs" / "quick" / "report.html").is_file()
