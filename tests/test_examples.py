"""The examples run, and print what the paper prints."""

import sys

import pytest

import first_light


@pytest.mark.slow
def test_first_light_prints_the_published_numbers_and_draws_its_picture(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["first_light", "--out", str(tmp_path / "new" / "folder")])
    first_light.main()
    printed = capsys.readouterr().out
    for published in (
        "-0.9271875   -0.9271875",
        "1.999921   1.999921",
        "1.999405   1.999405",
        "0.026666...   0.0266667",
    ):
        assert published in printed
    assert (tmp_path / "new" / "folder" / "first_light.png").stat().st_size > 50_000
