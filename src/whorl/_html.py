"""Make HTML pages from templates.

Whatever is written into a page is escaped, nothing may be missing, and the colours are those of the
palette.
"""

from functools import cache

import jinja2

from whorl import palette


@cache
def templates(package: str, folder: str = "templates") -> jinja2.Environment:
    """The templates in a folder of a package.

    They know `light` and `dark`, the themes, and `both`, the colours for either ground; a style
    sheet or a script is a template too, and is put into a page by `include`.

    Examples:
        >>> from whorl import _html
        >>> page = _html.templates("whorl.explorer", "assets").from_string("<p>{{ word }}</p>")
        >>> page.render(word="<b>")
        '<p>&lt;b&gt;</p>'
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(light=palette.LIGHT, dark=palette.DARK, both=palette.BOTH)
    return environment
