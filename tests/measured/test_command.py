"""The command `whorl certify`, as a person or a script meets it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import whorl_cli
from measured.loops import series
from study.trouble import full_disk
from whorl import measured
from whorl.measured.page import render
from whorl_cli import certify

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "measurements.csv"


@pytest.fixture
def whorl(monkeypatch, capsys):
    """Run the command; answer with exit code, output and errors."""
    monkeypatch.setattr(whorl_cli, "COMMANDS", ("certify",))

    def run(*arguments):
        code = whorl_cli.main(["certify", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def straight(path):
    applied, runs = series(3, 12)
    seen = applied + 0.05 * np.random.default_rng(2).standard_normal(applied.shape)
    head = "repeat,residual_1,residual_2,residual_3,velocity_1,velocity_2,velocity_3\n"
    path.write_text(
        head
        + "".join(
            ",".join(f"{v:.6g}" for v in (run, *e, *w)) + "\n"
            for run, e, w in zip(runs, applied, seen, strict=True)
        )
    )
    return path


def test_a_turning_learner_is_told_in_one_screen(whorl):
    code, out, err = whorl(EXAMPLE, "--time-unit", "s")
    assert (code, err) == (0, "")
    assert out.startswith("This learner turns, at 0.79 rad/s.\n")
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 120


def test_a_verdict_is_told_by_the_exit_code_only_where_that_is_asked_for(whorl, tmp_path):
    table = straight(tmp_path / "straight.csv")
    assert [whorl(EXAMPLE)[0], whorl(EXAMPLE, "--json")[0], whorl(table)[0]] == [0, 0, 0]
    assert whorl(EXAMPLE, "--exit-code")[0] == 1
    assert whorl(EXAMPLE, "--exit-code", "--json")[0] == 1
    assert whorl(table, "--exit-code")[0] == 0


def test_a_reciprocal_learner_is_told(whorl, tmp_path):
    code, out, _ = whorl(straight(tmp_path / "straight.csv"))
    assert code == 0
    assert out.startswith("This learner shows no sign of turning.\n")
    assert re.search(
        r"A skew part of 0\.\d+ of the loop would have been seen in four cases of five", out
    )


def test_machines_are_given_json_with_the_same_numbers(whorl):
    code, out, _ = whorl(EXAMPLE, "--json")
    said = json.loads(out)
    finding = measured.judge(measured.read(EXAMPLE))
    assert code == 0
    assert said["verdict"] == "turns"
    assert said["p"] == finding.p
    loop = np.array(said["loops"][0]["loop"])
    np.testing.assert_allclose(
        loop,
        np.array(said["loops"][0]["symmetric"]) + np.array(said["loops"][0]["skew"]),
        atol=1e-12,
    )
    assert said["loops"][0]["modes"][0]["rotation"]["estimate"] == finding.leading.rotation.estimate


def test_the_same_seed_gives_the_same_digits(whorl):
    assert whorl(EXAMPLE, "--json") == whorl(EXAMPLE, "--json")
    assert whorl(EXAMPLE, "--json", "--seed", 5)[1] != whorl(EXAMPLE, "--json")[1]


def test_a_template_is_written_once_and_can_be_filled_in(whorl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert whorl("--template")[0] == 0
    rows = (tmp_path / "measurements.csv").read_text().splitlines()
    code, _, err = whorl("measurements.csv")
    assert code == 2
    assert (
        "measurements.csv, line 2, column velocity_1: every value must be a number, but it is "
        "missing" in err
    )
    rng = np.random.default_rng(0)
    filled = [
        rows[0],
        *(
            row.rstrip(",") + "," + ",".join(f"{v:.4f}" for v in rng.standard_normal(3))
            for row in rows[1:]
        ),
    ]
    (tmp_path / "filled.csv").write_text("\n".join(filled) + "\n")
    assert whorl("filled.csv")[0] in (0, 1, 4)
    code, _, err = whorl("--template")
    assert code == 2
    assert "--template must name a new file, but measurements.csv exists" in err
    assert whorl("--template", "five.csv", "--outputs", 5)[0] == 0
    assert (
        (tmp_path / "five.csv")
        .read_text()
        .startswith("repeat,residual_1,residual_2,residual_3,residual_4,residual_5,velocity_1")
    )


def test_a_page_is_written_whole(whorl, tmp_path):
    assert whorl(EXAMPLE, "--page", tmp_path / "page.pdf")[0] == 0
    assert (tmp_path / "page.pdf").read_bytes().rstrip().endswith(b"%%EOF")
    assert [path.name for path in tmp_path.iterdir()] == ["page.pdf"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing.csv"], "missing.csv: no such file or directory"),
        ([], "FILE must be given"),
        ([EXAMPLE, "--page", "page.png"], "--page must end in .html or .pdf, but it is 'page.png'"),
        (
            [EXAMPLE, "--alpha", "2"],
            "alpha must be a number greater than 0 and less than 1, but it is 2",
        ),
        ([EXAMPLE, "--time-scale", "-1"], "time_scale must be a number greater than 0"),
        (
            [EXAMPLE, "--seed", "-1"],
            "--seed must be a whole number from 0 to 9223372036854775807, but it is -1",
        ),
        (
            [EXAMPLE, "--page", "nowhere/page.html"],
            "--page must name a file in a folder that exists, but nowhere does not",
        ),
        (["--template", "x.txt"], "--template must name a file that ends in .csv"),
        (["--template", "x.csv", "--outputs", "1"], "outputs must be a whole number of at least 2"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(
    whorl, tmp_path, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    code, out, err = whorl(*arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_bad_table_leaves_no_page_behind(whorl, tmp_path):
    (tmp_path / "bad.csv").write_text("residual_1,residual_2,velocity_1,velocity_2\n1,2,3,x\n")
    code, out, err = whorl(tmp_path / "bad.csv", "--page", tmp_path / "page.html", "--json")
    assert (code, out) == (2, "")
    assert (
        "line 2, column velocity_2: every value must be a number, but it is 'x'"
        in json.loads(err)["error"]
    )
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def test_a_page_on_a_full_disk_leaves_the_old_one_and_is_named(whorl, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("old")
    with full_disk(1000):
        code, out, err = whorl(EXAMPLE, "--page", page)
    assert (code, err) == (2, f"whorl: {page}: file too large\n")
    assert out.startswith("This learner")
    assert page.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_help_answers_without_the_heavy_packages():
    script = "import sys; from whorl_cli import certify; print(*{'jax', 'numpy', 'pyarrow', 'matplotlib'} & set(sys.modules))"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()
        == ""
    )
    assert "exit codes" in certify.EXIT


def test_the_page_is_self_contained_escaped_and_has_no_identifier_twice():
    applied, runs = series(4, 10)
    names = np.array(["<script>alert(1)</script>"] * len(applied))
    noisy = applied + 0.1 * np.random.default_rng(0).standard_normal(applied.shape)
    finding = measured.certify(applied, noisy, repeat=runs, sample=names, time_unit="<s>")
    page = render(finding)
    assert "<script" not in page
    assert all(
        link.startswith(("#", "data:image/png;base64,"))
        for link in re.findall(r'(?:href|src)="([^"]*)"', page)
    )
    assert "@import" not in page
    assert "http" not in page.replace("http://www.w3.org/", "").replace("<meta http-equiv=", "")
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert page.count("<figure>") == 5
    assert page.count('role="img"') == 5
    for used in re.findall(r'(?:url\(#|href="#)([^)"]+)', page):
        assert used in identifiers


def test_a_learner_with_one_direction_has_a_page_too(tmp_path):
    rng = np.random.default_rng(0)
    applied = rng.standard_normal((20, 2))
    finding = measured.certify(applied, applied + 0.1 * rng.standard_normal((20, 2)))
    page = measured.write(finding, tmp_path / "page.html").read_text()
    assert "cannot turn" in page
    assert page.count("<figure>") == 4


def test_many_samples_still_fit_on_one_screen():
    rng = np.random.default_rng(0)
    applied = rng.standard_normal((10 * 14, 3))
    finding = measured.certify(
        applied, applied + rng.standard_normal(applied.shape), sample=np.repeat(np.arange(10), 14)
    )
    assert len(str(finding).splitlines()) <= 28
    assert "and 2 more samples with larger p" in str(finding)


def test_a_name_from_a_file_does_not_speak_to_the_terminal(whorl, tmp_path):
    evil = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
    lines = straight(tmp_path / "straight.csv").read_text().splitlines()
    for kept, code in (
        (12, 2),
        (len(lines), 0),
    ):  # too few rows are refused, and the name is in both answers
        rows = [
            lines[0] + ",sample",
            *(
                f"{line},{evil}{number % 2}"
                for number, line in enumerate(lines[1:])
                if number < kept
            ),
        ]
        (tmp_path / "evil.csv").write_text("\n".join(rows))
        answer = whorl(tmp_path / "evil.csv")
        assert answer[0] == code
        shown = "".join(answer[1:])
        assert r"\x1b[2J\x1b]0;owned\x07\x9b31m\u202e" in shown
        assert [letter for letter in shown if not letter.isprintable() and letter != "\n"] == []


def test_the_page_has_a_content_policy_and_runs_nothing(tmp_path):
    page = render(measured.judge(measured.read(EXAMPLE), time_unit=r"$\frac{<script>"))
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy.startswith("default-src 'none';")
    assert "script" not in policy
    assert page.index(policy) < page.index("<style")
    assert "<script" not in page
    assert not re.search(r"\son\w+=", page)
