"""Draw the pictures of the documentation: ``python scripts/figures.py docs``.

Points of a triangle are distributions over three classes; each corner is one class.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from fill_docs import CODE, run_page
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import credalearn as cl
from credalearn.app.demo import run_demo
from credalearn_experiments.results.style import CLASS_COLORS, COLORS, GRAY, save_figure

_DOCS = Path(__file__).parents[1] / "docs"
_CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(3) / 2], [1.0, 0.0]])
_CLASSES = ("cat", "dog", "fox")
_STEPS = 160  # of the grid that fills a set
_BLUE, _RED, _GREEN = COLORS[:3]
_CHROMIUM = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


def _triangle(axes: Axes, title: str) -> None:
    axes.set_aspect("equal")
    axes.axis("off")
    axes.fill(*_CORNERS.T, facecolor="#f5f5f5", edgecolor=GRAY, linewidth=1)
    places = ((-0.03, -0.03, "right"), (0.5, 0.9, "center"), (1.03, -0.03, "left"))
    for name, (x, y, side) in zip(_CLASSES, places, strict=True):
        axes.text(x, y, name, ha=side, va="center" if side != "center" else "bottom")
    axes.set_title(title, loc="center", pad=18)


def _fill(axes: Axes, labels: cl.CredalSet) -> None:
    """Every distribution of a grid that is in the set."""
    first, second = np.meshgrid(*[np.linspace(0, 1, _STEPS)] * 2)
    inside = first + second <= 1
    points = np.stack([first[inside], second[inside], 1 - first[inside] - second[inside]], 1)
    rows = labels[np.zeros(len(points), dtype=int)]
    points = points[np.asarray(rows.contains(points.clip(0, 1)))]
    x, y = (points @ _CORNERS).T
    axes.scatter(x, y, s=3, color=_BLUE, alpha=0.25, linewidths=0)


def _dot(axes: Axes, point: list[float], color: str, name: str, shift: tuple[int, int]) -> None:
    place = np.array(point) @ _CORNERS
    axes.plot(*place, "o", color=color, markersize=7)
    axes.annotate(name, place, shift, textcoords="offset points", color=color, ha="center")


def draw_sets(figure: Figure) -> None:
    """Three ways to be imprecise about one item."""
    kinds = {
        "at least 50 % cat": cl.LowerBounds([[0.5, 0.0, 0.0]]),
        "between two opinions": cl.Vertices([[[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]]]),
        "close to (60, 30, 10) %": cl.TotalVariationBall([[0.6, 0.3, 0.1]], [0.15]),
    }
    for axes, (title, labels) in zip(figure.subplots(1, 3), kinds.items(), strict=True):
        _triangle(axes, title)
        if isinstance(labels, cl.Vertices):
            axes.plot(*(labels.points[0].numpy() @ _CORNERS).T, color=_BLUE, linewidth=4, alpha=0.6)
        else:
            _fill(axes, labels)


def draw_pocc(figure: Figure) -> None:
    """A label of three votes in five, and what each head learns from it."""
    left, right = figure.subplots(1, 2)
    _triangle(left, "label: 3 of 5 votes for cat")
    _fill(left, cl.from_votes([[3, 2, 0]]))
    _dot(left, [0.6, 0.4, 0.0], _RED, "votes", (-24, 4))
    _triangle(right, "prediction: three heads and their hull")
    heads = {
        "pessimist": ([0.6, 0.2, 0.2], _RED, (38, 2)),
        "optimist": ([0.97, 0.02, 0.01], _GREEN, (44, 8)),
        "center": ([0.6, 0.38, 0.02], _BLUE, (-28, 4)),
    }
    hull = np.array([point for point, _, _ in heads.values()]) @ _CORNERS
    right.fill(*hull.T, color=_BLUE, alpha=0.2)
    for name, (point, color, shift) in heads.items():
        _dot(right, point, color, name, shift)


def draw_scores(figure: Figure) -> None:
    """Three predictions of the same class: which one should a human see?"""
    axes = figure.subplots()
    items = {
        "sure": (0.9, 0.86, 0.94),
        "unclear": (0.55, 0.5, 0.6),
        "unknown": (0.7, 0.4, 0.95),
    }
    for row, (name, (prob, lower, upper)) in enumerate(items.items()):
        axes.plot([lower, upper], [-row, -row], color=_BLUE, linewidth=6, alpha=0.35)
        axes.plot([lower], [-row], "|", color=_RED, markersize=18, markeredgewidth=3)
        axes.plot([prob], [-row], "o", color=_BLUE, markersize=9)
        words = f"lower {100 * lower:.0f} %, top {100 * prob:.0f} %"
        axes.annotate(words, (lower, -row), (0, 12), textcoords="offset points", color=GRAY)
        axes.text(0.28, -row, name, va="center")
    axes.set(
        xlim=(0.27, 1), ylim=(-2.5, 0.7), yticks=[], xlabel="probability of the predicted class"
    )
    axes.spines["left"].set_visible(False)


def draw_guarantee(figure: Figure) -> None:
    """Error against the share kept, and the certified threshold."""
    random = np.random.default_rng(3)
    score = np.sort(random.random(600))
    wrong = random.random(600) < 0.35 * score**1.5
    found = cl.certify(score, wrong, max_error=0.10)
    kept = np.arange(1, len(score) + 1)
    axes = figure.subplots()
    axes.plot(100 * kept / 600, 100 * wrong.cumsum() / kept, color=_BLUE)
    axes.axhline(10, color=_RED, linestyle="--", linewidth=1)
    share = 100 * float(found.keeps(score).mean())
    axes.axvline(share, color=_GREEN, linestyle=":", linewidth=2)
    axes.text(3, 10.4, "promised: at most 10 %", color=_RED)
    axes.text(share - 1, 1, f"certified: {share:.0f} % kept", color=_GREEN, ha="right")
    axes.text(66, 5, "error among\nthe kept", color=_BLUE)
    axes.set(xlabel="kept, most certain first (%)", ylabel="wrong (%)", xlim=(2, 100), ylim=(0, 16))


def draw_labels(figure: Figure) -> None:
    """The same four votes under four label rules."""
    rules: dict[Any, str] = {
        "relax-ties": "keeps the top share\n(relax-ties, the default)",
        "idm": "one vote is missing\n(idm)",
        "clopper-pearson": "contains p, 95 % sure\n(clopper-pearson)",
        "hull": "cat or dog, no fox\n(hull)",
    }
    for axes, (rule, title) in zip(figure.subplots(1, 4), rules.items(), strict=True):
        _triangle(axes, title)
        if rule == "hull":
            axes.plot(*_CORNERS[:2].T, color=_BLUE, linewidth=5, alpha=0.6)
        else:
            _fill(axes, cl.from_votes([[3, 1, 0]], rule=rule))
        _dot(axes, [0.75, 0.25, 0.0], _RED, "votes", (-22, 4))


def draw_widened(figure: Figure) -> None:
    """Predicted and widened intervals of new items, and the votes that they should contain."""
    page = (_DOCS / "concepts" / "sets.md").read_text(encoding="utf-8")
    code = CODE.search(page)
    assert code is not None
    found: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()):
        exec(code[2], found)
    place = np.linspace(-1, 1, 100)
    pred = found["clf"].predict_credal(np.stack([place, 0 * place], 1), meaning="votes")
    wide = pred.conformalize(found["inflation"])
    axes = figure.subplots()
    for each, shade in ((wide, 0.2), (pred, 0.6)):
        lower, upper = (100 * side[:, 1].numpy() for side in (each.lower, each.upper))
        axes.fill_between(place, lower, upper, color=_BLUE, alpha=shade, linewidth=0)
    random = np.random.default_rng(1)
    place = random.uniform(-0.98, 0.98, 100)
    dogs = random.binomial(20, 1 / (1 + np.exp(-6 * place)))
    fresh = found["clf"].predict_credal(np.stack([place, 0 * place], 1), meaning="votes")
    inside = fresh.covers(np.stack([20 - dogs, dogs], 1), found["inflation"]).numpy()
    axes.plot(place[inside], 5 * dogs[inside], "o", color=GRAY, markersize=4)
    axes.plot(place[~inside], 5 * dogs[~inside], "o", color=_RED, markersize=6)
    axes.text(0.16, 45, "predicted set", color=_BLUE)
    axes.text(-0.95, 35, "widened set", color=_BLUE, alpha=0.7)
    axes.text(-0.95, 88, f"{(~inside).sum()} of 100 new items outside", color=_RED)
    axes.set(xlabel="feature of the item", ylabel="votes for dog (%)", xlim=(-1, 1))


def draw_certify(figure: Figure) -> None:
    """The true error of the rule that each of 100 draws of calibration items leads to."""
    random = np.random.default_rng(0)
    errors = []
    for _ in range(100):
        score = random.random(600)
        wrong = random.random(600) < 0.35 * score**1.5
        threshold = cl.certify(score, wrong, max_error=0.10).threshold or 0
        errors.append(14 * threshold**1.5)  # in %, the mean of 0.35 s^1.5 up to the threshold
    axes = figure.subplots()
    bins = np.floor(np.array(errors) / 0.5)
    for number in np.unique(bins):
        count = int((bins == number).sum())
        x, color = 0.5 * (number + 0.5), _RED if 0.5 * number >= 10 else _BLUE
        axes.plot([x] * count, np.arange(count) + 0.5, "o", color=color, markersize=7)
    axes.axvline(10, color=_RED, linestyle="--", linewidth=1.5)
    broken = int((np.array(errors) > 10).sum())
    axes.text(10.1, 10, f"promise broken:\n{broken} of 100 draws", color=_RED)
    axes.text(9.9, 13.6, "promised: at most 10 %", color=_RED, ha="right")
    axes.text(0.3, 10, "one dot: one draw of\n600 calibration items", color=_BLUE)
    axes.set(xlabel="true share of wrong answers among the kept items (%)", xlim=(0, 13.5))
    axes.set(yticks=[], ylim=(0, 15))
    axes.spines["left"].set_visible(False)


def draw_your_model(figure: Figure) -> None:
    """Error among the kept cases of the random forest."""
    _errors(figure.subplots(), _run_of("tutorials/your-model.md", "forest"), title="")


def draw_ask_next(figure: Figure) -> None:
    """Who agrees with the others, and which new items are asked about."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        run_page((_DOCS / "tutorials" / "ask-next.md").read_text(encoding="utf-8"), folder)
        names = ("votes.csv", "new.csv", "ask.csv")
        votes, new, asked = (pl.read_csv(folder / name) for name in names)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.4])
    pairs = votes.join(votes, on="item").filter(pl.col("annotator") != pl.col("annotator_right"))
    agree = pairs.group_by("annotator").agg((pl.col("label") == pl.col("label_right")).mean())
    people, shares = agree.sort("annotator", descending=True)
    colors = [_RED if person == "dan" else _BLUE for person in people]
    left.barh(people.to_list(), 100 * shares, color=colors, height=0.6)
    left.grid(visible=False, axis="y")
    left.set(xlabel="agreement with the others (%)", title="Whom to trust", xlim=(0, 100))
    left.axvline(50, color=GRAY, linestyle=":", linewidth=1.5)
    left.text(51, 3.42, "chance", color=GRAY, fontsize=9)
    chosen = pl.col("item").is_in(asked["item"].to_list())
    right.plot(*new.filter(~chosen).select("a", "b"), "o", color="#bbbbbb", markersize=4)
    right.plot(*new.filter(chosen).select("a", "b"), "o", color=_RED, markersize=6)
    right.set(xlabel="feature a: no to the left, yes to the right", ylabel="feature b")
    right.set_title("What to ask: the 20 least certain items")


def draw_demo(figure: Figure) -> None:
    """Three nodules with their votes, and what deferring the others buys."""
    with tempfile.TemporaryDirectory() as folder:
        list(run_demo(Path(folder)))
        run = cl.Run.load(Path(folder) / "run")
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    _items(left, run, title="Radiologists disagree, and the model knows")
    _errors(right, run, title="So it answers alone where it is safe")


def draw_texts(figure: Figure) -> None:
    """Error among the kept messages of the tutorial."""
    _errors(figure.subplots(), _run_of("tutorials/texts.md", "run"), title="")


def draw_images(figure: Figure) -> None:
    """Images of the tutorial, with their votes and decisions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_page((_DOCS / "tutorials" / "images.md").read_text(encoding="utf-8"), folder)
        votes = cl.read_annotations(folder / "votes.csv")
        standing = pl.DataFrame({"item": votes.items, "standing": votes.counts()[:, 1]})
        items = pl.read_csv(folder / "decisions.csv").join(standing, on="item")
        places = figure.subplots(2, 5)
        for line, decision in zip(places, ("predict", "defer"), strict=True):
            chosen = items.filter(pl.col("decision") == decision).head(5)
            for axes, item in zip(line, chosen.rows(named=True), strict=True):
                axes.imshow(Image.open(folder / "bars" / f"{item['item']}.png"), cmap="gray")
                axes.axis("off")
                words = "ask a human" if decision == "defer" else item["label"]
                color = _RED if decision == "defer" else _GREEN
                title = f"{item['standing']:.0f} of 3: standing\n"
                axes.set_title(title, loc="center", fontsize=9, color=GRAY)
                axes.text(7.5, -1.2, words, ha="center", color=color, weight="bold", fontsize=9)


def draw_statements(figure: Figure) -> None:
    """Two statements, and the distributions that they allow."""
    titles = ("“cat 70 %, dog 20 %”", "“cat 50 %”")
    sets = cl.from_statements(["cat"] * 2, [70, 50], ["dog", None], [20, 0], classes=_CLASSES)
    for row, axes in enumerate(figure.subplots(1, 2)):
        _triangle(axes, titles[row])
        _fill(axes, sets[[row]])


def _run_of(page: str, name: str) -> cl.Run:
    """Run a page in an empty folder and load the run that it makes."""
    text = (_DOCS / page).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        run_page(text, Path(folder))
        return cl.Run.load(Path(folder) / name)


def _items(axes: Axes, run: cl.Run, *, title: str) -> None:
    """Votes, the predicted range and the decision for one typical item of each kind."""
    classes = run.classes
    assert run.guarantee is not None
    kept = pl.col("score") <= run.guarantee.threshold
    kinds = [
        kept & (pl.col("n:malignant") == 4) & (pl.col("label") == "malignant"),
        kept & (pl.col("n:benign") == 3) & (pl.col("label") == "benign"),
        ~kept & pl.all_horizontal(pl.col(f"n:{name}") > 0 for name in classes),
    ]
    for place, kind in enumerate(kinds):
        item = run.held_out("test").filter(kind).row(0, named=True)
        votes = [k for k, name in enumerate(classes) for _ in range(int(item[f"n:{name}"]))]
        for number, k in enumerate(votes):
            axes.plot(-0.62 + 0.1 * number, -place, "o", color=CLASS_COLORS[k], markersize=11)
        label, lower, upper = item["label"], item["lower"], item["upper"]
        color = CLASS_COLORS[classes.index(label)]
        for ends, shade in (([0, 1], "#dddddd"), ([lower, upper], color)):
            axes.plot(ends, [-place] * 2, color=shade, linewidth=9, solid_capstyle="butt")
        words = f"{label}: {100 * lower:.0f} to {100 * upper:.0f} %"
        axes.text(0, 0.2 - place, words, color=color, fontsize=9)
        decision, shade = ("ask a human", _RED) if place == 2 else ("predict", _GREEN)
        axes.text(1.06, -place, decision, va="center", weight="bold", color=shade)
    for x, head in ((-0.66, "votes"), (0, "predicted probability"), (1.06, "decision")):
        axes.text(x, 0.62, head, color=GRAY, fontsize=9)
    for k, name in enumerate(classes):
        axes.plot(-0.62 + 0.62 * k, -2.72, "o", color=CLASS_COLORS[k], markersize=8)
        axes.text(-0.55 + 0.62 * k, -2.72, name, va="center", fontsize=9)
    axes.set(xlim=(-0.75, 1.6), ylim=(-3, 0.8))
    axes.axis("off")
    axes.set_title(title, loc="left")


def _errors(axes: Axes, run: cl.Run, *, title: str) -> None:
    """Error among the kept test items against the share kept, and the certified threshold."""
    items = run.held_out("test").sort("score")
    found = run.guarantee
    assert found is not None
    assert found.max_error is not None
    kept = np.arange(1, len(items) + 1)
    judged = items["wrong"].is_not_null().cum_sum().to_numpy()  # items without a truth are kept too
    error = 100 * items["wrong"].fill_null(0).cum_sum().to_numpy() / judged.clip(1)
    share = 100 * float(found.keeps(items["score"].to_numpy()).mean())
    first, place = len(items) // 10, max(round(share * len(items) / 100) - 1, 0)
    limit = 100 * found.max_error
    axes.plot(100 * kept[first:] / len(items), error[first:], color=_BLUE)
    axes.axhline(limit, color=_RED, linestyle="--", linewidth=1.5)
    axes.plot(share, error[place], "o", color=_GREEN, markersize=8)
    top = 1.25 * max(limit, error.max())
    axes.vlines(
        share, 0, limit if share < 60 else 0.78 * top, color=_GREEN, linestyle=":", linewidth=2
    )
    axes.text(2, limit + 0.015 * top, f"promised: at most {limit:.0f} %", color=_RED)
    words = f"{share:.0f} % answered alone,\n{error[place]:.0f} % of them wrong"
    side, at = ("left", share + 2) if share < 60 else ("right", share - 2)
    axes.text(at, (0.03 if share < 60 else 0.6) * top, words, color=_GREEN, ha=side)
    axes.annotate(
        f"everything: {error[-1]:.0f} % wrong",
        (100, error[-1]),
        (-4, 10),
        textcoords="offset points",
        color=_BLUE,
        ha="right",
    )
    axes.set(xlabel="answered by the model (%)", ylabel="wrong (%)", xlim=(0, 102), ylim=(0, top))
    axes.set_title(title, loc="left")


def shoot_report(path: Path) -> None:
    """A screenshot of the demo's report; a message where there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print(f"{path} is not drawn: Chromium is not installed.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        list(run_demo(Path(folder)))
        page = Path(folder) / "run" / "report.html"
        sizes = ("--window-size=1020,1250", "--hide-scrollbars", "--virtual-time-budget=3000")
        target = (f"--user-data-dir={folder}/browser", f"--screenshot={path.resolve()}")
        command = [browser, *_CHROMIUM, *sizes, *target, page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


FIGURES: dict[str, tuple[Callable[[Figure], None], float, float]] = {
    "demo": (draw_demo, 10, 3.6),
    "tutorials/texts": (draw_texts, 6, 3.4),
    "tutorials/images": (draw_images, 7, 3.4),
    "tutorials/statements": (draw_statements, 6.5, 3.2),
    "tutorials/certify": (draw_certify, 6, 3),
    "tutorials/your-model": (draw_your_model, 6, 3.4),
    "tutorials/ask-next": (draw_ask_next, 8.5, 3.4),
    "concepts/credal-sets": (draw_sets, 9, 3.2),
    "concepts/labels": (draw_labels, 10, 2.9),
    "concepts/sets": (draw_widened, 6, 3.4),
    "concepts/pocc": (draw_pocc, 7.5, 3.4),
    "concepts/scores": (draw_scores, 6.5, 2.6),
    "concepts/guarantee": (draw_guarantee, 6, 3.4),
}


def main() -> None:
    """Draw all pictures into a folder, or those whose names follow it."""
    folder, *names = sys.argv[1:]
    for name in names or (*FIGURES, "report"):
        if name == "report":
            shoot_report(Path(folder) / "report.png")
            continue
        draw, width, height = FIGURES[name]
        save_figure(draw, Path(folder) / f"{name}.png", width=width, height=height)


if __name__ == "__main__":
    main()
