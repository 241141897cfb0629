"""The package as a whole: one-way data, public names, imports that cost nothing early."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import credalearn

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "credalearn"

# The way of the data: a stage may import what stands above it and itself, nothing below.
STAGES = [
    *["errors", "checks", "escape", "files", "tensors", "shares", "credal", "annotations"],
    *["labels", "scores", "conformal", "predictions", "nets", "train", "methods", "metrics"],
    *["decide", "theory", "estimator", "report", "bench", "workflow", "demo", "cli"],
]


def stage_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports_of(path: Path) -> set[str]:
    """Modules of the package that a file imports when it runs, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {name for name in found if name.split(".")[0] == "credalearn"}


def type_checking_only(path: Path) -> set[str]:
    """Modules imported under ``if TYPE_CHECKING``: names for a reader, no flow of data."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for inner in ast.walk(node):
                if isinstance(inner, ast.ImportFrom) and inner.module:
                    found |= {f"{inner.module}.{name.name}" for name in inner.names}
    return found


def test_data_flows_one_way() -> None:
    checked = 0
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).with_suffix("").parts[0]
        if own in ("__init__", "__main__"):
            continue
        assert own in STAGES, f"{own} has no place in the way of the data"
        for module in imports_of(path) - type_checking_only(path):
            stage = stage_of(module)
            if stage in STAGES:
                assert STAGES.index(stage) <= STAGES.index(own), f"{path} imports {module}"
                checked += 1
            else:  # the package itself, for its version
                assert module in ("credalearn", "credalearn.__version__"), f"{path}: {module}"
    assert checked > 50


# Folders of the two large stages, and what of their own stage they may import.
FOLDERS = {
    "bench.data": [],
    "bench.settings": [],
    "bench.running": ["bench.data", "bench.settings", "bench.plugins", "bench.records"],
    "bench.results": ["bench.settings", "bench.plugins", "bench.records", "bench.published"],
    "workflow.tables": [],
    "workflow.run": [],
    "workflow.items": ["workflow.tables", "workflow.run"],
    "workflow.joined": ["workflow.tables", "workflow.items"],
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_a_stage_knows_little_of_the_rest(folder: str) -> None:
    stage = folder.split(".")[0]
    allowed = tuple(f"credalearn.{name}." for name in [folder, *FOLDERS[folder]])
    files = list((SOURCE / folder.replace(".", "/")).glob("*.py"))
    assert len(files) > 4
    for path in files:
        for module in imports_of(path) - type_checking_only(path):
            if stage_of(module) == stage:
                assert module.startswith(allowed), f"{path} imports {module}"


def test_every_folder_of_the_large_stages_has_its_rule() -> None:
    found = [
        path.parent
        for stage in ("bench", "workflow")
        for path in SOURCE.glob(f"{stage}/*/__init__.py")
    ]
    assert {".".join(path.relative_to(SOURCE).parts) for path in found} == set(FOLDERS)


def test_the_map_has_every_stage_in_its_order() -> None:
    _, stages, *_ = (ROOT / "CONTRIBUTING.md").read_text().split("```")
    assert [line.split()[0] for line in stages.strip().splitlines()] == STAGES


def test_the_paths_lead_through_what_is_there() -> None:
    _, _, *blocks = (ROOT / "CONTRIBUTING.md").read_text().split("```")
    named = re.findall(r"(\w+(?:/\w+)+)\.([\w.]+)", "".join(blocks[1::2]))
    assert len(named) > 20
    for path, name in named:
        found = importlib.import_module(f"credalearn.{path.replace('/', '.')}")
        for part in name.split("."):
            found = getattr(found, part)


def test_the_table_of_names_is_what_type_checkers_see() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for name in node.names:
            assert name.asname == name.name
            seen[name.name] = stage_of(f"{node.module}.x") if node.module != "credalearn" else ""
    table = credalearn._HOME | dict.fromkeys(credalearn._MODULES, "")
    assert seen == table


def public_modules() -> list[str]:
    found = [m.name for m in pkgutil.iter_modules([str(SOURCE)]) if m.ispkg]
    return ["credalearn", *(f"credalearn.{name}" for name in found if name != "cli")]


def public_names() -> dict[str, object]:
    """Every function, class and module in the ``__all__`` of the package and of its stages."""
    found: dict[str, object] = {}
    for module_name in public_modules():
        module = importlib.import_module(module_name)
        found |= {f"{module_name}.{name}": getattr(module, name) for name in module.__all__}
    kinds = (inspect.isclass, inspect.isfunction, inspect.ismodule)  # tables of names are neither
    return {name: thing for name, thing in found.items() if any(kind(thing) for kind in kinds)}


@pytest.mark.parametrize("name", public_names())
def test_public_names_are_documented_with_an_example(name: str) -> None:
    thing = public_names()[name]
    doc = inspect.getdoc(thing)
    assert doc, f"{name} has no docstring"
    if inspect.ismodule(thing):
        return
    assert doctest.DocTestParser().get_examples(doc), f"{name} has no runnable example"
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(getattr(thing, member)), f"{name}.{member} has no docstring"


def test_the_contract_is_public() -> None:
    promised = """LowerBounds Intervals Vertices relax from_votes from_teacher smooth at_least
        pocc_loss CredalClassifier load metrics max_entropy_box min_entropy_box max_entropy_hull"""
    assert set(promised.split()) <= set(credalearn.__all__)
    assert set(credalearn.__all__) <= set(dir(credalearn))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        credalearn.nonsense  # noqa: B018


def modules_after(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_heavy_imports_wait_until_they_are_needed() -> None:
    heavy = {"torch", "sklearn", "scipy", "matplotlib", "numpy", "pandas"}
    assert not heavy & modules_after("import credalearn")
    assert not heavy & modules_after("import credalearn.app.cli")
    sets = modules_after("import credalearn; credalearn.LowerBounds")
    assert "torch" in sets
    assert not {"sklearn", "matplotlib"} & sets
    assert "matplotlib" not in modules_after("import credalearn.app.steps.predict")


def test_the_version_is_stated_once_for_all() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{credalearn.__version__}"' in text
    assert f"## {credalearn.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_has_its_reason_in_the_readme() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    block = re.search(r"^dependencies = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    names = re.findall(r'"([a-z-]+)', block[1])
    assert len(names) >= 5
    readme = (ROOT / "README.md").read_text()
    for name in names:
        assert re.search(rf"^\| {name} \|", readme, re.MULTILINE), f"{name} has no reason"


def test_nothing_unsafe_is_loaded() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        safe = re.sub(r"torch\.load\([^()]*weights_only=True\)", "", text)
        assert not re.search(r"\bpickle\b|torch\.load|(?<!\.)\beval\(|\bexec\(", safe), path
