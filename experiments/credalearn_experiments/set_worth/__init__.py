"""What a set is worth: statements, mixed items and the width of sets, next to their rivals.

All studies are linear or on small networks and run on a CPU.
"""

from credalearn_experiments.set_worth import images, networks, statements, widths
from credalearn_experiments.studies import Studies

STUDIES: Studies = {
    "statements": (statements.statement_scores, statements.CELLS),
    "statements on images": (statements.network_statement_scores, statements.CELLS),
    "mixing": (networks.mixing_scores, networks.MIXED_DATA),
    "smoothing": (networks.smoothing_scores, networks.SMOOTHINGS),
    "widths": (widths.width_scores, widths.WIDTH_CELLS),
    "few votes": (widths.few_votes_scores, widths.CALIBRATIONS),
    "images": (images.image_scores, images.IMAGE_CELLS),
    "from scratch": (images.scratch_scores, images.IMAGE_CELLS),
}
