"""The page as one file: text, style, script, numbers and chart library together."""

import base64
import hashlib
from importlib import resources
from string import Template
from typing import Any

from credalearn.app.report.assumptions import assumptions_section
from credalearn.app.report.data import Page
from credalearn.app.report.details import (
    calibration_section,
    compared_section,
    confusion_section,
)
from credalearn.app.report.gallery import gallery_section
from credalearn.app.report.html import Html, element, join, json_in_html, short_percent
from credalearn.app.report.sections import data_section, score_name, verdict_section
from credalearn.app.report.sets import sets_section
from credalearn.app.report.slider import curve_section
from credalearn.app.report.walks import Walk

ECHARTS = "6.1.0"
_CREDIT = (
    f"Charts by Apache ECharts {ECHARTS}, © The Apache Software Foundation, Apache License 2.0. "
    "This page is one file; it asks the network for nothing."
)
_CONTENTS = {
    "data": "Data",
    "curve": "Deferring",
    "calibration": "Calibration",
    "sets": "Sets",
    "confusion": "Confusion",
    "gallery": "Items",
    "compared": "Methods",
    "assumptions": "Assumptions",
}
_MOST_POINTS = 200  # of the curve of a run compared


def render_page(page: Page, *, subtitle: str = "", generator: str = "credalearn") -> str:
    """The page as HTML, under 3 MB, that needs no network and lets nothing from outside run.

    Its policy allows no request at all and only the two scripts whose hashes it names: a label that
    holds a script stays text, and would not run if it did not.

    Args:
        page: What to show.
        subtitle: A line under the heading.
        generator: The program and its version.
    """
    library, script, style = (
        _file(*each) for each in (("vendor", "echarts.common.min.js"), ("page.js",), ("page.css",))
    )
    sections = [
        verdict_section(page.verdict),
        data_section(page.disagreement),
        curve_section(page),
        calibration_section(page),
        sets_section(page),
        confusion_section(page),
        gallery_section(page),
        compared_section(page),
        assumptions_section(page),
    ]
    links = [
        element("li", element("a", name, href=f"#{place}")) for place, name in _CONTENTS.items()
    ]
    filled: dict[str, Html] = {
        "policy": join(_policy(library, script)),
        "generator": join(generator),
        "title": join(page.title),
        "subtitle": join(subtitle),
        "style": Html(style),
        "contents": join(*links),
        "sections": join(*(Html(f"{each}\n") for each in sections)),
        "credit": join(_CREDIT),
        "data": json_in_html(script_data(page)),
        "library": Html(library),
        "script": Html(script),
    }
    return Template(_file("template.html")).substitute(filled)


def script_data(page: Page) -> dict[str, Any]:
    """The numbers that the script shows: the whole table behind the slider, computed here."""
    bins = page.held_out.reliability
    rule, first = page.rule, page.walks[0]
    limit = short_percent(rule.max_error or 0.0) if rule else ""
    return {
        "items": len(page.held_out.items),
        "start": page.start,
        "walks": [
            {
                "name": score_name(each.score),
                "threshold": each.thresholds.tolist(),
                "kept": each.kept.tolist(),
                "judged": each.judged.tolist(),
                "wrong": each.wrong.tolist(),
                "low": each.low.tolist(),
                "high": each.high.tolist(),
                "deferred": each.deferred.tolist(),
            }
            for each in page.walks
        ],
        "rule": {"certified": rule.certified} if rule and rule.threshold is not None else None,
        "region": (
            {"coverage": first.coverage(page.start), "error": rule.max_error, "limit": limit}
            if rule is not None and page.shaded
            else None
        ),
        "bins": [
            list(each)
            for each in zip(bins.count, bins.confidence, bins.accuracy, strict=True)
            if each[0]
        ],
        "runs": [
            {"name": each.name, "points": _points(each.walk)}
            for each in page.compared
            if len(page.compared) > 1
        ],
    }


def _points(walk: Walk) -> list[list[float]]:
    """Coverage and accuracy along a curve, thinned."""
    step = -(-len(walk.kept) // _MOST_POINTS)
    places = sorted({*range(0, len(walk.kept), step), len(walk.kept) - 1})
    errors = ((place, walk.error(place)) for place in places)
    return [[walk.coverage(place), 1 - error] for place, error in errors if error is not None]


def _policy(*scripts: str) -> str:
    """No request of any kind; no script but these."""
    hashes = []
    for script in scripts:
        digest = hashlib.sha256(script.encode()).digest()
        hashes.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(hashes),
        "style-src": "'unsafe-inline'",  # widths of bars; without requests a style can send nothing
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _file(*parts: str) -> str:
    return resources.files("credalearn.app.report").joinpath(*parts).read_text(encoding="utf-8")
