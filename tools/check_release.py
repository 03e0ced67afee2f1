"""Let programs that nobody here wrote look at the package.

`make check-release` runs this. docs/about/release.md says what each is for.

Programs whose pins clash have environments of their own under .venv-release, made by the Python
that runs this and by package name, so that any index or mirror will do. One line a check; with a
finding, what the check said, and exit code 1 in the end.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
PLACE, DIST = HOME / ".venv-release", HOME / "dist"
TOOLS = (
    "build",
    "repo-review",
    "sp-repo-review",
    "validate-pyproject[all]",
    "check-wheel-contents",
    "twine",
    "bandit[toml]",
)
HOST = ("check-jsonschema", "zizmor", "pre-commit")
EXTRAS = "explore,sweep,optax,sklearn,krylov"
PACKAGES = ("whorl", "whorl_audit", "whorl_cli", "whorl_studies")


@dataclass(frozen=True)
class Check:
    """One command that must end with code 0."""

    name: str
    command: Sequence[str | Path]
    where: Path = HOME
    path: Path | None = None  # of an environment whose programs come first

    def run(self) -> tuple[bool, str]:
        """Whether it passed, and what it said."""
        search = os.pathsep.join([*([str(self.path)] if self.path else []), os.environ["PATH"]])
        environment = os.environ | {"PATH": search}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(
            list(map(str, self.command)),
            cwd=self.where,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode == 0, done.stdout + done.stderr


def programs(name: str) -> Path:
    """Where the programs of an environment are."""
    return PLACE / name / ("Scripts" if os.name == "nt" else "bin")


def environment(name: str, *packages: str | Path, fresh: bool = False) -> Path:
    """An environment with some packages; the folder of its programs."""
    wanted, ready = list(map(str, packages)), PLACE / name / "ready.txt"
    if fresh or not ready.exists() or ready.read_text().splitlines() != wanted:
        venv.create(PLACE / name, with_pip=True, clear=True)
        # Not in the checkout, where a folder could be taken for a package.
        subprocess.run(
            [programs(name) / "python", "-m", "pip", "install", "--quiet", "--quiet", *wanted],
            check=True,
            cwd=PLACE,
        )
        ready.write_text("\n".join(wanted))
    return programs(name)


def wheel() -> Path:
    """The wheel that was built, from the source distribution that was built before it."""
    return next(DIST.glob("whorl_lab-*.whl"))


def about_the_sources() -> Iterator[Check]:
    """What needs no build."""
    tools, cff = environment("tools", *TOOLS), environment("cff", "cffconvert")
    yield Check("validate-pyproject", [tools / "validate-pyproject", "pyproject.toml"])
    yield Check("repo-review, sp-repo-review", [tools / "repo-review", "--show", "err", "."])
    yield Check(
        "bandit",
        [
            tools / "bandit",
            "-q",
            "-c",
            "pyproject.toml",
            "-r",
            *(f"src/{name}" for name in PACKAGES),
        ],
    )
    yield Check("cffconvert --validate", [cff / "cffconvert", "--validate"])
    yield from _about_the_code_host(environment("host", *HOST))
    shutil.rmtree(DIST, ignore_errors=True)
    yield Check(
        "sdist, and the wheel from it",
        [tools / "python", "-m", "build", "--outdir", DIST, HOME],
        PLACE,
    )


def _about_the_code_host(host: Path) -> Iterator[Check]:
    """The workflows against schemas that come with the checkers: no network."""
    against = [host / "check-jsonschema", "--builtin-schema"]
    flows = sorted((HOME / ".github" / "workflows").glob("*.yml"))
    yield Check("check-jsonschema: workflows", [*against, "vendor.github-workflows", *flows])
    yield Check("zizmor", [host / "zizmor", "--offline", "--quiet", ".github/workflows"])
    yield Check("pre-commit validate-config", [host / "pre-commit", "validate-config"])


def about_the_wheel(outside: Path) -> Iterator[Check]:
    """What looks at the files that are handed out."""
    tools = programs("tools")
    yield Check("check-wheel-contents", [tools / "check-wheel-contents", wheel()])
    yield Check(
        "twine check --strict", [tools / "twine", "check", "--strict", *sorted(DIST.iterdir())]
    )
    typed = environment("types", f"{wheel()}[{EXTRAS}]", "pyright", fresh=True)
    for package in PACKAGES:
        # pyright looks for packages beside the Python that comes first.
        yield Check(
            f"pyright --verifytypes {package}",
            [typed / "pyright", "--verifytypes", package, "--ignoreexternal"],
            outside,
            typed,
        )
    core = environment("core", wheel(), fresh=True)
    yield Check("whorl --help from the wheel", [core / "whorl", "--help"], outside, core)
    yield Check(
        "import whorl from the wheel",
        [core / "python", "-c", "import whorl, whorl_audit, whorl_cli"],
        outside,
        core,
    )
    yield Check(
        "whorl reproduce --quick from the wheel",
        [core / "whorl", "reproduce", "--quick"],
        outside,
        core,
    )


def about_the_doors(developer: Path) -> Iterator[Check]:
    """What is called from our own tests.

    Scikit-learn's check_estimator, and axe-core in a browser.
    """
    alone = [developer, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    yield Check(
        "check_estimator",
        [*alone, "tests/regress/test_estimator.py", "-k", "scikit_learn_finds_nothing_wrong"],
    )
    yield Check("axe-core: report, explorer, docs", ["make", "test-browser"])


def main() -> int:
    """Run every check, and say by exit code whether one found something."""
    parser = argparse.ArgumentParser(
        description="Run the checks that others wrote on the package, its wheel and its pages."
    )
    parser.add_argument(
        "--developer",
        type=Path,
        required=True,
        help="the Python of the environment that the tests run in",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="WORD",
        help="run the build and the checks with this in their name; can be repeated",
    )
    given = parser.parse_args()
    PLACE.mkdir(exist_ok=True)
    failed = 0
    with tempfile.TemporaryDirectory() as outside:
        parts = (
            about_the_sources(),
            about_the_wheel(Path(outside)),
            about_the_doors(HOME / given.developer),
        )
        for check in (check for part in parts for check in part):
            if given.only and not any(word in check.name for word in [*given.only, "sdist"]):
                continue
            begun = time.monotonic()
            passed, said = check.run()
            failed += not passed
            print(
                f"{'passed' if passed else 'FINDING':<9}{check.name} "
                f"({time.monotonic() - begun:.0f} s)",
                flush=True,
            )
            if not passed:
                print(said.rstrip(), flush=True)
            if not passed and "sdist" in check.name:
                break
    print(f"{failed} checks have findings" if failed else "every check passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
