"""A parser that helps: it says what was probably meant, and its help follows the terminal."""

import argparse
import difflib
import itertools
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn


class Shape(argparse.RawDescriptionHelpFormatter):
    """Paragraphs are filled to the width of the terminal.

    An indented line stays a line; where it is too long it goes on below its own words. Commands
    stay whole, to be copied.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        made = []
        for indented, run in itertools.groupby(
            text.strip("\n").splitlines(), lambda line: line.startswith(" ") or not line
        ):
            lines = list(run)
            made += [_hung(line, width) for line in lines] if indented else [_filled(lines, width)]
        return textwrap.indent("\n".join(made), indent)


def _filled(lines: Iterable[str], width: int) -> str:
    return textwrap.fill(" ".join(" ".join(lines).split()), width)


def _hung(line: str, width: int) -> str:
    if not line or line.lstrip().startswith("whorl "):
        return line
    start = re.match(r" *(?:\S+ {2,})?", line)
    assert start is not None
    return textwrap.fill(line, width, subsequent_indent=" " * start.end())


class Parser(argparse.ArgumentParser):
    """The parser of the command and of each of its parts."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**{"formatter_class": Shape, "allow_abbrev": False} | how)

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """Refuse what is not known here, where its neighbours are."""
        found, extra = super().parse_known_args(args, namespace)
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return found, extra

    def error(self, message: str) -> NoReturn:
        """The usage, the refusal, and what was probably meant."""
        options = [name for name in self._option_string_actions if name.startswith("--")]
        wrong = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        meant = near(wrong[1], options) if wrong else ""
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice:
            meant = near(choice[1], re.findall(r"[\w-]+", choice[2]))
        super().error(message + meant)


def near(word: str, known: Iterable[str]) -> str:
    """The question that offers the known word closest to this one; nothing where none is close.

    Examples:
        >>> from whorl_cli._parser import near
        >>> near("strctural", ["structural", "threshold"])
        '; did you mean structural?'
    """
    close = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


class Completion(argparse.Action):
    """Print a script for a shell, and stop."""

    def __call__(
        self, parser: argparse.ArgumentParser, _given: Any, shell: Any, _option: Any = None
    ) -> None:
        """With the commands and options that this parser has."""
        parser._print_message(completion(shell, options(parser)) + "\n", sys.stdout)
        parser.exit()


def options(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """The options of every command, by its name; those of the top under an empty name."""
    found = {"": sorted(parser._option_string_actions)}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                found[name] = sorted(word for word in one._option_string_actions if word[1] == "-")
    return found


def completion(shell: str, known: Mapping[str, Sequence[str]]) -> str:
    """A script that lets a shell complete commands, their options, and files."""
    commands = " ".join(name for name in known if name)
    if shell == "fish":
        lines = ["complete -c whorl -n __fish_use_subcommand -f -a " + repr(commands)]
        for name, words in known.items():
            seen = (
                f"-n '__fish_seen_subcommand_from {name}'" if name else "-n __fish_use_subcommand"
            )
            lines += [f"complete -c whorl {seen} -l {word[2:]}" for word in words if word[1] == "-"]
        return "\n".join(lines)
    cases = "\n".join(
        f'    {name}) words="{" ".join(words)}" ;;' for name, words in known.items() if name
    )
    script = f"""_whorl() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="{commands} {" ".join(known[""])}"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [ "$COMP_CWORD" -gt 1 ] && COMPREPLY+=($(compgen -f -- "$word"))
}}
complete -o filenames -F _whorl whorl"""
    return ("autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else "") + script
