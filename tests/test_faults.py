"""Deliberate faults in the core: each must be caught by the test named with it.

Every fault is one replacement in one source file of a copy of the package; the test named with it
runs against that copy and must fail.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]


class Fault(NamedTuple):
    file: str
    right: str
    wrong: str
    guard: str


FAULTS = {
    "worst case takes the cheapest class": Fault(
        "sets/lower_bounds.py",
        "cost.argmax(1, keepdim=True) if largest else cost.argmin(1, keepdim=True)",
        "cost.argmin(1, keepdim=True) if largest else cost.argmax(1, keepdim=True)",
        "sets/test_extremes.py::test_extremes_equal_a_linear_program[lower bounds]",
    ),
    "best case of intervals pours dearest first": Fault(
        "sets/greedy.py",
        "descending=largest",
        "descending=True",
        "sets/test_extremes.py::test_extremes_equal_a_linear_program[intervals]",
    ),
    "vertices always choose the dearest": Fault(
        "sets/vertices.py",
        "totals.argmax(1) if largest else totals.argmin(1)",
        "totals.argmax(1)",
        "sets/test_extremes.py::test_extremes_equal_a_linear_program[vertices]",
    ),
    "the ball gives mass to the cheapest class": Fault(
        "sets/total_variation.py",
        "order[:, :1]",
        "order[:, -1:]",
        "sets/test_extremes.py::test_extremes_equal_a_linear_program[balls]",
    ),
    "free mass is dropped": Fault(
        "sets/lower_bounds.py",
        "(1 - lower.sum(1)).clamp(min=0)",
        "(1 - lower.sum(1)).clamp(max=0)",
        "sets/test_sets.py::test_members_are_inside_and_within_the_bounds[2-lower bounds]",
    ),
    "bounds are tightened by the sum of all classes": Fault(
        "sets/intervals.py",
        "1 - (lower.sum(1, keepdim=True) - lower)",
        "1 - lower.sum(1, keepdim=True)",
        "sets/test_sets.py::test_members_are_inside_and_within_the_bounds[2-intervals]",
    ),
    "entropy in nats": Fault(
        "sets/hull_entropy.py",
        "return nats / math.log(2)",
        "return nats",
        "sets/test_entropy.py::test_entropy_of_distributions",
    ),
    "largest entropy stops at an end of the segment": Fault(
        "sets/hull_entropy.py",
        "torch.where(at_limit, limit, low)",
        "torch.where(at_limit, limit, 0 * low)",
        "sets/test_entropy.py::test_segments_equal_a_fine_grid[2]",
    ),
    "smallest entropy ignores the class in between": Fault(
        "sets/box_entropy.py",
        "+ entr(between) - at_lower[row]",
        "- at_lower[row]",
        "sets/test_entropy.py::test_min_entropy_of_a_box_equals_enumeration[2-600]",
    ),
    "imprecision is not halved": Fault(
        "sets/diameter.py",
        "(points[:, 0] - points[:, 1]).abs().sum(1) / 2",
        "(points[:, 0] - points[:, 1]).abs().sum(1)",
        "test_predictions.py::test_scores_match_their_definitions",
    ),
    "relaxation keeps the least probable class": Fault(
        "labels/soft.py",
        "soft.argmax(1)",
        "soft.argmin(1)",
        "labels/test_labels.py::test_relax_keeps_the_top_class_only",
    ),
    "votes are not divided by their number": Fault(
        "labels/votes.py",
        "(votes.total + votes.s)",
        "(votes.counts + votes.s)",
        "labels/test_labels.py::test_vote_rules_contain_the_vote_shares",
    ),
    "ties go to one class": Fault(
        "labels/soft.py",
        "tied = probs >= probs.amax(1, keepdim=True) * (1 - rounding)",
        "tied = probs.cumsum(1) >= probs.amax(1, keepdim=True)",
        "labels/test_labels.py::test_vote_rules_match_their_definitions",
    ),
    "Clopper–Pearson forgets the number of classes": Fault(
        "labels/votes.py",
        "level = (1 - votes.confidence) / votes.counts.shape[1]",
        "level = 1 - votes.confidence",
        "labels/test_labels.py::test_clopper_pearson_limits_invert_the_binomial_tail",
    ),
    "the temperature multiplies": Fault(
        "labels/soft.py",
        "outputs / temperature",
        "outputs * temperature",
        "labels/test_labels.py::test_teacher_is_softened_by_its_temperature",
    ),
    "the heads are swapped in the loss": Fault(
        "methods/pocc.py",
        "labels.best_target(pessimistic_logits)",
        "labels.worst_target(pessimistic_logits)",
        "methods/test_pocc.py::test_loss_equals_the_papers_closed_form",
    ),
    "the heads are swapped in training": Fault(
        "methods/pocc.py",
        "return pocc_loss(logits[:, 0], logits[:, 1], labels)",
        "return pocc_loss(logits[:, 1], logits[:, 0], labels)",
        "methods/test_pocc.py::test_the_first_head_is_the_pessimist",
    ),
    "lower and upper are swapped in predictions": Fault(
        "predictions.py",
        "vertices.amin(1), vertices.amax(1)",
        "vertices.amax(1), vertices.amin(1)",
        "test_predictions.py::test_scores_match_their_definitions",
    ),
    "deferral scores by the upper probability": Fault(
        "scores.py",
        "1 - pred.lower.gather",
        "1 - pred.upper.gather",
        "test_predictions.py::test_scores_match_their_definitions",
    ),
    "the order of the items is the same in every epoch": Fault(
        "train/_learner.py",
        "self.random.reseed(random_state, self.epoch + 1)  #",
        "self.random.reseed(random_state, 1)  #",
        "train/test_loop.py::test_no_batch_is_tiny_and_every_item_is_seen[21]",
    ),
    "a resumed run forgets the optimizer": Fault(
        "train/checkpoint.py",
        'optimizer.load_state_dict({"state": state, "param_groups": groups})',
        "state.clear()",
        "train/test_checkpoint.py::test_a_stopped_run_resumes_to_the_same_weights[1-adam]",
    ),
    "the cosine falls by a quarter turn": Fault(
        "train/training.py",
        "math.cos(math.pi * share)",
        "math.cos(share)",
        "train/test_training.py::test_rates_of_the_papers_recipes",
    ),
    "images are always mirrored": Fault(
        "train/augment.py",
        "    if flip:",
        "    if True:",
        "train/test_augment.py::test_flipping_mirrors_half_of_the_crops",
    ),
    "the file of weights is not read": Fault(
        "nets/backbones.py",
        "    if path is not None:\n        load",
        "    if path is None:\n        load",
        "nets/test_weights.py::test_a_backbone_starts_from_the_file[own.pt]",
    ),
    "dropout at prediction draws a mask for every item": Fault(
        "methods/model.py",
        "torch.ones(1, *output.shape[1:])",
        "torch.ones(*output.shape)",
        "methods/test_model.py::test_dropout_does_not_depend_on_the_batch[mlp]",
    ),
    "training changes the random numbers outside": Fault(
        "train/_random.py",
        "            default.set_state(before)",
        "            pass",
        "test_classifier.py::test_a_function_starts_every_member_of_an_ensemble_elsewhere",
    ),
    "a failed fit changes the classifier": Fault(
        "classifier.py",
        "fitted = copy.copy(self)",
        "fitted = self",
        "test_classifier.py::test_a_fit_that_fails_changes_nothing",
    ),
    "folds ignore the groups": Fault(
        "_folds.py",
        "names = np.arange(len(truth)) if groups is None else np.asarray(groups)",
        "names = np.arange(len(truth))",
        "test_selection.py::test_the_classifier_keeps_groups_together",
    ),
    "predictions out of fold come from the own fold": Fault(
        "_folds.py",
        "np.flatnonzero(folds != fold) for fold in",
        "np.flatnonzero(folds == fold) for fold in",
        "test_selection.py::test_predictions_out_of_fold_come_from_models_without_the_item",
    ),
    "a fold knows the terms of its own items": Fault(
        "_text_encoder.py",
        "if rows is None:",
        "if True:",
        "test_text_encoder.py::test_a_fold_encodes_as_an_encoder_of_its_own_texts",
    ),
    "predictions out of fold of texts use the encoder of all items": Fault(
        "_folds.py",
        "self.encode(self.inputs, rows)",
        "self.encode(self.inputs, np.arange(len(self)))",
        "test_text_encoder.py::test_each_fold_is_encoded_by_the_others",
    ),
    "the temperature of votes serves for the truth": Fault(
        "classifier.py",
        '{"truth": items.truth, "votes": items.labels.reference}',
        '{"truth": items.labels.reference, "votes": items.labels.reference}',
        "test_selection.py::test_each_meaning_is_better_at_what_it_is_about",
    ),
    "Ctrl-C does not wait for the work": Fault(
        "train/_threads.py",
        "done.wait()\n        raise\n    finally:\n        thread.join()",
        "raise",
        "train/test_threads.py::test_control_c_ends_a_selection",
    ),
    "calibration bins are closed on the left": Fault(
        "metrics/calibration.py",
        "edges.to(checked.device))",
        "edges.to(checked.device), right=True)",
        "metrics/test_metrics.py::test_a_confidence_on_an_edge_falls_to_the_left",
    ),
    "the most certain are deferred first": Fault(
        "_ranks.py",
        "order = scores.argsort()",
        "order = (-scores).argsort()",
        "metrics/test_metrics.py::test_deferral_with_any_scores_and_ties",
    ),
    "SGR gives every test the whole risk": Fault(
        "guarantees/_sequence.py",
        "return risk / round(float(kept[-1])).bit_length()",
        "return risk",
        "guarantees/test_thresholds.py::test_thresholds_match_a_slow_search",
    ),
    "a bet knows the group that it is about": Fault(
        "guarantees/betting.py",
        "np.cumsum(gains**2, axis=0) - gains**2",
        "np.cumsum(gains**2, axis=0)",
        "guarantees/test_betting.py::test_p_value_matches_a_slow_gambler",
    ),
    "groups of different size count by their items": Fault(
        "guarantees/_sequence.py",
        "weights = about / sizes[group]",
        "weights = about / sizes.mean()",
        "guarantees/test_betting.py::test_group_shares_by_a_loop",
    ),
    "one promise of several is enough": Fault(
        "guarantees/_sequence.py",
        "np.max([each.p_values(rate, risk) for each, rate in pairs], axis=0)",
        "np.min([each.p_values(rate, risk) for each, rate in pairs], axis=0)",
        "guarantees/test_promises.py::test_one_threshold_keeps_all_promises",
    ),
    "strata share one radius": Fault(
        "conformal/inflation.py",
        "radii = [known.get(str(name), math.inf) for name in strata]",
        "radii = [self.radius for name in strata]",
        "conformal/test_calibration.py::test_strata_are_covered_separately",
    ),
    "the radius is one rank too small": Fault(
        "conformal/calibration.py",
        "values[rank * draws - 1]",
        "values[max(rank - 1, 1) * draws - 1]",
        "conformal/test_calibration.py::test_radius_is_the_counted_quantile",
    ),
    "items of one name are merged whatever they are": Fault(
        "app/annotations/merge.py",
        "known.get(item, content) != content",
        "known.get(item, content) is None",
        "app/readers/test_readers.py::test_items_of_another_split_are_not_merged_by_their_names",
    ),
    "items without votes are trained on": Fault(
        "app/_split.py",
        "held = set(groups[unvoted])",
        "held = set(groups[~unvoted])",
        "app/test_dataset.py::test_gold_labeled_items_without_votes_calibrate_and_test",
    ),
    "columns are judged on the items that grew the tree": Fault(
        "app/steps/baselines.py",
        "tree.score(column[held_out], truth[held_out])",
        "tree.score(column[seen], truth[seen])",
        "app/steps/test_baselines.py::test_ignores_rare_classes_and_few_items",
    ),
}

# Importing torch and the rest takes longer than most guards: once, and a fork for each fault.
SERVER = """
import gc, os, sys
sys.path.append("tests")
import hypothesis, numpy, pandas, pytest, scipy.optimize, scipy.stats, sklearn.metrics, torch
import torchvision_shim, torchmetrics
gc.freeze()  # half a second less in each fork
for line in sys.stdin:
    folder, *arguments = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if child == 0:
        sys.path.insert(0, folder)  # before the installed package
        written = os.open(f"{folder}/output", os.O_WRONLY | os.O_CREAT)
        os.dup2(written, 1)
        os.dup2(written, 2)
        code = int(pytest.main(arguments))
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

# pytest warns that it can no longer rewrite hypothesis's assertions.
ALREADY = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"


@dataclass(frozen=True)
class Guards:
    """A process that runs tests against copies of the package."""

    process: "subprocess.Popen[str]"

    def run(self, folder: Path, *guards: str) -> tuple[int, str]:
        """Exit code and output of pytest on these tests, with the package in this folder."""
        # The copy, not src, which pytest's own setting would put first.
        asked = ["-o", f"pythonpath={folder} experiments tests benchmarks scripts"]
        asked += ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", ALREADY]
        asked += [f"tests/{guard}" for guard in guards]
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\t".join([str(folder), *asked]) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return code, (folder / "output").read_text()


@pytest.fixture(scope="module")
def guards() -> Iterator[Guards]:
    command = [sys.executable, "-c", SERVER]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True
    ) as process:
        yield Guards(process)
        assert process.stdin is not None
        process.stdin.close()


def test_unchanged_copy_passes(guards: Guards, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "credalearn", tmp_path / "credalearn")
    code, output = guards.run(tmp_path, *sorted({fault.guard for fault in FAULTS.values()}))
    assert code == 0, output


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_caught(name: str, guards: Guards, tmp_path: Path) -> None:
    fault = FAULTS[name]
    shutil.copytree(ROOT / "src" / "credalearn", tmp_path / "credalearn")
    path = tmp_path / "credalearn" / fault.file
    text = path.read_text()
    assert text.count(fault.right) == 1, "the fault's place has moved: name it again"
    path.write_text(text.replace(fault.right, fault.wrong))
    code, output = guards.run(tmp_path, fault.guard)
    assert code == 1, f"{fault.guard} does not fail:\n{output}"
