"""Monte-Carlo dropout: five passes with dropout left on (Gal and Ghahramani, 2016).

Dropout stands between the two convolutions of every residual block; in a backbone that places none
itself, such as a multilayer perceptron, once, before the heads. Every dropout layer of the network
is left on, and normalization layers stay in evaluation mode. The predicted set is the hull of the
passes; mutual information is its usual score. Which features a pass drops depends on the random_state and
on the place of an item in its batch, so an item predicted alone differs a little from the same item
among others.
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
