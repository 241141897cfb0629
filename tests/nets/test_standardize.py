"""Standardized inputs: constant, large and narrow features, and channels of images."""

import pytest
import torch
from torch.testing import assert_close

from credalearn.nets import Standardize, standardize
from largest_tensor import LargestTensor
from random_sets import random_images


def test_scales_narrow_features_of_float64_and_whole_numbers() -> None:
    signs = torch.tensor([[-1.0], [1.0], [1.0], [-1.0]], dtype=torch.float64)
    for place, spread in ((1e6, 0.05), (1.7e9, 100.0), (-1e7, 0.5)):
        layer = Standardize(1)
        layer.fit(place + spread * signs)
        assert_close(layer(place + spread * signs), signs.float(), atol=1e-6, rtol=0)
    layer.fit((1_700_000_000 + 3 * signs).long())
    assert layer.scale.item() == 3


def test_each_channel_has_its_mean_and_spread(generator: torch.Generator) -> None:
    images = random_images(generator, 50, 3, 6, 5)
    images[:, 1] = images[:, 1] // 9 + 7
    images[:, 2] = 200  # a constant channel becomes 0
    expected = torch.zeros(50, 3, 6, 5)
    for channel in range(2):
        values = images[:, channel].double()
        mean = values.sum() / values.numel()
        spread = ((values - mean) ** 2).sum().div(values.numel()).sqrt()
        expected[:, channel] = ((values - mean) / spread).float()
    for inputs in (images, images.float(), images.double()):
        layer = Standardize(3)
        layer.fit(inputs)
        assert torch.equal(inputs, images.to(inputs.dtype))  # they are the caller's own
        found = layer(inputs)
        assert found.dtype == torch.float32
        assert_close(found, expected, atol=2e-6, rtol=0)


def test_fits_in_chunks_to_the_same_numbers(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = random_images(generator, 103, 3, 8, 8)
    whole, parts = Standardize(3), Standardize(3)
    whole.fit(images)
    monkeypatch.setattr(standardize, "_CHUNK", 10 * images[0].numel())
    with LargestTensor() as largest:
        parts.fit(images)
    assert_close(parts.state_dict(), whole.state_dict(), atol=0, rtol=1e-13)
    assert largest.numel <= 10 * images[0].numel()


def test_a_constant_feature_becomes_zero_also_with_rounding_noise() -> None:
    inputs = torch.tensor([[1e6, 5.0, 0.1], [1e6 + 2, 5.0, 0.1]])
    inputs[1, 2] = torch.nextafter(inputs[1, 2], torch.ones(()))
    layer = Standardize(3)
    layer.fit(inputs)
    expected = torch.tensor([[-1.0, 0, 0], [1.0, 0, 0]])
    assert_close(layer(inputs), expected, atol=1e-4, rtol=0)
    assert layer.scale[1:].tolist() == [1, 1]
