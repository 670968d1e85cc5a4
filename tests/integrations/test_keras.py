"""The layer beside keras.layers.MixUp, with the torch backend."""

import keras
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from kmixup import KMixup
from kmixup.integrations.keras import KMixUp

N = 32


def batch(n=N):
    random = np.random.default_rng(0)
    images = random.normal(size=(n, 8, 8, 3)).astype("float32")
    return {"images": images, "labels": np.eye(4, dtype="float32")[np.arange(n) % 4]}


def numbers(tensor):
    return keras.ops.convert_to_numpy(tensor)


def test_images_and_labels_are_mixed_along_a_matching():
    data, layer = batch(), KMixUp(k=8, alpha=1.0, seed=1)
    chance = layer.get_random_transformation(data)
    lam, partner = chance["mix_weight"].numpy(), chance["permutation_order"].numpy()
    assert sorted(partner) == list(range(N))
    assert len(set(lam.tolist())) == N
    mixed = KMixUp(k=8, alpha=1.0, seed=1)(data)
    weight = lam[:, None]
    labels = weight * data["labels"] + (1 - weight) * data["labels"][partner]
    assert numbers(mixed["labels"]) == pytest.approx(labels, abs=1e-6)
    weight = weight[:, :, None, None]
    images = weight * data["images"] + (1 - weight) * data["images"][partner]
    assert numbers(mixed["images"]) == pytest.approx(images, abs=1e-5)


def test_partners_are_nearer_than_those_of_mixup():
    images = torch.from_numpy(batch()["images"]).flatten(1)

    def distance(layer):
        partner = layer.get_random_transformation(batch())["permutation_order"]
        return (images - images[partner.long()]).norm(dim=1)

    matched = torch.stack([distance(KMixUp(k=16, seed=seed)) for seed in range(20)])
    alone = torch.stack([distance(KMixUp(k=1, seed=seed)) for seed in range(20)])
    assert matched.mean() < 0.97 * alone.mean()


def test_lam_has_the_law_of_keras():
    chances = [
        torch.cat([layer.get_random_transformation(batch())["mix_weight"].cpu() for _ in range(60)])
        for layer in (KMixUp(k=1, alpha=0.4, seed=1), keras.layers.MixUp(alpha=0.4, seed=1))
    ]
    ours, theirs = (chance.double().sort().values for chance in chances)
    grid = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    gap = (torch.searchsorted(ours, grid) - torch.searchsorted(theirs, grid)).abs().max() / 1920
    assert gap < 1.95 * (2 / 1920) ** 0.5  # Kolmogorov–Smirnov, 0.1 %
    assert len(ours) == len(theirs) == 1920


def test_a_seed_repeats_all_batches_and_batches_differ():
    def run(**seed):
        layer = KMixUp(k=8, **seed)
        return [numbers(layer(batch())["labels"]) for _ in range(3)]

    first, again = run(seed=3), run(seed=3)
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], run(seed=4)[0])
    keras.utils.set_random_seed(5)
    unseeded = run()
    keras.utils.set_random_seed(5)
    assert np.array_equal(unseeded[0], run()[0])


class Collate:
    """Mixes in the workers of a data loader."""

    def __init__(self, layer):
        self.layer = layer

    def __call__(self, samples):
        data = {key: torch.as_tensor(value) for key, value in batch(len(samples)).items()}
        return self.layer.get_random_transformation(data)["mix_weight"]


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_and_epochs_draw_differently_and_a_seed_repeats_them(persistent):
    def lams():
        torch.manual_seed(0)
        loader = DataLoader(
            range(64),
            batch_size=8,
            num_workers=2,
            collate_fn=Collate(KMixUp(k=2, alpha=1.0, seed=1)),
            persistent_workers=persistent,
        )
        return torch.cat([lam for _ in range(2) for lam in loader])

    drawn = lams()
    assert len(drawn.unique()) == len(drawn) == 128
    assert torch.equal(drawn, lams())


def test_ranks_draw_differently_from_one_seed(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    drawn = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        drawn.append(
            KMixUp(k=4, alpha=1.0, seed=1).get_random_transformation(batch())["mix_weight"]
        )
    assert len(torch.cat(drawn).unique()) == 2 * N


def test_a_number_is_a_seed_too():
    first, again = (KMixUp(k=4).get_random_transformation(batch(), seed=3) for _ in range(2))
    assert torch.equal(first["mix_weight"], again["mix_weight"])


def test_nothing_is_mixed_outside_of_training_or_alone():
    data, layer = batch(), KMixUp(k=8, alpha=1.0, seed=1)
    rested = layer(data, training=False)
    assert np.array_equal(numbers(rested["images"]), data["images"])
    assert np.array_equal(numbers(rested["labels"]), data["labels"])
    single = {"images": data["images"][0], "labels": data["labels"][0]}
    assert np.array_equal(numbers(layer(single)["images"]), single["images"])
    assert not np.array_equal(numbers(layer(data["images"])), data["images"])


def test_bytes_are_matched_as_numbers():
    images = np.random.default_rng(0).integers(0, 255, (N, 8, 8, 3)).astype("uint8")
    mixed = KMixUp(k=8, alpha=1.0, seed=1)({"images": images, "labels": batch()["labels"]})
    assert numbers(mixed["images"]).dtype == np.float32
    assert numbers(mixed["images"]).max() <= 255


def test_a_layer_is_saved_and_rebuilt():
    layer = KMixUp(k=4, alpha=0.3, seed=2)
    rebuilt = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert (rebuilt.k, rebuilt.alpha, rebuilt.seed) == (4, 0.3, 2)
    assert np.array_equal(numbers(layer(batch())["labels"]), numbers(rebuilt(batch())["labels"]))


def test_a_model_trains_on_mixed_batches():
    data, layer = batch(), KMixUp(k=8, alpha=0.2, seed=1)
    data["images"] += 3 * data["labels"].argmax(1)[:, None, None, None]

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            mixed = layer(data)
            return mixed["images"], mixed["labels"]

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(4, "softmax")])
    model.compile(keras.optimizers.Adam(0.01), "categorical_crossentropy")
    losses = model.fit(Batches(), epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_impossible_settings_are_refused_at_once(monkeypatch):
    with pytest.raises(ValueError, match="k must be"):
        KMixUp(k=0)
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match="needs the torch backend of Keras, got 'jax'"):
        KMixUp()


def test_lam_and_partners_are_those_of_the_mixer():
    layer = KMixUp(k=8, alpha=1.0, seed=1)
    generator = KMixUp(k=8, alpha=1.0, seed=1)._seeded(None)
    images = torch.from_numpy(batch()["images"])
    mixed = KMixup(8, 1.0, lam_per="sample", generator=generator).draw(images, None)
    chance = layer.get_random_transformation(batch())
    assert torch.equal(chance["permutation_order"], mixed.partner)
    assert torch.equal(chance["mix_weight"], mixed.lam)
