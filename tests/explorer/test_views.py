"""A view is one file, wherever it lies; what is written beside code reads to its end."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import whorl.explorer
from whorl.explorer import page, recipe
from whorl.explorer.state import State
from whorl.registry import Field, laws

SOURCE = Path(whorl.explorer.__file__).parent
MINE = '''"""How many updates there are."""

import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.views import views


@views.register("mine", label="A view of mine", order=3)
def figure(run, moment, theme):
    """A sentence about the run."""
    return style.message(f"{run.made} updates", theme)
'''
ADDED = """
import shutil, sys, pathlib, json
import jax; jax.config.update("jax_enable_x64", True)
import whorl.explorer, whorl.explorer.views as views
# The folder of the views, with one file more.
views.__path__.append(sys.argv[1])
from whorl.explorer import Explorer, page
shown = 'id="plot-mine"' in page.html("")
drawn = Explorer(depth=2, epochs=2).figures()["mine"].layout.annotations[0].text
print(json.dumps([shown, drawn]))
"""


def test_a_file_in_the_folder_of_views_is_all_that_a_view_needs(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    answer = subprocess.run(
        [sys.executable, "-c", ADDED, str(tmp_path)], capture_output=True, text=True
    )
    assert answer.stdout == '[true, "12 updates"]\n', answer.stderr


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.stem)
def test_the_first_line_of_every_docstring_is_a_whole_sentence(path):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(ast.parse(path.read_text())):
        text = ast.get_docstring(node) if isinstance(node, kinds) else None
        first, *rest = (text or "Nothing.").splitlines()
        assert first.endswith((".", "?")), (path.name, first)
        assert not rest or rest[0] == "", (path.name, first)


def test_no_tooltip_of_the_page_is_cut():
    told = re.findall(r' title="([^"]*)"', page.html(""))
    assert len(told) > 15
    for words in told:
        assert not re.search(r"(\b(a|an|the|of|to|and|or|in|its|at|by)|[,;:(])$", words), words
        assert not re.search(r"[$`\\]", words), words


def test_a_recipe_calls_a_public_function_by_its_own_arguments(monkeypatch):
    monkeypatch.setattr(laws, "_known", dict(laws._known))
    level = Field("level", 0.1, 1e-6, 1.0, argument="mu")

    @laws.register(parameters=(level,), where=("explorer",))
    def tikhonov(mu):
        return laws.get("leaky").make(leak=mu)

    state = State(law="tikhonov", more=(("level", 0.2),), depth=2, epochs=2)
    # One that is registered and not public is made by the registry, which knows its parameters.
    assert "wh.registry.laws.get('tikhonov').make(level=0.2)" in recipe.python(state)
    monkeypatch.setattr(whorl, "tikhonov", tikhonov, raising=False)
    assert "wh.tikhonov(mu=0.2)" in recipe.python(state)
    through = "wh.rotational(alpha=1.0, omega=3.0, base={})"
    assert through.format("wh.repair()") in recipe.python(State())
    assert through.format("wh.leaky(mu=0.5)") in recipe.python(State(leak=0.5))
