"""The import graph of docs/architecture.md is that of the code; files are of a size to be read."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import dualtap

SOURCE = Path(dualtap.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def layer_of(path):
    """Return the module or folder at the top level that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path):
    """Return the layers that a file imports from, imports inside functions included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("dualtap.")}
    return found - {layer_of(path)}


@cache
def graph():
    """Return the layers with those they import from."""
    found = {}
    for path in MODULES:
        found.setdefault(layer_of(path), set()).update(imported(path))
    return found


@cache
def documented():
    """Return the same as the page has it, in its order: every layer below those it uses."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## Import graph") :].split("\n## ", 2)[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, flags=re.MULTILINE)
    return {layer: set(re.findall(r"`(\w+)`", names)) for layer, names in rows}


def row(layer, names):
    return f"| `{layer}` | {', '.join(f'`{name}`' for name in sorted(names)) or '–'} |"


def test_every_layer_is_in_the_graph():
    assert documented().keys() == graph().keys()


@pytest.mark.parametrize("layer", graph())
def test_the_graph_is_that_of_the_code(layer):
    names = graph()[layer]
    assert documented()[layer] == names, f"the row of the page should be\n{row(layer, names)}"


@pytest.mark.parametrize("layer", graph())
def test_imports_come_from_above(layer):
    order = list(documented())
    below = [name for name in graph()[layer] if order.index(name) > order.index(layer)]
    assert not below


def test_private_names_of_scikit_learn_are_imported_in_one_module():
    private = re.compile(
        r"^from sklearn[\w.]*\._\w+ import|^from sklearn[\w.]* import .*\b_\w", re.M
    )
    users = [path.name for path in MODULES if private.search(path.read_text(encoding="utf-8"))]
    assert users == ["_validation.py"]


@pytest.mark.parametrize(
    ("folder", "most"), [(SOURCE, 400), (Path(__file__).parent, 700)], ids=["src", "tests"]
)
def test_no_file_is_long(folder, most):
    lengths = {
        path.relative_to(folder).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in folder.rglob("*.py")
    }
    assert not {name: length for name, length in lengths.items() if length > most}


def test_the_public_surface_is_small():
    assert len(dualtap.__all__) <= 12
    assert all(hasattr(dualtap, name) for name in dualtap.__all__)


def test_only_spins_know_where_samples_are():
    """Everywhere else they are a `SampleMatrix`: no type is tested and no attribute written."""
    there = r"\b((Packed|Cluster)Spins|(Cluster|Foreign)?Blocks)\b"
    leak = re.compile(
        rf"import .*{there}|isinstance\([^)]*({there}|DenseSpins)|\b(blocks|residual)\.\w+ = "
    )
    outside = [path for path in MODULES if layer_of(path) != "spins"]
    assert not [path.name for path in outside if leak.search(path.read_text(encoding="utf-8"))]


def test_no_public_name_hides_a_module():
    """``import dualtap.solve as solve`` must give the module."""
    for path in MODULES:
        name = layer_of(path)
        shadow = getattr(dualtap, name, None)
        assert shadow is None or shadow.__name__ == f"dualtap.{name}"


def test_examples_import_a_function_from_its_own_module():
    example = re.compile(r">>> from (dualtap[\w.]*) import (.+)")
    wrong = []
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        defined = {getattr(node, "name", None) for node in ast.parse(source).body}
        module = ".".join(["dualtap", *path.relative_to(SOURCE).with_suffix("").parts])
        for where, names in example.findall(source):
            if defined & set(names.split(", ")) and not f"{module}.".startswith(f"{where}."):
                wrong.append(f"{module}: from {where} import {names}")
    assert not wrong
