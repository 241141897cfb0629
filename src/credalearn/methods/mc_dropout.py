"""Monte-Carlo dropout: five passes with dropout left on (Gal and Ghahramani, 2016).

Dropout stands between the two convolutions of every residual block; in a backbone that places none
itself, such as a multilayer perceptron, once, before the heads. At prediction every dropout layer
of the network is on, and normalization layers are in evaluation mode. Each pass drops the same
features of every item, so that the prediction for an item depends on the model and the random seed
alone, not on other items. The predicted set is the hull of the passes; mutual information is its
usual score.
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
