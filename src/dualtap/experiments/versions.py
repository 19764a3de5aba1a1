"""Of which code a trial's outcome is: a fingerprint of the definitions that it reaches.

Rows are used again only if the code that would make them is the same. What counts is read from the
source, definition by definition: a trial, the functions, classes and constants it names, those that
these name, through all modules of this package. Plots, captions, claims, reports and commands are
not among them; comments, docstrings and types do not count.
"""

from __future__ import annotations

import ast
import hashlib
import symtable
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = "dualtap"
SHOWN_ONLY = frozenset({"dualtap._html", "dualtap._progress"})
"""Modules that show and compute nothing: reached from most classes, and left out."""
_SOURCE = Path(__file__).parents[1]
_LENGTH = 12
_LOOSE = "(statements)"  # that bind no name, but run when their module is imported
_Target = tuple[str, str | None]


@cache
def code_version(function: Callable[..., Any]) -> str:
    """Return a text that changes when the code of a function, or of anything it reaches, does.

    Parameters
    ----------
    function : callable
        Of a module; one of this package is followed into the others.

    Returns
    -------
    str
        A letter and hexadecimal digits.

    Examples
    --------
    >>> from dualtap.experiments import fig2, fig3
    >>> from dualtap.experiments.versions import code_version
    >>> code_version(fig2.trial) == code_version(fig2.trial) != code_version(fig3.trial)
    True
    """
    text = "\n".join(reached(function))
    # The letter keeps a database from reading digits as a number.
    return "c" + hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def reached(function: Callable[..., Any]) -> list[str]:
    """Return all definitions that a function reaches, in canonical form, in order.

    Examples
    --------
    >>> from dualtap.experiments import fig2
    >>> from dualtap.experiments.versions import reached
    >>> names = [line.split(" = ")[0] for line in reached(fig2.trial)]
    >>> "dualtap.schemes.tap.TAP" in names, "dualtap.experiments.fig2.plot" in names
    (True, False)
    """
    walk = _Walk()
    module = function.__module__
    if not hasattr(sys.modules[module], "__file__"):  # typed into an interpreter
        code = function.__code__
        return [f"{function.__qualname__} = {code.co_code.hex()} {code.co_consts} {code.co_names}"]
    if "<locals>" in function.__qualname__:
        walk.visit_module(module)
    else:
        walk.visit(module, function.__qualname__.partition(".")[0])
    return sorted(walk.found)


@dataclass
class _Walk:
    """Definitions seen so far."""

    found: set[str] = field(default_factory=set)
    seen: set[tuple[str, str]] = field(default_factory=set)

    def visit(self, module: str, name: str) -> None:
        """Add what a name of a module stands for, and all that it reaches."""
        if (module, name) in self.seen or name == "__version__":  # a new release is no new code
            return
        self.seen.add((module, name))
        source = _module(module)
        if name in source.definitions:
            for label in (name, _LOOSE):
                line, targets = _definition(module, label)
                self.found.add(line)
                for target in targets:
                    self._follow(*target)
        elif name in source.imports:
            self._follow(*source.imports[name])
        elif _exists(f"{module}.{name}"):
            self.visit_module(f"{module}.{name}")

    def visit_module(self, module: str) -> None:
        """Add all of a module."""
        for name in _module(module).definitions:
            self.visit(module, name)

    def _follow(self, module: str, name: str | None) -> None:
        """Add what a module means by a name, None for all of it."""
        if name is None:
            self.visit_module(module)
        else:
            self.visit(module, name)


@dataclass(frozen=True)
class _Module:
    """A module's top level: statements by the names they bind, and where other names are from."""

    definitions: dict[str, list[ast.stmt]]
    imports: dict[str, _Target]


@cache
def _definition(module: str, name: str) -> tuple[str, frozenset[_Target]]:
    """Return a definition in canonical form, and what it names in this package."""
    source = _module(module)
    statements = source.definitions.get(name, [])
    targets: set[_Target] = set()
    for statement in statements:
        modules = _modules_used(statement, source)
        targets |= {(module, used) for used in _global_names(statement) - modules.keys()}
        targets |= {(used, a) for used, attributes in modules.values() for a in attributes}
        targets |= {target for target in _imports_of(statement).values() if _exists(target[0])}
    return f"{module}.{name} = {_canonical(statements)}", frozenset(targets)


@cache
def _module(name: str) -> _Module:
    """Read a module."""
    tree = _Bare().visit(ast.parse(_path(name).read_text()))
    module = _Module({}, {})
    for statement in tree.body:
        if _is_for_types(statement):
            continue
        imports = _imports_of(statement, top_only=True)
        module.imports.update({k: target for k, target in imports.items() if _exists(target[0])})
        bound = set(_bound_names(statement))
        if not bound and not isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass):
            bound = {_LOOSE}
        for bound_name in bound:
            module.definitions.setdefault(bound_name, []).append(statement)
    return module


def _path(name: str) -> Path:
    """Return the file of a module of this package, or of one that is loaded."""
    if name.partition(".")[0] == PACKAGE:
        base = _SOURCE.joinpath(*name.split(".")[1:])
        return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return Path(str(sys.modules[name].__file__))


def _exists(name: str) -> bool:
    """Tell a module of this package that counts."""
    is_ours = name.partition(".")[0] == PACKAGE and name not in SHOWN_ONLY
    return is_ours and _path(name).is_file()


class _Bare(ast.NodeTransformer):
    """Takes away docstrings and types, which change nothing that is computed."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list):  # of a lambda it is an expression
            code = [statement for statement in body if not _is_text(statement)]
            node.body = code or [ast.Pass()]  # type: ignore[attr-defined]
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        return node


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_for_types(statement: ast.stmt) -> bool:
    """Tell a block that only type checkers read."""
    return (
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Name)
        and statement.test.id == "TYPE_CHECKING"
    )


def _canonical(node: Any) -> str:
    """Return a syntax tree as text that is the same for all versions of Python."""
    if isinstance(node, list):
        return "[" + ",".join(map(_canonical, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = [
        f"{name}={_canonical(value)}"
        for name, value in ast.iter_fields(node)
        # What some versions have and others leave out is empty.
        if name not in ("ctx", "kind", "type_comment") and value not in (None, [])
    ]
    return f"{type(node).__name__}({','.join(parts)})"


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of the top level defines, imports left out."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif not isinstance(statement, ast.Import | ast.ImportFrom):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name


def _imports_of(statement: ast.stmt, *, top_only: bool = False) -> dict[str, _Target]:
    """Return what a statement imports: the bound name, the module, and the name there."""
    found: dict[str, _Target] = {}
    if top_only and isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return found
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                found[alias.asname or alias.name] = (node.module, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = (alias.name, None)
    return found


def _modules_used(statement: ast.stmt, source: _Module) -> dict[str, tuple[str, set[str]]]:
    """Return the modules that a statement uses by attributes alone, and which of these."""
    used: dict[str, tuple[str, set[str]]] = {}
    inner: set[int] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            target = _as_module(source.imports.get(node.value.id))
            if target is not None:
                used.setdefault(node.value.id, (target, set()))[1].add(node.attr)
                inner.add(id(node.value))
    whole = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and id(n) not in inner}
    return {name: use for name, use in used.items() if name not in whole}


def _as_module(imported: _Target | None) -> str | None:
    """Return the module that an import binds, None if it binds anything else."""
    if imported is None:
        return None
    module, name = imported
    if name is None:
        return module
    parent = _module(module)
    is_name = name in parent.definitions or name in parent.imports
    return f"{module}.{name}" if not is_name and _exists(f"{module}.{name}") else None


def _global_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement takes from its module."""
    text = ast.unparse(ast.fix_missing_locations(statement))
    tables = [symtable.symtable(text, "<definition>", "exec")]
    names: set[str] = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        is_top = table.get_type() == "module"
        names |= {s.get_name() for s in table.get_symbols() if is_top or s.is_global()}
    return names
