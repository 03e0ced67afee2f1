"""What every door owes to whatever comes through it: a result, or a refusal in one sentence."""

import contextlib
import io
import json
import warnings

import whorl_cli

MANY = 10_000


def sentence(text):
    """One line that a reader can take in: the argument, the rule, the value."""
    assert len(text.splitlines()) == 1, text
    assert len(text) < 1000, text
    assert " must " in text or " may " in text, text
    assert ", but " in text, text


def ends_well(call, *given, also=(), **named):
    """Whether a call answered.

    If it did not, it must have raised `ValueError`, or another kind that it documents, with a
    sentence.

    Python hides most warnings from users and pytest raises all of them: here only what a user would
    see counts.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*given, **named)
    except (ValueError, *also) as refusal:
        refused = refusal
    else:
        return True
    assert type(refused) in (ValueError, *also), repr(refused)
    sentence(str(refused))
    return False


def command_ends_well(*arguments):
    """Whether a command did its work.

    If it did not, it must have ended with code 2 and one line on the error stream.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = whorl_cli.main([str(one) for one in arguments])
    assert code in (0, 1, 2)
    if code == 2:
        assert not out.getvalue()
        told = err.getvalue()
        assert told.endswith("\n")
        sentence(
            json.loads(told)["error"]
            if "--json" in arguments
            else told.removesuffix("\n").removeprefix("whorl: ")
        )
    else:
        assert not err.getvalue()
    return code != 2
