"""Pages that are run.

Every `>>>` and every `$ whorl` on a page is executed, and what it prints is compared with what the
page shows.

A page is one session in one folder, from top to bottom. Three kinds of fenced block take part in
it, all others are left alone:

- Python with prompts, as `doctest` reads it;
- a block that begins with `$ whorl`: commands, each with what it prints below it;
- a block whose first line is a comment that names a file, such as `# mine.toml`: it is written
  under that name.

Three dots stand for anything, as in `doctest`. The tests run every page, and so does the build,
which also collects the pictures.
"""

import doctest
import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"# ([\w.-]+\.toml)\n")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([\w./-]+)\.md(?:#[\w-]*)?\)")
TUTORIALS = {path.stem for path in (DOCS / "tutorials").glob("*.md")}
CHECK = doctest.OutputChecker()


@dataclass
class Outcome:
    """What became of a page: the complaints, and the exit code of every command."""

    complaints: list[str] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    examples: int = 0


def pages() -> list[Path]:
    """Every page with something to run."""
    found = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
    return [path for path in found if any(kind != "text" for kind, _ in blocks(path.read_text()))]


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The page in pieces: text, python, console and file, in their order."""
    end = 0
    for fence in FENCE.finditer(text):
        language, body = fence.groups()
        kind = (
            "python"
            if language == "python" and ">>>" in body
            else "console"
            if body.startswith("$ whorl")
            else ""
        )
        kind = kind or ("file" if FILE.match(body) else "")
        if kind:
            yield "text", text[end : fence.start()]
            yield kind, body
            end = fence.end()
    yield "text", text[end:]


def commands(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with what it should print."""
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        line, _, shown = part.partition("\n")
        yield line, shown


def run(text: str, folder: Path, name: str = "page") -> Outcome:
    """Run a page in a folder, which gets the repository's examples."""
    shutil.copytree(DOCS.parent / "examples", folder / "examples", dirs_exist_ok=True)
    outcome, names = Outcome(), {"__name__": "__main__"}
    with chdir(folder):
        for kind, body in blocks(text):
            if kind == "python":
                _python(body, names, name, outcome)
            elif kind == "console":
                for line, shown in commands(body):
                    _command(line, shown, outcome)
            elif kind == "file" and (title := FILE.match(body)):
                Path(title[1]).write_text(body)
    return outcome


def _python(body: str, names: dict[str, Any], page: str, outcome: Outcome) -> None:
    examples = doctest.DocTestParser().get_examples(body, page)
    session = doctest.DocTest(examples, names, page, None, 0, body)
    session.globs = names  # the constructor made a copy, and a page is one session
    runner = doctest.DocTestRunner(CHECK, verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(session, out=outcome.complaints.append, clear_globs=False)
    outcome.examples += len(examples)


def _command(line: str, shown: str, outcome: Outcome) -> None:
    import whorl_cli

    program, *arguments = shlex.split(line)
    target = None
    if ">" in arguments:
        arguments, target = arguments[: arguments.index(">")], Path(arguments[-1])
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = whorl_cli.main(arguments)
    outcome.codes.append(code)
    outcome.examples += 1
    if target is not None:
        target.write_text(printed.getvalue())
        printed = io.StringIO()
    if program != "whorl" or not CHECK.check_output(shown, printed.getvalue(), doctest.ELLIPSIS):
        outcome.complaints.append(f"$ {line}\nExpected:\n{shown}\nGot:\n{printed.getvalue()}")


def notebook(text: str) -> str:
    """The page as a Jupyter notebook without outputs, which runs to its end wherever it lies.

    Prose, code without prompts, commands behind an exclamation mark, which run with the kernel's
    Python, because the shell may know another one. Files that the page takes from the examples are
    written by its first cell, and a deliberate error is a cell of its own that is marked as one.
    """
    cells = [*_examples(text)]
    for kind, body in blocks(text):
        if kind == "text" and body.strip():
            source = LINK.sub(_pointed, body.strip())
            cells.append({"cell_type": "markdown", "metadata": {}, "source": source})
        elif kind == "python":
            cells += [_code(source, raises) for source, raises in _statements(body)]
        elif kind != "text":
            cells.append(_code(_source(kind, body)))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1) + "\n"


def _code(source: str, raises: bool = False) -> dict[str, Any]:
    about = {"tags": ["raises-exception"]} if raises else {}
    return {
        "cell_type": "code",
        "metadata": about,
        "execution_count": None,
        "outputs": [],
        "source": source,
    }


def _statements(body: str) -> Iterator[tuple[str, bool]]:
    """The code of a block, cut behind every value that it shows and around every error.

    A notebook shows the last expression of a cell only.
    """
    lines = ""
    for example in doctest.DocTestParser().get_examples(body):
        raises = example.exc_msg is not None
        if raises and lines:
            yield lines.rstrip(), False
            lines = ""
        lines += example.source
        if example.want or raises:
            yield lines.rstrip(), raises
            lines = ""
    if lines:
        yield lines.rstrip(), False


def _examples(text: str) -> Iterator[dict[str, Any]]:
    """A cell that writes what the page reads."""
    for name in sorted(set(re.findall(r"examples/[\w./-]*\w", text))):
        file = DOCS.parent / name
        if file.suffix in (".csv", ".toml") and file.is_file():
            folder = "import os; os.makedirs('examples', exist_ok=True)"
            yield _code(folder)
            yield _code(f"%%writefile {name}\n{file.read_text()}".rstrip())


def _pointed(link: re.Match[str]) -> str:
    """A link to another page: to its notebook where it has one, else its words alone."""
    words, page = link[1], link[2]
    return f"[{words}]({page}.ipynb)" if "/" not in page and page in TUTORIALS else words


def _source(kind: str, body: str) -> str:
    if kind == "console":
        return "import sys\n" + "\n".join(
            f'!"{{sys.executable}}" -m {line}' for line, _ in commands(body)
        )
    title = FILE.match(body)
    assert title is not None
    return f"%%writefile {title[1]}\n{body}".rstrip()
