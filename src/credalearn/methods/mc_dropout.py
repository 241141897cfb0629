"""Monte-Carlo dropout: five passes with dropout left on (Gal and Ghahramani, 2016).

Dropout stands once, before the heads: the place it has in a network without residual blocks.
Normalisation layers stay in evaluation mode. The predicted set is the hull of the passes; mutual
information is its usual score. Which features a pass drops depends on the seed and on the place of
an item in its batch, so an item predicted alone differs a little from the same item among others.
"""

from credalearn.methods.base import Method, hull_of_outputs
from credalearn.methods.softmax import softmax_loss

MC_DROPOUT = Method(
    loss=softmax_loss,
    predictions=hull_of_outputs,
    num_passes=5,
    score="mutual-information",
    dropout=0.3,
)
