"""Every public name is in the reference, and has an example, which is run where the docstring
is.
"""

import doctest
import importlib
import inspect
import re
from types import SimpleNamespace

import pytest

import session
import whorl
from whorl import measured, sweep
from whorl.feedback import Leaky
from whorl.learning import foresight

DIRECTIVE = re.compile(r"^\.\. auto(?:function|class):: (whorl\.[\w.]+)$", re.M)
DOCUMENTED = sorted(
    name
    for page in (session.DOCS / "reference").glob("*.md")
    for name in DIRECTIVE.findall(page.read_text())
)


def named(path):
    """The object that a dotted name means, through functions that hide their module."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(path)


def public(module):
    """What a package offers.

    Functions and classes of its own that it names without an underscore.
    """
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__.startswith("whorl.")
    }


def has_example(value):
    return bool(doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""))


@pytest.mark.parametrize(
    "module", [whorl, whorl.plot, measured, sweep], ids=lambda module: module.__name__
)
def test_every_public_name_is_in_the_reference(module):
    known = {id(named(name)) for name in DOCUMENTED}
    assert [name for name, value in public(module).items() if id(value) not in known] == []


def signed(value):
    """A function, or the public methods and properties of a class."""
    if not inspect.isclass(value):
        return [value]
    members = [one for name, one in vars(value).items() if not name.startswith("_")]
    methods = [one.fget if isinstance(one, property) else one for one in members]
    return [one for one in methods if inspect.isfunction(one)]


def hidden(module):
    """The classes that public signatures of a module name and that nobody can import from it."""
    offered = {*map(id, vars(module).values()), *map(id, vars(whorl).values())}
    for function in (one for value in public(module).values() for one in signed(value)):
        for hint in inspect.get_annotations(function).values():
            text = f"{hint.__module__}.{hint.__qualname__}" if inspect.isclass(hint) else str(hint)
            for path in re.findall(r"whorl\.[\w.]+", text):
                if inspect.isclass(found := named(path)) and id(found) not in offered:
                    yield path


@pytest.mark.parametrize(
    "module", [whorl, whorl.plot, measured, sweep], ids=lambda module: module.__name__
)
def test_every_class_in_a_public_signature_is_public(module):
    assert sorted(set(hidden(module))) == []


def test_a_class_that_nobody_can_import_is_found():
    def made() -> Leaky:
        return Leaky(1.0)

    made.__module__ = "whorl.made"

    assert list(hidden(SimpleNamespace(made=made))) == ["whorl.feedback.Leaky"]


def test_the_policies_with_foresight_are_in_the_reference():
    assert {
        f"whorl.{name}" for name in ("rollout", "costate", "Action", "learning.foresight.steps")
    } <= set(DOCUMENTED)
    assert foresight.rollout is whorl.rollout


@pytest.mark.parametrize("name", DOCUMENTED)
def test_everything_in_the_reference_has_an_example(name):
    assert has_example(named(name))


def test_a_function_without_an_example_is_found():
    assert not has_example(session.blocks)
    assert not has_example(lambda: None)


def test_the_examples_are_among_those_that_the_suite_runs():
    found = {
        test.name
        for module in ("whorl.systems.layered", "whorl.sweep.table")
        for test in doctest.DocTestFinder().find(importlib.import_module(module))
        if test.examples
    }
    assert {
        "whorl.systems.layered.Network",
        "whorl.systems.layered.jet",
        "whorl.sweep.table.scan",
    } <= found


def unnamed(function):
    """The parameters of a function that its docstring does not name."""
    sentence = inspect.getdoc(function) or ""
    return [
        name
        for name in inspect.signature(function).parameters
        if not re.search(rf"`{name}`|^\s*{name}:", sentence, re.M)
    ]


@pytest.mark.parametrize(
    "function",
    [
        value
        for module in (whorl, whorl.plot, measured, sweep)
        for value in public(module).values()
        if inspect.isfunction(value)
    ],
    ids=lambda function: function.__name__,
)
def test_a_docstring_names_every_parameter(function):
    assert unnamed(function) == []


def test_a_parameter_without_a_word_is_found():
    def speed(distance, time):
        """Divide `distance` by how long it took."""

    assert unnamed(speed) == ["time"]


def test_every_name_of_the_cheat_sheet_exists():
    page = (session.DOCS / "reference" / "cheatsheet.md").read_text()
    names = set(re.findall(r"\bwh(?:orl)?\.([a-zA-Z_][\w.]*\w)", page))
    assert len(names) > 80
    for name in names:
        named(f"whorl.{name}")
