"""The tutorial says which exit code each command has and which columns are understood.

That it runs is tested with all other pages.
"""

import session

PAGE = (session.DOCS / "certify.md").read_text()


def test_every_command_has_the_exit_code_that_the_page_names(tmp_path):
    outcome = session.run(PAGE, tmp_path)
    assert outcome.complaints == []
    # A template is written, the example has a verdict, a file is missing, the series has one.
    assert outcome.codes == [0, 0, 2, 0]
    assert (tmp_path / "verdict.html").exists()


def test_the_table_on_the_page_is_the_template(tmp_path):
    session.run(PAGE.split("## I have a CSV")[0], tmp_path)
    rows = (tmp_path / "measurements.csv").read_text().splitlines()
    assert "| " + " | ".join(rows[0].split(",")) + " |" in PAGE
    assert rows[1].rstrip(",").replace(",", " | ") in PAGE


def test_the_promised_columns_are_those_that_are_understood():
    from whorl.measured import layout

    table = PAGE.split("## What the columns may be")[1].split("##")[0]
    for name in (
        *layout.DRIVES,
        *layout.ANSWERS,
        "uncertainty",
        "sample",
        "repeat",
        "measurement",
        "output",
        "input_",
        "column_",
    ):
        assert f"`{name}" in table or f"{name}_" in table
