"""The layers of docs/architecture.md: a module imports only from rooms above its own."""

import ast
from pathlib import Path

import pytest

import dualtap

SOURCE = Path(dualtap.__file__).parent
ROOMS = [
    "_random",
    "_progress",
    "_threads",
    "_namespace",
    "_swap",
    "_files",
    "_npy",
    "_schema",
    "spins",
    "_validation",
    "_html",
    "couplings",
    "edges",
    "_kernels",
    "local_fields",
    "gaps",
    "_parameters",
    "_starts",
    "_chains",
    "_equilibration",
    "_sampling",
    "hopfield",
    "schemes",
    "solve",
    "metrics",
    "theory",
    "baselines",
    "subspace",
    "fitted",
    "recovery",
    "published",
    "rbm",
    "resampling",
    "comparison",
    "preprocessing",
    "datasets",
    "io",
    "plots",
    "report",
    "experiments",
    "cli",
    "__main__",
]
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def _room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("dualtap."))


def test_every_room_is_in_the_plan():
    assert {_room(path) for path in MODULES} == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_come_from_above(path):
    own = ROOMS.index(_room(path))
    below = [room for room in _imported_rooms(path) if ROOMS.index(room) > own]
    assert not below


def test_the_public_surface_is_small():
    assert len(dualtap.__all__) <= 12
    assert all(hasattr(dualtap, name) for name in dualtap.__all__)


def test_no_public_name_hides_a_module():
    """``import dualtap.solve as solve`` must give the module."""
    for path in MODULES:
        name = _room(path)
        shadow = getattr(dualtap, name, None)
        assert shadow is None or shadow.__name__ == f"dualtap.{name}"
