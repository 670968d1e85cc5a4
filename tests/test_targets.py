import pytest
import torch
from torch.nn import functional as F

from kmixup.targets import agreement, check_targets, mix_targets, mixed_loss, type_of, types_of

SCALAR, EACH = torch.tensor(0.3), torch.tensor([0.3, 1.0, 0.0, 0.75])
Y_A, Y_B = torch.tensor([0, 1, 2, 2]), torch.tensor([1, 1, 0, 1])


@pytest.mark.parametrize("lam", [SCALAR, EACH])
def test_soft_targets_are_mixed_one_hot_vectors(lam):
    weight = lam if lam.dim() == 0 else lam[:, None]
    expected = weight * F.one_hot(Y_A, 3) + (1 - weight) * F.one_hot(Y_B, 3)
    torch.testing.assert_close(mix_targets(Y_A, Y_B, lam, 3), expected)


@pytest.mark.parametrize("lam", [SCALAR, EACH])
def test_classes_of_pixels_get_their_dimension_where_cross_entropy_expects_it(lam):
    y_a, y_b = torch.randint(5, (2, 4, 6, 7))
    soft = mix_targets(y_a, y_b, lam, 5)
    assert soft.shape == (4, 5, 6, 7)
    logits = torch.randn(4, 5, 6, 7)
    pixel = mixed_loss(lambda z, y: F.cross_entropy(z, y, reduction="none"), logits, y_a, y_b, lam)
    torch.testing.assert_close(F.cross_entropy(logits, soft), pixel.mean())


@pytest.mark.parametrize("lam", [SCALAR, EACH])
@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2)])
def test_float_targets_are_interpolated(lam, shape):
    y_a, y_b = torch.randn(2, *shape)
    weight = lam if lam.dim() == 0 else lam.view(-1, *[1] * (len(shape) - 1))
    torch.testing.assert_close(mix_targets(y_a, y_b, lam), weight * y_a + (1 - weight) * y_b)


@pytest.mark.parametrize("lam", [SCALAR, EACH])
def test_loss_equals_cross_entropy_on_the_soft_targets(lam):
    logits = torch.randn(4, 3)
    each = mixed_loss(lambda z, y: F.cross_entropy(z, y, reduction="none"), logits, Y_A, Y_B, lam)
    expected = F.cross_entropy(logits, mix_targets(Y_A, Y_B, lam, 3), reduction="none")
    torch.testing.assert_close(each, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss_takes_any_reduction_with_one_lam(reduction):
    logits = torch.randn(4, 3)
    loss = mixed_loss(
        torch.nn.CrossEntropyLoss(reduction=reduction, label_smoothing=0.1),
        logits,
        Y_A,
        Y_B,
        SCALAR,
    )
    a, b = (
        F.cross_entropy(logits, y, reduction=reduction, label_smoothing=0.1) for y in (Y_A, Y_B)
    )
    torch.testing.assert_close(loss, 0.3 * a + 0.7 * b)


def test_loss_of_a_criterion_that_is_not_linear_in_the_target():
    out, y_a, y_b = torch.randn(3, 4, 2)
    loss = mixed_loss(F.mse_loss, out, y_a, y_b, SCALAR)
    torch.testing.assert_close(loss, 0.3 * F.mse_loss(out, y_a) + 0.7 * F.mse_loss(out, y_b))
    unreduced = mixed_loss(lambda z, y: F.mse_loss(z, y, reduction="none"), out, y_a, y_b, EACH)
    assert unreduced.shape == (4, 2)


def test_loss_keeps_ignored_targets_ignored():
    y_a, y_b = Y_A.clone(), Y_B.clone()
    y_a[1] = y_b[1] = -100
    logits = torch.randn(4, 3, requires_grad=True)
    mixed_loss(F.cross_entropy, logits, y_a, y_b, SCALAR).backward()
    assert logits.grad[1].abs().sum() == 0


@pytest.mark.parametrize("criterion", [F.cross_entropy, lambda z, y: torch.zeros(7)])
def test_several_lam_need_one_loss_for_each_sample(criterion):
    with pytest.raises(ValueError, match='one loss per sample, got shape.*reduction="none"'):
        mixed_loss(criterion, torch.randn(4, 3), Y_A, Y_B, EACH)


def test_accuracy_weighs_the_agreement_with_both_labels():
    logits = F.one_hot(torch.tensor([0, 1, 1, 1]), 3).float()
    assert agreement(logits, Y_A, Y_B, SCALAR).mean() == pytest.approx((0.3 + 1 + 0 + 0.7) / 4)
    assert agreement(logits, Y_A, Y_B, EACH).mean() == pytest.approx((0.3 + 1 + 0 + 0.25) / 4)
    soft_a, soft_b = F.one_hot(Y_A, 3).float(), F.one_hot(Y_B, 3).float()
    assert agreement(logits, soft_a, soft_b, EACH).mean() == pytest.approx(1.55 / 4)


def test_accuracy_of_a_regression_is_refused():
    with pytest.raises(ValueError, match=r"accuracy needs class indices.*got targets of shape"):
        agreement(torch.randn(4, 1), torch.randn(4), torch.randn(4), SCALAR)


@pytest.mark.parametrize("bad", [-1, 3])
def test_classes_out_of_range_are_named(bad):
    y = Y_A.clone()
    y[2] = bad
    with pytest.raises(ValueError, match=f"must lie in 0 … 2 with num_classes=3, got {bad}"):
        check_targets(y, "classes", 3)


IMAGES = [torch.zeros(8, 3, 32, 16)]
SHAPES = [  # of targets next to these images: integers, floats
    ((8,), "classes", "regression"),
    ((8, 5), ValueError, "soft"),
    ((8, 32, 16), "map", "dense"),
    ((8, 16, 8), "map", None),
    ((8, 17, 64, 32), "map", "dense"),
    ((8, 17, 2), None, None),
    ((8, 5, 17, 2), None, None),
]


@pytest.mark.parametrize(("shape", "whole", "fractions"), SHAPES)
def test_the_type_of_targets_follows_dtype_and_shape(shape, whole, fractions):
    for dtype in (torch.uint8, torch.int64, torch.float16, torch.float64):
        expected = fractions if dtype.is_floating_point else whole
        if expected is ValueError:
            with pytest.raises(ValueError, match="are ambiguous: use y.float"):
                type_of(torch.zeros(shape, dtype=dtype), IMAGES)
        else:
            assert type_of(torch.zeros(shape, dtype=dtype), IMAGES) == expected


def test_next_to_inputs_that_are_no_images_nothing_is_a_map():
    for table in ([], [torch.zeros(8, 5)]):
        assert type_of(torch.zeros(8, 4, 4, dtype=torch.long), table) is None
        assert type_of(torch.zeros(8, 1, 4, 4), table) is None


GIVEN = [
    ("classes", torch.zeros(8), TypeError, "targets='classes' cannot be torch.float32: use y.long"),
    ("map", torch.zeros(8, 4, 4), TypeError, "targets='map' cannot be torch.float32: use y.long"),
    ("map", torch.zeros(8, 4).long(), ValueError, "targets='map' must have the shape .n, …, h"),
    ("dense", torch.zeros(8, 4), ValueError, "targets='dense' must have the shape .n, …, heigh"),
    ("dense", torch.zeros(8, 4, 4).bool(), TypeError, "cannot be torch.bool: use y.float"),
    ("soft", torch.zeros(8), ValueError, "targets='soft' must have the shape .n, classes., got"),
    ("soft", torch.zeros(8, 3).long(), TypeError, "targets='soft' cannot be torch.int64: use y.f"),
    ("regression", torch.zeros(8).long(), TypeError, "'regression' cannot be torch.int64"),
]


@pytest.mark.parametrize(("given", "y", "error", "message"), GIVEN)
def test_a_given_type_that_does_not_fit_raises(given, y, error, message):
    with pytest.raises(error, match=message):
        types_of(y, given)


def test_types_may_be_given_for_parts_of_a_nest():
    y = {"a": torch.zeros(8), "b": [torch.zeros(8, 7).long(), torch.zeros(8, 2, 2)], "c": ["x"] * 8}
    given = {"c": "pass", "b": ["classes", None], "a": None}
    types = types_of(y, given, [torch.zeros(8, 1, 2, 2)])
    assert types == {"a": "regression", "b": ["classes", "dense"], "c": ["pass"] * 8}
    assert list(types) == list(y)
    with pytest.raises(
        ValueError, match="targets must be one for all, or nested like y, a dict, g"
    ):
        types_of(y, ["pass"])
    with pytest.raises(TypeError, match='y must be a tensor, a nest .* or targets="pass"'):
        types_of(y, {"a": None, "b": "pass", "c": None})


class Labels(torch.Tensor):
    """A subclass of tensors, as labels of torchvision's older versions were."""


def test_subclasses_of_tensors_have_types_too():
    assert types_of(torch.zeros(8).as_subclass(Labels), None) == "regression"
