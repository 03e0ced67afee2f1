"""A design is read, or refused in one sentence that names the file, the line, the rule and the
value.
"""

import os
import re
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.small import text
from whorl.ground import reader
from whorl.study import design, kinds

SHIPPED = {name: design.shipped(name).text.decode() for name in kinds.names()}


def refusal(source, where="mine.toml"):
    """The one sentence with which a text is refused."""
    with pytest.raises(ValueError) as refused:
        design.parse(source.encode() if isinstance(source, str) else source, where)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert type(refused.value) is ValueError
    return sentence


def line_of(source, start):
    return 1 + next(
        number for number, line in enumerate(source.splitlines()) if line.startswith(start)
    )


def changed(old, new, kind="threshold"):
    source = text(kind)
    assert source.count(old) == 1
    return source.replace(old, new)


@pytest.mark.parametrize("name", kinds.names())
def test_a_shipped_design_says_where_every_value_comes_from(name):
    study = design.shipped(name)
    assert (study.name, study.kind, study.text.decode()) == (name, name, SHIPPED[name])
    assert study.parameters.keys() == kinds.get(name).parameters.declared().keys()
    for entry in study.parameters.values():
        assert entry["origin"] in (
            ("stated", "reading") if name in kinds.paper() else design.ORIGINS
        )
    assert {gate.origin for gate in study.gates} <= set(design.ORIGINS)
    assert {gate.relation for gate in study.gates} <= set(design.RELATIONS)


def test_the_verdicts_that_the_paper_registered():
    assert {name: design.shipped(name).expected for name in kinds.paper()} == {
        "structural": "FAIL",
        "threshold": "PASS",
        "horizon": "PASS",
    }


def test_the_numbers_that_the_paper_states():
    structural, threshold, horizon = (design.shipped(name).values() for name in kinds.paper())
    assert (structural.seed, structural.families, structural.depths) == (20261020, 25, [2, 3, 4, 6])
    assert (structural.omegas, structural.updates, structural.step, structural.leak) == (
        [0.0, 0.5, 1.0, 2.0],
        8,
        0.05,
        0.1,
    )
    assert (threshold.seed, threshold.bootstrap_seed, threshold.families) == (
        20261021,
        20261022,
        50,
    )
    assert (threshold.depths, threshold.betas, threshold.resamples) == (
        [1, 2, 4, 6],
        [0.0, 1.0, 2.0, 4.0, 8.0],
        5000,
    )
    assert (horizon.seed, horizon.bootstrap_seed, horizon.trials) == (20260815, 20260816, 20)
    assert (horizon.epochs, horizon.scales, len(horizon.depths) * len(horizon.betas) * 2) == (
        30,
        [0.1, 0.2],
        12,
    )


def test_quick_values_and_others_take_the_place_of_the_registered_ones():
    study = design.shipped("threshold")
    assert (
        study.values().families,
        study.values(quick=True).families,
        study.values(True, families=9).families,
    ) == (50, 6, 9)
    assert study.values(quick=True).betas == study.values().betas


def test_a_study_that_is_not_the_papers_is_refused():
    with pytest.raises(
        ValueError,
        match=r"kind must be one of structural, threshold, horizon.*, but it is 'other'",
    ):
        design.shipped("other")


@pytest.mark.parametrize("kind", kinds.paper())
def test_a_template_is_the_papers_design_under_another_name(kind):
    own, theirs = design.parse(design.template(kind).encode()), design.shipped(kind)
    assert (own.name, own.kind, own.expected) == ("mine", kind, None)
    assert vars(own.values()) == vars(theirs.values())
    assert vars(own.values(quick=True)) == vars(theirs.values(quick=True))
    assert (
        {entry["origin"] for entry in own.parameters.values()}
        == {gate.origin for gate in own.gates}
        == {"own"}
    )
    ours, paper = (
        [(g.name, g.statistic, g.relation, g.bound) for g in study.gates] for study in (own, theirs)
    )
    assert ours == paper


def test_the_hash_is_that_of_the_very_bytes(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(text().encode() + b"# a remark\r\n")
    study = design.read(path)
    assert study.text == path.read_bytes()
    assert study.sha256 != design.parse(text().encode()).sha256


@pytest.mark.parametrize(
    ("old", "new", "start", "rule"),
    [
        (
            'name = "mine"',
            'name = "My study"',
            "name",
            "name must be lower-case letters, .*but it is 'My study'",
        ),
        ('name = "mine"', 'name = "../up"', "name", r"name must be .*but it is '\.\./up'"),
        (
            'name = "mine"',
            "name = 3",
            "name",
            "name must be a text of 1 to 500 characters, but it is 3",
        ),
        (
            'kind = "threshold"',
            'kind = "spectral"',
            "kind",
            "kind must be one of structural, threshold, horizon.*, but it is 'spectral'",
        ),
        ('kind = "threshold"', "kind = [1]", "kind", r"kind must be one of .*but it is \[1\]"),
        (
            'title = "a small one"',
            'title = ""',
            "title",
            "title must be a text of 1 to 500 characters, but it is ''",
        ),
        (
            'title = "a small one"',
            'title = "t"\ncolour = 1',
            "colour",
            "a design may hold .*, but it holds 'colour'",
        ),
        (
            'title = "a small one"',
            'title = "t"\nexpected = "MAYBE"',
            "expected",
            "expected must be one of PASS, FAIL, but it is 'MAYBE'",
        ),
        (
            "[quick]",
            "[quick]\nfamilies = 1",
            "families = 1",
            "families must be a whole number from 2 to 100000, but it is 1",
        ),
        (
            "[quick]",
            "[quick]\ntrials = 4",
            "trials = 4",
            "quick may change the parameters of a threshold study, but 'trials' is none",
        ),
        ("bound = 16", "bound = nan", "bound", "bound must be a finite number, but it is nan"),
        ("bound = 16", "bound = true", "bound", "bound must be a finite number, but it is True"),
        (
            "bound = 16",
            "bound = 1" + 400 * "0",
            "bound",
            r"bound must be a finite number, but it is 10+\.\.\.$",
        ),
        (
            "bound = 16",
            "bound = 0x" + 5000 * "f",
            "bound",
            "bound must be a finite number, but it is a very long number",
        ),
        (
            "bound = 16",
            "",
            "[[gates]]",
            "a gate must have bound, name, origin, relation, statistic, but it is {'name'",
        ),
        (
            "bound = 16",
            "bound = 16\nweight = 2",
            "[[gates]]",
            "a gate must have .*, but it is {'name'",
        ),
        (
            'relation = "=="',
            'relation = "!="',
            "relation",
            "relation must be one of <, <=, >, >=, ==, but it is '!='",
        ),
        (
            'relation = "=="',
            'relation = "=="\n[[gates.deeper]]\nx = 1',
            "[[gates]]",
            "a gate must have",
        ),
    ],
)
def test_a_refusal_names_file_line_rule_and_value(old, new, start, rule):
    source = changed(old, new)
    assert re.match(rf"mine\.toml, line {line_of(source, start)}: {rule}", refusal(source))


@pytest.mark.parametrize(
    ("kind", "name", "value", "rule"),
    [
        ("threshold", "families", "4.0", "a whole number from 2 to 100000, but it is 4.0"),
        ("threshold", "families", "true", "a whole number from 2 to 100000, but it is True"),
        ("threshold", "families", '"4"', "a whole number from 2 to 100000, but it is '4'"),
        ("threshold", "seed", "-1", "a whole number from 0 to 9223372036854775807, but it is -1"),
        ("threshold", "seed", "9223372036854775808", "a whole number from 0 to"),
        ("threshold", "width", "4", "3, but it is 4"),
        (
            "threshold",
            "depths",
            "[]",
            "a list of different whole numbers from 1 to 64, but it is []",
        ),
        (
            "threshold",
            "depths",
            "[2, 2]",
            "a list of different whole numbers from 1 to 64, but it is [2, 2]",
        ),
        (
            "threshold",
            "depths",
            "[[1]]",
            "a list of different whole numbers from 1 to 64, but it is [[1]]",
        ),
        (
            "threshold",
            "betas",
            "[-1.0]",
            "a list of different numbers from 0 to 100, but it is [-1.0]",
        ),
        (
            "threshold",
            "betas",
            '["a", 1]',
            "a list of different numbers from 0 to 100, but it is ['a', 1]",
        ),
        ("threshold", "floor", "0.0", "a number from 1e-09 to 1, but it is 0.0"),
        ("threshold", "concentration", "inf", "a number from 0.001 to 1e+06, but it is inf"),
        ("threshold", "concentration", "nan", "a number from 0.001 to 1e+06, but it is nan"),
        (
            "threshold",
            "concentration",
            "1" + 400 * "0",
            "a number from 0.001 to 1e+06, but it is 1000",
        ),
        (
            "threshold",
            "concentration",
            "1979-05-27",
            "a number from 0.001 to 1e+06, but it is datetime.date(1979, 5, 27)",
        ),
        (
            "structural",
            "negative_start",
            "[0.5, 0.5, 0.1]",
            "three numbers of at least 0.001 that sum to 1, but it is [0.5, 0.5, 0.1]",
        ),
        (
            "structural",
            "negative_start",
            "[0.5, 0.5]",
            "three numbers of at least 0.001 that sum to 1, but it is [0.5, 0.5]",
        ),
        (
            "structural",
            "steps",
            "[0.1]",
            "a list of at least 2 different numbers from 1e-06 to 1, but it is [0.1]",
        ),
        ("horizon", "chunk", "100", "a multiple of 64 from 64 to 65536, but it is 100"),
        (
            "horizon",
            "scales",
            "[1.5]",
            "a list of different numbers from 1e-09 to 1, but it is [1.5]",
        ),
        ("horizon", "trials", "1", "a whole number from 2 to 100000, but it is 1"),
    ],
)
def test_a_parameter_of_the_wrong_kind_is_refused(kind, name, value, rule):
    source = re.sub(
        rf"^{name} = .*$",
        f'{name} = {{ value = {value}, origin = "own" }}',
        text(kind),
        count=1,
        flags=re.MULTILINE,
    )
    assert refusal(source).startswith(
        f"mine.toml, line {line_of(source, name)}: {name} must be {rule}"
    )


@pytest.mark.parametrize("kind", kinds.paper())
def test_every_parameter_is_needed_and_no_other_is_taken(kind):
    source = text(kind)
    for name in kinds.get(kind).parameters.declared():
        without = re.sub(rf"^{name} = .*\n", "", source, count=1, flags=re.MULTILINE)
        head = f"mine.toml, line {line_of(source, '[parameters]')}: a {kind} study must have the parameter {name} ({kinds.get(kind).parameters.declared()[name].help}), but it is missing"
        assert refusal(without) == head
    more = source.replace("[parameters]", '[parameters]\nspin = { value = 1, origin = "own" }')
    assert refusal(more).startswith(
        f"mine.toml, line {line_of(more, 'spin')}: the parameters of a {kind} study must be seed, "
    )
    assert refusal(more).endswith("but one is called 'spin'")


@pytest.mark.parametrize(
    "entry",
    ["4", "{ value = 4 }", '{ origin = "own" }', '{ value = 4, origin = "own", unit = "1" }', "[]"],
)
def test_a_parameter_says_value_and_origin(entry):
    source = re.sub(r"^families = .*$", f"families = {entry}", text(), count=1, flags=re.MULTILINE)
    assert refusal(source).startswith(f"mine.toml, line {line_of(source, 'families')}: ")
    assert "origin" in refusal(source)


def test_an_origin_or_a_note_that_is_none_is_refused():
    assert "origin must be one of stated, reading, own, but it is 'guess'" in refusal(
        re.sub(
            r"^families = .*$",
            'families = { value = 4, origin = "guess" }',
            text(),
            count=1,
            flags=re.MULTILINE,
        )
    )
    assert "note must be a text of 1 to 500 characters, but it is 7" in refusal(
        re.sub(
            r"^families = .*$",
            'families = { value = 4, origin = "own", note = 7 }',
            text(),
            count=1,
            flags=re.MULTILINE,
        )
    )


@pytest.mark.parametrize("key", ["name", "kind", "title"])
def test_what_is_not_there_at_all_is_called_missing(key):
    source = re.sub(rf"^{key} = .*\n", "", text(), count=1, flags=re.MULTILINE)
    assert re.match(rf"mine\.toml: {key} must be .*, but it is missing$", refusal(source))


def test_a_design_without_parameters_or_gates_is_refused():
    head = 'name = "mine"\nkind = "threshold"\ntitle = "t"\n'
    assert refusal(head) == "mine.toml: parameters must be a table, but it is missing"
    assert (
        refusal(head + "parameters = 3\n")
        == "mine.toml, line 4: parameters must be a table, but it is 3"
    )
    assert (
        refusal("quick = 3\n" + text().replace("[quick]\n", ""))
        == "mine.toml, line 1: quick must be a table, but it is 3"
    )
    without = text().partition("[[gates]]")[0]
    assert refusal(without) == "mine.toml: gates must be one or more [[gates]] tables, but it is []"
    assert "a gate must have" in refusal("gates = [3]\n" + without)


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        (
            'name = "mine"\nkind "threshold"',
            r"must be a TOML file, but it cannot be read: .*line 2",
        ),
        ("a = 1\na = 2\nb = 3", r"must be a TOML file, but it cannot be read: .*line 2"),
        ("x = " + 10_000 * "[", r"must be a TOML file, but it cannot be read: "),
        ("x = " + 5000 * "1", r"must be a TOML file, but it cannot be read: "),
        (b"\xff\xfe", r"must be UTF-8 text, but byte 0 is not"),
        ("", r"name must be a text of 1 to 500 characters, but it is missing"),
    ],
    ids=["syntax", "twice", "nested", "long", "bytes", "empty"],
)
def test_what_is_not_a_design_is_refused_as_such(source, rule):
    assert re.match(rf"mine\.toml:? {rule}", refusal(source))


def test_what_is_not_a_file_of_reasonable_size_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be a design file, but it is a folder$"):
        design.read(tmp_path)
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (reader.LARGEST + 1))
    with pytest.raises(
        ValueError,
        match=r"large\.toml must be a design of at most 1000000 bytes, but it is larger$",
    ):
        design.read(large)
    with pytest.raises(FileNotFoundError):
        design.read(tmp_path / "missing.toml")


def read_or_refused(source):
    try:
        return isinstance(design.parse(source, "mine.toml"), design.Design)
    except ValueError as wrong:
        refused = wrong
    assert type(refused) is ValueError
    assert len(str(refused).splitlines()) == 1
    assert str(refused).startswith("mine.toml")
    assert len(str(refused)) < 1000
    return False


WORDS = [
    "name",
    "kind",
    "[parameters]",
    "[quick]",
    "[[gates]]",
    "value",
    "origin",
    "seed",
    "bound",
    '"threshold"',
    '"own"',
    "true",
]
SIGNS = [
    "[[",
    "]]",
    "=",
    '"',
    "'''",
    "{",
    "}",
    "\n",
    "\r",
    "\t",
    ",",
    ".",
    "#",
    "\\u0000",
    "\u2028",
    "\x00",
]
NUMBERS = ["0x", "1e9999", "nan", "-inf", "1979-05-27", "9" * 30]
PIECES = st.sampled_from([*WORDS, *SIGNS, *NUMBERS])
SOUP = st.lists(PIECES, max_size=40).map(" ".join)
CHANGE = st.tuples(
    st.floats(0, 1, exclude_max=True), st.integers(0, 12), st.one_of(PIECES, st.text(max_size=4))
)


@given(st.one_of(st.binary(max_size=200), SOUP.map(str.encode), st.text().map(str.encode)))
def test_any_text_is_a_design_or_refused_in_one_line(source):
    read_or_refused(source)


@given(st.sampled_from(kinds.paper()), st.lists(CHANGE, min_size=1, max_size=4))
def test_a_mutated_design_is_a_design_or_refused_in_one_line(kind, changes):
    source = SHIPPED[kind]
    for where, many, new in changes:
        at = int(where * len(source))
        source = source[:at] + new + source[at + many :]
    read_or_refused(source.encode())


@given(st.sampled_from(kinds.paper()), st.data())
def test_a_design_with_one_line_lost_or_doubled_is_a_design_or_refused_in_one_line(kind, data):
    lines = SHIPPED[kind].splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    doubled = data.draw(st.booleans())
    read_or_refused("\n".join(lines[: at + doubled] + lines[at + (not doubled) :]).encode())


def test_the_fuzz_sees_designs_and_refusals():
    assert read_or_refused(text().encode())
    assert not read_or_refused(b"name = 1")


@pytest.mark.parametrize(
    "source",
    [
        "a." * 50_000 + "a = 1",
        "[" + "a." * 50_000 + "a]",
        "x = {" + "a . " * 50_000 + "a = 1}",
        '"a b".' * 50_000 + "a = 1",
        r'"\"".' * 50_000,
    ],
    ids=["key", "header", "inline", "quoted", "escaped"],
)
def test_a_key_of_very_many_parts_costs_nothing(source):
    tracemalloc.start()
    assert (
        refusal(f"# a remark\n{source}")
        == "mine.toml must be a TOML file, but it cannot be read: a key of more than 8 parts in line 2"
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # it took 10 GB


def test_a_design_is_a_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(
        ValueError, match=r"pipe\.toml must be a design file, but it is no regular file$"
    ):
        design.read(tmp_path / "pipe.toml")


@pytest.mark.parametrize(
    "spoilt",
    [
        "#" + '"\\' * 100_000,
        "#" + '"' * 200_000,
        'x = "' + '\\"' * 100_000,
        'x = """' + '"" ' * 60_000,
        "x = '''" + "'' " * 60_000,
        "x" + " " * 200_000 + "= 1",
        "x = " + "1" * 200_000 + "x",
        "x = " + "[" * 100_000,
    ],
    ids=["comment", "quotes", "text", "long text", "raw text", "spaces", "digits", "nested"],
)
def test_a_long_line_of_a_design_is_read_in_linear_time(spoilt):
    begun = time.process_time()
    refusal(f'name = "x"\n{spoilt}')
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("a.b.c.d.e.f.g.h.i = 1", 1),
        ("\"a\" . 'b' .c.d.e.f.g.h.i = 1", 1),
        ('x = 1\ny = ["""a"""", { a.b.c.d.e.f.g.h.i = 1 }]', 2),
        ("x = '''\n# '''\na.b.c.d.e.f.g.h.i = 1", 3),
    ],
)
def test_a_dotted_key_of_too_many_parts_is_refused_with_its_line(source, line):
    assert refusal(source).endswith(f"a key of more than 8 parts in line {line}")


@pytest.mark.parametrize(
    "source",
    ["# a.b.c.d.e.f.g.h.i", 'x = "a.b.c.d.e.f.g.h.i"', "x = '''\na.b.c.d.e.f.g.h.i'''"],
)
def test_dots_in_comments_and_texts_are_no_keys(source):
    assert "parts" not in refusal(source)
