"""Tables as people have them are read alike, and every bad one is refused with its place."""

import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

from whorl import regress
from whorl.ground import source
from whorl_cli import main

NAMES = ["forest", "crop", "built"]
ROWS = np.array([[12.5, 3.25, 0.0], [4.0, 8.5, 1.5], [0.25, 6.0, 7.75], [5.0, 5.0, 2.0]])
UNITS = ["Åbo", "St. Gallen", "Évora – old", "York"]


def table(separator=",", point=".", head=None, names=True):
    """The same table in many hands."""
    lines = [separator.join((["Unit"] if names else []) + (head or NAMES))]
    for unit, row in zip(UNITS, ROWS, strict=True):
        cells = [str(value).replace(".", point) for value in row]
        lines.append(separator.join(([unit] if names else []) + cells))
    return "\n".join(lines) + "\n"


def place(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


FORMS = {
    "commas": table().encode(),
    "semicolons": table(";").encode(),
    "tabs": table("\t").encode(),
    "decimal commas": table(";", ",").encode(),
    "decimal commas and tabs": table("\t", ",").encode(),
    "a byte-order mark": table().encode("utf-8-sig"),
    "the set of Windows": table(";", ",").encode("cp1252"),
    "Excel's CSV": b"\xef\xbb\xbf" + table(";", ",").replace("\n", "\r\n").encode(),
    "Excel's own first line": b"\xef\xbb\xbfsep=;\r\n" + table(";", ",").encode(),
    "Excel's Unicode text": table("\t", ",").replace("\n", "\r\n").encode("utf-16"),
    "empty cells at the end of Excel's lines": (
        "\n".join(line + ";;" for line in table(";", ",").splitlines()) + "\n;;;;;\n;;;;;\n"
    ).encode(),
    "comments": ("# surveyed 1990\n" + table() + "# end\n").encode(),
    "comments first in a file with a mark": b"\xef\xbb\xbf# by hand\n" + table().encode(),
    "empty lines": ("\n\n" + table().replace("\n", "\n\n")).encode(),
    "units": table(head=["Forest [ha]", "Crop [ha]", "Built [ha]"]).encode(),
    "other units": table(head=["Forest (%)", "Crop (%)", "Built (%)"]).encode(),
    "names in quotation marks": table(head=[f'"{name}"' for name in NAMES]).encode(),
    "numbers in quotation marks": table(";", ",").replace("3,25", '"3,25"').encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_table_is_read_from_every_hand(form, tmp_path):
    path = place(tmp_path, FORMS[form])
    before, after, weights = regress.read(path, path)
    assert before.tolist() == after.tolist() == ROWS.tolist()
    assert [name.lower() for name in before.columns] == NAMES
    assert before.rows == UNITS
    assert weights is None


@pytest.mark.parametrize("name", ["ID", "unit", "Name", "code", "index", ""])
def test_a_column_that_is_called_so_names_the_lines_though_it_holds_numbers(name, tmp_path):
    frame = pd.DataFrame(ROWS, columns=NAMES)
    frame.insert(0, name, range(1, 5))
    frame.to_csv(tmp_path / "a.csv", index=False)
    before, _, _ = regress.read(tmp_path / "a.csv", tmp_path / "a.csv")
    assert before.columns == NAMES
    assert before.rows == ["1", "2", "3", "4"]


def test_what_pandas_parquet_and_json_write_is_read(tmp_path):
    frame = pd.DataFrame(ROWS, columns=NAMES, index=pd.Index(UNITS, name="unit"))
    frame.to_csv(tmp_path / "a.csv")
    frame.reset_index().to_parquet(tmp_path / "a.parquet")
    frame.reset_index().to_json(tmp_path / "a.json", orient="records", lines=True)
    for name in ("a.csv", "a.parquet", "a.json"):
        before, _, _ = regress.read(tmp_path / name, tmp_path / "a.csv")
        assert (before.tolist(), before.columns, before.rows) == (ROWS.tolist(), NAMES, UNITS)


def test_two_files_are_joined_by_their_names(tmp_path):
    frame = pd.DataFrame(ROWS, columns=NAMES)
    frame.insert(0, "District", [10, 20, 30, 40])
    one, other = tmp_path / "a.csv", tmp_path / "b.csv"
    frame.to_csv(one, index=False)
    frame.iloc[[2, 0, 3, 1]].rename(columns={"District": "district"}).to_csv(other, index=False)
    before, after, _ = regress.read(one, other, key="district")
    assert before.tolist() == after.tolist() == ROWS.tolist()
    before, after, _ = regress.read(one, other)  # a number that nobody called a name is a part
    assert before.columns == ["District", *NAMES]
    assert after.tolist() != before.tolist()


def test_capitals_and_units_need_not_be_repeated_and_what_differs_is_kept(tmp_path):
    head = ["Forest (1990)", "Forest (2020)", "Crop (1990)"]
    path = place(tmp_path, table(head=head))
    before, after, weights = regress.read(
        path, before="forest (1990),CROP", after="Forest (2020), crop (1990)", weights="crop"
    )
    assert before.columns == ["Forest", "Crop"]
    assert after.columns == ["Forest (2020)", "Crop (1990)"]
    assert weights.tolist() == ROWS[:, 2].tolist()
    quoted = place(tmp_path, '"Labour, old";b;c\n1;2;3\n2;2;2\n', "quoted.csv")
    assert (
        regress.read(quoted, before='"Labour, old",b', after="b,c")[0].columns[0] == "Labour, old"
    )


def test_an_empty_cell_is_refused_left_out_or_zero(tmp_path):
    path = place(tmp_path, table().replace("8.5", "NA"))
    with pytest.raises(ValueError, match=r"table.csv, line 3, column crop: .* it is missing"):
        regress.read(path, path)
    before, after, _ = regress.read(path, path, empty="drop")
    assert before.tolist() == after.tolist() == ROWS[[0, 2, 3]].tolist()
    assert before.remarks == [
        "left out for lack of a value or a partner: 1 of 4 lines before and 1 of 4 lines after"
    ]
    assert regress.read(path, path, empty="zero")[0].tolist()[1] == [4.0, 0.0, 1.5]
    for names in (True, False):  # a line is left out with its partner, be it named or in order
        path = place(tmp_path, table(names=names).replace("8.5", ""))
        other = place(tmp_path, table(names=names).replace("7.75", ""), "other.csv")
        before, after, _ = regress.read(path, other, empty="drop")
        assert before.tolist() == after.tolist() == ROWS[[0, 3]].tolist()


def test_the_command_reads_standard_input(tmp_path, monkeypatch, capsys):
    source._taken.cache_clear()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FORMS["Excel's CSV"])))
    path = place(tmp_path, table())
    assert main(["regress", "-", str(path), "--repeats", "5", "--json"]) == 0
    source._taken.cache_clear()
    assert json.loads(capsys.readouterr().out)["from"] == NAMES


GOOD = table()
BAD = {
    "negative": (GOOD.replace("8.5", "-8.5"), "line 3, column crop: every part must be at least 0"),
    "text": (GOOD.replace("8.5", "8.5 ha"), "line 3, column crop: every value must be a number"),
    "thousands": (
        table(";", ",").replace("12,5", "1.012,5"),
        "line 2, column forest: every value must be a number, but it is '1.012,5'",
    ),
    "short line": (GOOD.replace("4.0,8.5", "4.0"), "line 3: the line must have 4 values"),
    "no mass": (GOOD.replace("4.0,8.5,1.5", "0,0,0"), "line 3: a line must have some part above 0"),
    "too much": (
        GOOD.replace("4.0,8.5", "1.7e308,1.7e308"),
        "line 3: a line must have a finite sum, but it is inf",
    ),
    "infinite": (GOOD.replace("8.5", "inf"), "line 3, column crop: every value must be a"),
    "one part": ("unit,a\nx,1\ny,2\n", "--before must name at least 2 parts, but"),
    "no lines": ("unit,a,b\n", "the table must have lines below its names"),
    "empty": ("", "line 1: the file must have a header line"),
    "names twice": ("a,a,b\n1,2,3\n", "column a: names must be unique"),
    "a total": (
        "a,b,sum\n1,2,3\n2,5,7\n",
        "column sum: a part must not be the sum of all others, but it is in every line",
    ),
    "twice the same unit": (
        GOOD.replace("York", "Åbo"),
        "line 5, column Unit: names of lines must",
    ),
    "a unit too few": (
        GOOD.replace("York,5.0,5.0,2.0\n", ""),
        "'York' has none (so have 1 lines in all",
    ),
    "another unit": (GOOD.replace("York", "Bath"), "line 5, column Unit: every line must have its"),
    "no table": (b"\x89PNG\r\n\x1a\n\0\0", "the file must be CSV text"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_one_sentence_with_its_place(case, tmp_path, capsys):
    content, message = BAD[case]
    bad, good = place(tmp_path, content, "bad.csv"), place(tmp_path, GOOD, "good.csv")
    assert main(["regress", str(bad), str(good), "--repeats", "5"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "bad.csv" in said
    assert said.count("\n") == 1


def test_a_weight_that_no_line_has_is_refused_with_its_column(tmp_path, capsys):
    for last, message in (
        (0, "column w: weights must be above 0 in some line, but each is 0"),
        (-1, "line 3, column w: weights must be at least 0, but one is -1"),
    ):
        path = place(tmp_path, f"a,b,w\n1,3,0\n2,1,{last}\n")
        columns = ["--before", "a,b", "--after", "b,a", "--weights", "w"]
        assert main(["regress", str(path), *columns, "--repeats", "5"]) == 2
        assert message in capsys.readouterr().err


def test_a_packed_table_is_unpacked_and_a_damaged_one_refused(tmp_path):
    packed = gzip.compress(FORMS["Excel's CSV"])
    path = place(tmp_path, packed, "table.csv.gz")
    assert regress.read(path, path)[0].tolist() == ROWS.tolist()
    broken = place(tmp_path, packed[:40], "broken.csv.gz")
    with pytest.raises(
        ValueError, match=r"broken\.csv\.gz must be a whole gzip file, but it is dam"
    ):
        regress.read(broken, broken)


def test_a_workbook_is_told_from_an_archive(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "book.xlsx", "w") as file:
        file.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(ValueError, match="it is an Excel workbook: save its sheet as CSV"):
        regress.read(tmp_path / "book.xlsx", tmp_path / "book.xlsx")
