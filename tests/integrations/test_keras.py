"""The layers beside keras.layers.MixUp and CutMix, on the backend that KERAS_BACKEND names."""

import os
import subprocess
import sys
from importlib.util import find_spec

import keras
import numpy as np
import pytest
import torch
from scipy import stats

import kmixup
from kmixup.integrations.keras import KCutMix, KMixUp

N = 32
BACKEND = keras.backend.backend()
BOTH = pytest.mark.parametrize("kind", [KMixUp, KCutMix])
# what JAX says of the integers of Keras' own layer, and TensorFlow of NumPy
pytestmark = pytest.mark.filterwarnings(
    "ignore:Explicitly requested dtype", "ignore::UserWarning:tensorflow"
)


def batch(n=N):
    random = np.random.default_rng(0)
    images = random.normal(size=(n, 8, 8, 3)).astype("float32")
    return {"images": images, "labels": np.eye(4, dtype="float32")[np.arange(n) % 4]}


def numbers(tensor):
    return np.asarray(keras.ops.convert_to_numpy(tensor))


def drawn(layer, data=None, **options):
    """lam and partners of a batch."""
    chance = layer.get_random_transformation(batch() if data is None else data, **options)
    return numbers(chance["mix_weight"]).reshape(-1), numbers(chance["permutation_order"])


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_another_backend_passes_these_tests(backend):
    if BACKEND != "torch" or find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed, or this is its run")
    command = [sys.executable, "-m", "pytest", "-q", "--integrations", "-p", "no:xdist", __file__]
    done = subprocess.run(
        command,
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout


def test_images_and_labels_are_mixed_along_a_matching():
    data = batch()
    lam, partner = drawn(KMixUp(1.0, k=8, seed=1))
    assert sorted(partner) == list(range(N))
    assert len(set(lam.tolist())) == N
    mixed = KMixUp(1.0, k=8, seed=1)(batch())
    weight = lam[:, None]
    labels = weight * data["labels"] + (1 - weight) * data["labels"][partner]
    assert numbers(mixed["labels"]) == pytest.approx(labels, abs=1e-6)
    weight = weight[:, :, None, None]
    images = weight * data["images"] + (1 - weight) * data["images"][partner]
    assert numbers(mixed["images"]) == pytest.approx(images, abs=1e-5)


def test_boxes_are_pasted_from_the_partner():
    data = batch()
    lam, partner = drawn(KCutMix(k=8, seed=1))
    mixed = KCutMix(k=8, seed=1)(batch())
    images = numbers(mixed["images"])
    theirs = data["images"][partner]
    assert ((images == data["images"]) | (images == theirs)).all()
    labels = lam[:, None] * data["labels"] + (1 - lam[:, None]) * data["labels"][partner]
    assert numbers(mixed["labels"]) == pytest.approx(labels, abs=1e-6)


@BOTH
def test_lam_is_that_of_keras_and_partners_are_optimal_in_blocks_of_its_permutation(kind):
    own = getattr(keras.layers, kind.__name__[1:])(seed=1)
    lam, order = drawn(own)
    our_lam, partner = drawn(kind(k=8, seed=1))
    assert np.array_equal(our_lam, lam)
    images = torch.from_numpy(batch()["images"]).flatten(1)
    for start in range(0, N, 8):
        rows, facing = order[start : start + 8], np.roll(order, -8)[start : start + 8]
        best = kmixup.match(images[rows], images[facing], k=8)
        assert partner[rows].tolist() == facing[best].tolist()


@BOTH
def test_a_seed_repeats_all_batches_and_batches_differ(kind):
    def run(**seed):
        layer = kind(k=8, **seed)
        return [numbers(layer(batch())["labels"]) for _ in range(3)]

    first, again = run(seed=3), run(seed=3)
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], run(seed=4)[0])
    keras.utils.set_random_seed(5)
    unseeded = run()
    keras.utils.set_random_seed(5)
    assert np.array_equal(unseeded[0], run()[0])


@BOTH
def test_nothing_is_mixed_outside_of_training_or_alone(kind):
    data, layer = batch(), kind(k=8, seed=1)
    rested = layer(batch(), training=False)
    assert np.array_equal(numbers(rested["images"]), data["images"])
    assert np.array_equal(numbers(rested["labels"]), data["labels"])
    single = {"images": data["images"][0], "labels": data["labels"][0]}
    assert numbers(layer(dict(single))["images"]) == pytest.approx(single["images"], abs=1e-6)
    assert not np.array_equal(numbers(layer(data["images"])), data["images"])
    if kind is KMixUp:
        assert np.array_equal(numbers(KMixUp(0.0)(batch())["images"]), data["images"])


@BOTH
def test_class_indices_raise(kind):
    with pytest.raises(ValueError, match=r"labels must be one-hot or soft.*got shape \(32,\)"):
        kind(k=8)({"images": batch()["images"], "labels": np.arange(N) % 4})


def test_bytes_are_matched_as_numbers():
    images = np.random.default_rng(0).integers(0, 255, (N, 8, 8, 3)).astype("uint8")
    mixed = KMixUp(1.0, k=8, seed=1)({"images": images, "labels": batch()["labels"]})
    assert numbers(mixed["images"]).dtype == np.float32
    assert numbers(mixed["images"]).max() <= 255


@BOTH
def test_a_layer_is_saved_and_rebuilt(kind):
    layer = kind(0.3, k=4, seed=2)
    rebuilt = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert (rebuilt.k, rebuilt.seed) == (4, 2)
    assert np.array_equal(numbers(layer(batch())["labels"]), numbers(rebuilt(batch())["labels"]))


@BOTH
def test_the_first_positional_argument_is_that_of_keras_and_k_is_a_keyword(kind):
    assert kind(1).k == 16
    assert kind(0.3).get_config() | {"name": "", "k": 0} == getattr(
        keras.layers, kind.__name__[1:]
    )(0.3).get_config() | {"name": "", "k": 0}
    with pytest.raises(ValueError, match="k must be"):
        kind(k=0)
    with pytest.raises(TypeError, match="positional"):
        kind(0.2, None, None, 16)


@BOTH
def test_a_compiled_model_trains_through_the_layer(kind):
    data = batch()
    data["images"] += 3 * data["labels"].argmax(1)[:, None, None, None]
    keras.utils.set_random_seed(0)
    layers = [kind(k=8, seed=1), keras.layers.Flatten(), keras.layers.Dense(4, "softmax")]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.Adam(0.01), "categorical_crossentropy")
    losses = model.fit(data["images"], data["labels"], epochs=60, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@BOTH
def test_a_pipeline_of_tf_data_maps_the_layer(kind):
    tf = pytest.importorskip("tensorflow")
    pipeline = tf.data.Dataset.from_tensor_slices(batch()).repeat(20).batch(N)
    mixed = list(pipeline.map(kind(k=8, seed=1)).as_numpy_iterator())
    assert mixed[0]["labels"].shape == (N, 4)
    assert not np.array_equal(mixed[0]["labels"], mixed[1]["labels"])
    own = pipeline.map(getattr(keras.layers, kind.__name__[1:])(seed=1)).as_numpy_iterator()
    ours, theirs = (
        np.concatenate([part["labels"].max(1) for part in side]) for side in (mixed, own)
    )
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-3
    moved = {
        k: np.mean([np.abs(part["images"] - batch()["images"]).mean() for part in mapped])
        for k in (1, 16)
        for mapped in [pipeline.map(KMixUp(1e4, k=k, seed=1)).as_numpy_iterator()]
    }
    assert moved[16] < 0.97 * moved[1]
