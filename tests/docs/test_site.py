"""The built site.

Nothing on it asks a network, mathematics is drawn, and what the equations name is linked.
"""

import re
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest

import session

pytestmark = pytest.mark.slow


class Fetched(HTMLParser):
    """What a browser would fetch by itself.

    Scripts, styles, pictures, fonts, frames; not what a reader may follow.
    """

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in (
            "prev",
            "next",
            "index",
            "search",
            "canonical",
        ):
            self.found.append(given.get("href"))
        if tag in (
            "script",
            "img",
            "source",
            "iframe",
            "video",
            "audio",
            "embed",
            "object",
            "use",
            "image",
            "input",
        ):
            self.found += [
                given.get(name)
                for name in ("src", "srcset", "data", "href", "xlink:href")
                if given.get(name)
            ]
        self.found += re.findall(r"url\(([^)]+)\)", given.get("style") or "")


def outside(text):
    parser = Fetched()
    parser.feed(text)
    return [place for place in parser.found if place and urlsplit(place.strip("'\" ")).netloc]


def test_no_page_fetches_anything_from_outside(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert {page.name: found for page in pages if (found := outside(page.read_text()))} == {}
    for sheet in site.rglob("*.css"):
        assert (
            re.findall(
                r"url\(\s*['\"]?(?:https?:)?//[^)]*\)|@import[^;]*//[^;]*", sheet.read_text()
            )
            == []
        )


@pytest.mark.parametrize(
    "line",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<img src="http://example/a.png">',
    ],
)
def test_a_page_that_asks_a_network_is_found(line):
    assert len(outside(f"<html><head>{line}</head></html>")) == 1
    assert (
        outside('<a href="https://example.org">follow me</a><script src="_static/x.js"></script>')
        == []
    )


def test_mathematics_is_drawn_without_a_script(site):
    page = (site / "theory" / "argument.html").read_text()
    assert page.count("<math") > 40
    assert not re.search(r"<script[^>]*mathjax", page, re.I)
    assert "\\operatorname" not in re.sub(r"<annotation.*?</annotation>", "", page)


def test_every_function_that_the_equations_name_is_linked(site):
    page = (site / "equations.html").read_text()
    rows = re.findall(
        r"^\| (?:\d|[ABCS]\d|Prop).*", (session.DOCS / "equations.md").read_text(), re.M
    )
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[3])}
    linked = set(
        re.findall(
            r'<a class="reference internal" '
            r'href="reference/[^"]+"[^>]*><code[^>]*>(?:<span[^>]*>)?([\w.]+)',
            page,
        )
    )
    assert sorted(name for name in named if name not in linked) == []


def test_every_page_has_pictures_with_words_for_those_who_cannot_see_them(site):
    for page in site.rglob("*.html"):
        for picture in re.findall(r"<img [^>]*>", page.read_text()):
            assert re.search(r'alt="[^"]{20,}"', picture), (page.name, picture[:120])
