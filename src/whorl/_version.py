"""The installed version of the distribution `whorl-lab`.

`whorl` is another project there, so this one is distributed as `whorl-lab`; a checkout that was
installed before that still has the old name.
"""

from importlib import metadata

NAMES = ("whorl-lab", "whorl")


def installed() -> str:
    """The version of the distribution.

    Examples:
        >>> from whorl import _version
        >>> _version.installed() == wh.__version__
        True
    """
    for name in NAMES:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise metadata.PackageNotFoundError(NAMES[0])
