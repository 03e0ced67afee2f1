"""Let roc-validator read a run folder, offline.

`make check-crate` runs this in an environment of its own.

The validator fetches the JSON-LD context of RO-Crate from the web. Here it is handed the copy that
the package `rocrate` ships, so that the check needs no network and cannot change under us.
"""

import argparse
import io
import json
import sys
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.response import addinfourl

CONTEXT = "https://w3id.org/ro/crate/"


def serve(context: bytes) -> None:
    """Answer requests for the context, by either library that the validator uses, and no others."""
    import requests

    def opened(_: Any, asked: Any, *__: Any, **___: Any) -> addinfourl:
        url = asked if isinstance(asked, str) else asked.full_url
        if not url.startswith(CONTEXT):
            raise OSError(f"the check is offline, but {url} was asked for")
        headers = Message()
        headers["Content-Type"] = "application/ld+json"
        return addinfourl(io.BytesIO(context), headers, url, 200)

    def requested(_: Any, __: str, url: str, **___: Any) -> requests.Response:
        if not url.startswith(CONTEXT):
            raise requests.ConnectionError(f"the check is offline, but {url} was asked for")
        answer = requests.Response()
        answer.status_code, answer._content, answer.url = 200, context, url
        answer.headers["Content-Type"] = "application/ld+json"
        return answer

    urllib.request.OpenerDirector.open = opened  # type: ignore[method-assign,assignment]
    requests.Session.request = requested  # type: ignore[method-assign,assignment]


def main() -> int:
    """Validate, print what was found, and say it by exit code."""
    parser = argparse.ArgumentParser(description="Validate a run folder as an RO-Crate, offline.")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--context",
        type=Path,
        required=True,
        help="the file ro-crate.jsonld of the package rocrate",
    )
    given = parser.parse_args()
    context = given.context.read_bytes()
    json.loads(context)
    serve(context)
    from rocrate_validator.models import ValidationSettings  # type: ignore[import-not-found]
    from rocrate_validator.services import validate  # type: ignore[import-not-found]

    settings = ValidationSettings(
        rocrate_uri=str(given.folder),
        profile_identifier="ro-crate-1.1",
        requirement_severity="REQUIRED",
    )
    result = validate(settings)
    for issue in result.get_issues():
        print(issue.severity, issue.message)
    print(f"{given.folder}: {'a valid RO-Crate' if result.passed() else 'NOT a valid RO-Crate'}")
    return 0 if result.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
