"""Which definitions a study uses.

Beginning at some entry points, the names in each definition are followed, through imports and
attributes of modules, until no new one is found. What is looked up by name while a program runs is
followed too: entries of a registry by the texts in what is used, and by those that a design names.
docs/studies.md states the rule.
"""

import ast
import re
from collections.abc import Callable, Collection
from pathlib import Path

from whorl.study.modules import Chain, Module, decorator, parsed, uses

Place = tuple[str, str]  # a module and a name in it
DOTTED = re.compile(r"[a-z]\w*(\.\w+)+")
Find = Callable[[str], Path | None]  # the file of a module that counts


class Reach:
    """The definitions that some entry points use.

    Args:
        find: Gives the file of a module, or None for a module that does not count.
        texts: Texts of a design, each of which may name an entry of a registry.

    Attributes:
        parts: The definitions that were found. The empty name of a module is what runs when it is
            imported.
    """

    def __init__(self, find: Find, texts: Collection[str] = ()) -> None:
        self._find, self._texts = find, set(texts)
        self._modules: dict[str, Module | None] = {}
        self._entries: list[tuple[Place, str, Place]] = []
        self._waiting: list[Place] = []
        self._heard: set[str] = set()
        self._whole: set[str] = set()
        self.parts: set[Place] = set()

    def begin(self, name: str, part: str) -> None:
        """Count a definition and all that it uses."""
        self.follow(name, (part,))
        while self._waiting or self._chosen():
            self._use(*self._waiting.pop())

    def module(self, name: str) -> Module | None:
        """A module that counts, with everything that runs when it is imported."""
        if name not in self._modules:
            path = self._find(name)
            inside = path is not None and path.name == "__init__.py"
            package = name if inside else name.rpartition(".")[0]
            found = None if path is None else parsed(path.read_text(), package)
            self._modules[name] = found
            if found is not None:
                self._imported(name, found)
        return self._modules[name]

    def _imported(self, name: str, found: Module) -> None:
        if around := name.rpartition(".")[0]:
            self.module(around)
        self._need(found.needs)
        self._part(name, "")
        for chain, said, definition in found.hooks:
            owner = self._owner(name, chain)
            if owner is None:
                continue
            if self._registry(owner):
                self._entries.append((owner, said, (name, definition)))
            elif owner[0] != name:  # a definition of another module is changed by the import
                self._part(name, definition)

    def _need(self, modules: Collection[tuple[str, str]]) -> None:
        for base, member in modules:
            if self.module(base) is not None and member and not self._has(base, member):
                self.module(f"{base}.{member}")

    def _has(self, name: str, member: str) -> bool:
        found = self._modules.get(name)
        own = found is not None and found.imports.get(member) != (name, member)
        return found is not None and (member in found.parts or (own and member in found.imports))

    def home(
        self, name: str, chain: Chain, passed: list[Place] | None = None
    ) -> tuple[str, Chain] | None:
        """Where a dotted name of a module is defined, and the attributes that are left of it.

        A module by itself is answered with nothing left. The imports that the name goes through are
        added to `passed`.
        """
        found = self.module(name)
        if not chain:
            return None if found is None else (name, ())
        head, rest = chain[0], chain[1:]
        if found is None:  # not ours, or a package without a file
            return self.home(f"{name}.{head}", rest, passed)
        if head in found.parts:
            return name, chain
        if self._has(name, head):
            base, member = found.imports[head]
            (passed if passed is not None else []).append((name, head))
            return self.home(base, (member, *rest) if member else rest, passed)
        inner = f"{name}.{head}"
        return self.home(inner, rest, passed) if self._find(inner) else None

    def follow(self, name: str, chain: Chain) -> None:
        """Count what a dotted name of a module stands for."""
        passed: list[Place] = []
        at = self.home(name, chain, passed)
        # What other modules hand on counts; the own import is in the fingerprint already.
        self.parts.update(place for place in passed if place[0] != name)
        if at is None:
            return
        where, rest = at
        found = self.module(where)
        if rest:
            self._part(where, rest[0])
        elif (
            found is not None and where not in self._whole
        ):  # a module that is handed on: all of it
            self._whole.add(where)
            for one in (*found.parts, *found.imports):
                self.follow(where, (one,)) if one else self._part(where, one)

    def _part(self, name: str, part: str) -> None:
        if self.module(name) is not None and (name, part) not in self.parts:
            self.parts.add((name, part))
            self._waiting.append((name, part))

    def _use(self, name: str, part: str) -> None:
        found = self._modules[name]
        assert found is not None
        used = uses(found, part, self._registrations(name, found, part))
        self._texts |= used.texts
        self._need(used.needs)
        for chain in used.names:
            self.follow(name, chain)
        for base, chain in used.members:
            self.follow(base, chain)
        for one in used.loads:
            self.follow(one, ())

    def _registrations(self, name: str, found: Module, part: str) -> frozenset[ast.expr]:
        """The decorators of a definition that register it, which hand it back as it is."""
        lines = [getattr(one, "decorator_list", []) for one in found.parts[part]]
        owners = [(one, self._owner(name, decorator(one))) for line in lines for one in line]
        return frozenset(one for one, owner in owners if owner and self._registry(owner))

    def _owner(self, name: str, chain: Chain) -> Place | None:
        """The definition whose method a dotted name is."""
        at = self.home(name, chain)
        return (at[0], at[1][0]) if at and len(at[1]) > 1 else None

    def _registry(self, place: Place) -> bool:
        found = self.module(place[0])
        return found is not None and found.registry(place[1])

    def _chosen(self) -> bool:
        """Count entries of registries that are used, where a text is their name; whether there
        are new ones.
        """
        for text in self._texts - self._heard:
            self._heard.add(text)
            self._home_of(text)
        for registry, said, place in self._entries:
            if registry in self.parts and said in self._texts:
                self._part(*place)
        return bool(self._waiting)

    def _home_of(self, text: str) -> None:
        """Import the modules of a package that a text names: a registry looks for entries there."""
        path = self._find(text) if DOTTED.fullmatch(text) else None
        inside = path.parent.glob("*.py") if path and path.name == "__init__.py" else ()
        for one in sorted(file.stem for file in inside):
            self.module(f"{text}.{one}" if one != "__init__" else text)
