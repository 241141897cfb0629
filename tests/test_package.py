"""The package as a whole: layers, public names, imports, and what every part must not do."""

import ast
import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import credalearn
from python_process import run_python

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "credalearn"
APP = LIBRARY / "app"
EXPERIMENTS = ROOT / "experiments" / "credalearn_experiments"

# A layer may import itself and the layers before it.
LAYERS = [
    *[
        "_lazy",
        "errors",
        "_formats",
        "_checks",
        "_options",
        "_files",
        "_tensors",
        "_ranks",
        "_temperature",
    ],
    *["sets", "labels", "_scores", "conformal", "predictions", "nets", "train", "methods"],
    *["metrics", "guarantees", "theory", "_targets", "_table_encoder", "_text_encoder"],
    *["_folds", "_method_training", "_selection", "_model_files"],
    *["_classifier_options", "_inputs"],
    *["classifier", "_load"],
    "app",
]
APP_LAYERS = [
    *["nodules", "facts", "column_names"],
    *["_array_file", "_csv_file", "_json_file", "sources"],
    *["annotations", "readers", "labels", "features", "texts", "images", "_join", "_split"],
    *["encoders", "dataset"],
    *["staging", "run_files", "run", "report", "item_stream", "table_writer"],
    *["steps", "demo", "cli"],
]
# A public name, such as credalearn.Run, is an import of the module that has it.
HOMES = {
    f"credalearn.{alias.name}": f"{node.module}.{alias.name}"
    for node in ast.parse((LIBRARY / "__init__.pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}


def imported(path: Path, *, deferred: bool = True) -> set[str]:
    """Modules that a file imports outside ``if TYPE_CHECKING``; deferred: inside functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if for_types or (not deferred and isinstance(node, ast.FunctionDef)):
            skipped |= set(ast.walk(node))
    found: set[str] = set()
    for node in set(ast.walk(tree)) - skipped:
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {HOMES.get(name, name) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            assert LIBRARY not in path.parents or "credalearn" not in found, f"{path}: which part?"
    return found


def sources(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*.py") if path.name != "__main__.py")


def test_a_module_without_public_names_is_marked_private() -> None:
    stubs = [*LIBRARY.rglob("__init__.pyi"), LIBRARY / "methods" / "__init__.py"]
    public = "\n".join(path.read_text(encoding="utf-8") for path in stubs)
    for path in set(LIBRARY.rglob("[!_]*.py")) - set(APP.rglob("*.py")):
        name = ".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts)
        assert f"from {name} import" in public, f"{path} has no public name: begin it with _"


def test_tests_are_in_folders_of_what_they_test() -> None:
    for folder in {path.parent for path in (ROOT / "tests").rglob("test_*.py")}:
        first, *rest = (*folder.relative_to(ROOT / "tests").parts, "")
        home = EXPERIMENTS if first == "experiments" else LIBRARY / first
        assert home.joinpath(*rest).is_dir(), folder


@pytest.mark.parametrize(
    ("folder", "package", "layers"),
    [(LIBRARY, "credalearn", LAYERS), (APP, "credalearn.app", APP_LAYERS)],
    ids=["library", "app"],
)
def test_imports_go_one_way(folder: Path, package: str, layers: list[str]) -> None:
    checked = 0
    for path in sources(folder):
        own = path.relative_to(folder).with_suffix("").parts[0]
        if own == "__init__":
            continue
        assert own in layers, f"{path} belongs to no layer"
        # Methods of a noun call the verbs of the layers after it when they are called.
        deferred = not (package == "credalearn.app" and own in ("annotations", "dataset", "run"))
        for module in imported(path, deferred=deferred):
            name = module.removeprefix(f"{package}.").split(".")[0]
            if module.startswith(f"{package}.") and name in layers:
                assert layers.index(name) <= layers.index(own), f"{path} imports {module}"
                checked += 1
    assert checked > 40


def test_library_knows_no_tables_no_terminal_and_no_application() -> None:
    foreign = re.compile(r"(polars|pandas|typer|jinja2|credalearn\.app)\b")
    for path in sources(LIBRARY):
        if APP not in path.parents:
            found = [name for name in imported(path) if foreign.match(name)]
            # Files are validated when they are read; training and predicting need no msgspec.
            found += [name for name in imported(path, deferred=False) if name == "msgspec"]
            assert not found, f"{path} imports {found}"


def test_package_does_not_know_the_experiments() -> None:
    for path in sources(LIBRARY):
        assert not any(name.startswith("credalearn_experiments") for name in imported(path)), path


# What no part of the package may change in the process, and what only the application may.
PROCESS = (
    r"os\.(dup|chdir|putenv)|os\.environ(\[[^]]*\] =|\.(update|setdefault|pop))"
    r"|set_num_(interop_)?threads"
)
LIBRARY_PROCESS = (
    rf"{PROCESS}|(?<![\w.])print\(|sys\.std(out|err)|warnings\.(?!warn\()|torch\.backends\S* ="
    r"|torch\.manual_seed|random\.seed\(|set_default_|set_float32_|use_deterministic_"
)
EXCEPT = {
    # Progress goes to standard error, and only where verbose=True asks for it.
    "progress.py": ("print(", "sys.stderr"),
    # For one thread of Python alone; tests/train/test_threads.py shows that.
    "_threads.py": ("set_num_threads",),
    # cuDNN takes no option with a call: set for the work, then set back.
    **dict.fromkeys(("model.py", "_cuda_graphs.py"), ("torch.backends",)),
}


def test_nothing_prints_or_changes_the_process() -> None:
    for path in sources(LIBRARY):
        code = re.sub(r">>> .*|\.\.\. .*", "", path.read_text(encoding="utf-8"))
        forbidden = PROCESS if APP in path.parents else LIBRARY_PROCESS
        found = [each[0] for each in re.finditer(forbidden, code)]
        found = [each for each in found if not each.startswith(EXCEPT.get(path.name, ()) or "\0")]
        assert not found, f"{path} has {found}"


# In a process of its own: what an earlier fit has changed would not change again.
FIT = """
import os, random, sys, warnings
import numpy as np, torch
import credalearn as cl
from clouds import classifier, clouds

def state():
    backends, cudnn = torch.backends, torch.backends.cudnn
    return {
        "warnings": [*warnings.filters],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "files": sorted(os.listdir("/proc/self/fd")) if sys.platform == "linux" else [],
        "streams": (sys.stdout, sys.stderr, sys.excepthook),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "cudnn": (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32),
        "precision": (torch.get_float32_matmul_precision(), torch.get_default_dtype()),
        "modes": (torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()),
        "random": (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()),
    }

X, y, _ = clouds()
models = [cl.CredalClassifier(), classifier("pocc", epochs=2)]
import sklearn.linear_model, sklearn.model_selection, sympy  # which add filters of their own
before = state()
for model in models:
    model.fit(X, y).predict(X)
after = state()
sys.exit(", ".join(name for name in before if before[name] != after[name]) or None)
"""


def test_fitting_and_predicting_leave_the_process_as_it_is() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def public_modules() -> list[str]:
    """The package, and the modules among its public names."""
    names = getattr(credalearn, "__all__")  # noqa: B009  # the stub does not list it
    found = [name for name in names if inspect.ismodule(getattr(credalearn, name))]
    return ["credalearn", *(f"credalearn.{name}" for name in found)]


def public_names() -> dict[str, object]:
    """Functions, classes and modules in ``__all__`` of the package and of its subpackages."""
    found: dict[str, object] = {}
    for name in public_modules():
        module = importlib.import_module(name)
        found |= {f"{name}.{each}": getattr(module, each) for each in module.__all__}
    kinds = (inspect.isclass, inspect.isfunction, inspect.ismodule)
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


def test_help_shows_no_insides_of_numpy() -> None:
    # ArrayLike stands in quotation marks: evaluated, it is a union of 400 characters.
    members = [(name, [x, *vars(x).values()]) for name, x in public_names().items() if callable(x)]
    functions = [(name, x) for name, each in members for x in each if inspect.isfunction(x)]
    assert len(functions) > 100
    assert not [name for name, x in functions if "numpy._typing" in str(inspect.signature(x))]


def test_contract_is_public() -> None:
    promised = """CredalSet LowerBounds Intervals Vertices relax precise from_votes from_teacher
        smooth at_least pocc_loss CredalClassifier load CredalPredictions metrics certify Guarantee
        read_annotations Dataset Run max_entropy_box min_entropy_box max_entropy_hull"""
    names = set(getattr(credalearn, "__all__"))  # noqa: B009  # the stub does not list it
    assert set(promised.split()) <= names
    assert names <= set(dir(credalearn))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        getattr(credalearn, "nonsense")  # noqa: B009


def modules_after(statement: str) -> set[str]:
    return set(run_python(f"{statement}; import sys; print(*sys.modules)").split())


def test_heavy_imports_wait_until_they_are_needed() -> None:
    heavy = {"torch", "sklearn", "scipy", "matplotlib", "numpy", "pandas", "polars", "jinja2"}
    assert not heavy & modules_after("import credalearn")
    assert not heavy & modules_after("import credalearn.app.cli")
    assert not {"torch", "sklearn"} & modules_after("import credalearn; credalearn.certify")
    sets = modules_after("import credalearn; credalearn.LowerBounds")
    assert "torch" in sets
    assert not {"sklearn", "matplotlib", "polars"} & sets


def test_version_is_stated_once_for_all() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{credalearn.__version__}"' in text
    for name, line in (("CHANGELOG.md", "## {}\n"), ("CITATION.cff", "version: {}\n")):
        assert line.format(credalearn.__version__) in (ROOT / name).read_text(encoding="utf-8")


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    names = re.findall(r'"([a-z0-9-]+)', block[1])
    assert len(names) >= 5
    reasons = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name in names:
        assert re.search(rf"^\| {name} \|", reasons, re.MULTILINE), f"{name} has no reason"


def test_nothing_unsafe_is_loaded() -> None:
    for path in (*sources(LIBRARY), *sources(EXPERIMENTS)):
        if path.name == "plugins.py":  # which runs the user's own program
            continue
        text = path.read_text(encoding="utf-8")
        safe = re.sub(r"torch\.load\([^()]*weights_only=True\)", "", text)
        loads = r"pickle\.loads?\(|torch\.load|(?<!\.)\beval\(|(?<!\.)\bexec\("
        assert not re.search(loads, safe), path


def test_sizes_do_not_grow() -> None:
    # The goal is 10,500 lines of library, 11,000 of application, 6,000 of experiments and 22,000 of
    # tests. Lower these limits whenever a part shrinks.
    def lines(folder: Path) -> int:
        return sum(path.read_text(encoding="utf-8").count("\n") for path in folder.rglob("*.py"))

    assert lines(LIBRARY) - lines(APP) <= 10_996
    assert lines(APP) <= 10_996
    assert lines(EXPERIMENTS) <= 5_990
    assert lines(ROOT / "tests") <= 22_065
