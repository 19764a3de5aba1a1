"""How often samples are gone over: counted rightly, few times, and never unpacked whole."""

import json
import re
from functools import partialmethod

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import dualtap as dt
from dualtap._kernels import overlaps
from dualtap.couplings import DeflatedCouplings, DenseCouplings, GramCouplings, HebbianCouplings
from dualtap.published.starts import eigenpair_in_passes, spectral_student
from dualtap.report.summary import describe
from dualtap.spins import DenseSpins, PackedSpins, Spins, as_spins, blocks, builder, tiles, words
from dualtap.spins.blocks import Blocks
from dualtap.spins.passes import counted_reads
from dualtap.subspace import singular
from dualtap.subspace import spectrum as spectra
from dualtap.subspace.noise import count_signals, deviates
from dualtap.subspace.spectrum import spectrum

N, P, M = 403, 5, 90


@pytest.fixture(scope="module", name="X")
def samples():
    return teacher().sample(M, random_state=1)


def teacher():
    return dt.HopfieldModel.random(N, P, beta=2.0, random_state=0)


def with_gaps(X, share=0.2):
    X = X.astype(float)
    X[np.random.default_rng(3).random(X.shape) < share] = np.nan
    return X


@pytest.fixture
def packed(monkeypatch):
    """Keep everything at one bit per spin."""
    monkeypatch.setattr(builder, "DENSE", 0)


class Spy:
    """Counts entries by what is asked of blocks, whatever they themselves count."""

    PASSES = ("map", "sum", "map_sum", "dot", "transposed_dot", "gram_dot")

    def __init__(self, monkeypatch):
        self.entries, self.n_gram, self._inside = 0, 0, False
        for name in self.PASSES:
            monkeypatch.setattr(Blocks, name, self._counted(getattr(Blocks, name)))
        for name in ("overlaps_of_bits", "products_of_bits"):
            monkeypatch.setattr(overlaps, name, self._counting(getattr(overlaps, name)))

    def _counting(self, kernel):
        def counted(words, *arguments):
            n_bits = arguments[-2]
            self.entries += len(words) * n_bits
            kernel(words, *arguments)

        return counted

    def _counted(self, method):
        def counted(blocks, *arguments, **options):
            at_hand = method.__name__ == "gram_dot" and blocks.knows_gram
            if self._inside or at_hand:  # one pass asks for another, or none is needed
                return method(blocks, *arguments, **options)
            self.entries += blocks.n_samples * blocks.n_spins
            self.n_gram += method.__name__ == "gram_dot"
            self._inside = True
            try:
                return method(blocks, *arguments, **options)
            finally:
                self._inside = False

        return counted


@pytest.fixture
def spy(monkeypatch):
    return Spy(monkeypatch)


# --- Counting -----------------------------------------------------------------------------------

ESTIMATORS = {
    "patterns": lambda: dt.HopfieldPatterns(random_state=0),
    "patterns, P given": lambda: dt.HopfieldPatterns(P, random_state=0),
    "published": lambda: dt.DualTAP(P, beta=2.0, random_state=0),
    "published until the kink": lambda: dt.DualTAP(beta=2.0, random_state=0),
    "damped": lambda: dt.DualTAP(damping="auto", random_state=0),
    "spectral at β": lambda: dt.DualTAP(beta=2.0, start="spectral", damping="auto", random_state=0),
    "spectral": lambda: dt.DualTAP(start="spectral", damping="auto", random_state=0),
}


# Fits of a given number of patterns take long; complete samples are those of the blind fit.
CASES = [
    pytest.param(name, change, id=f"{name}-{kind}")
    for name in ESTIMATORS
    for change, kind in ((np.asarray, "complete"), (with_gaps, "gaps"))
    if (name, kind) != ("patterns, P given", "complete")
]


@pytest.mark.parametrize(("name", "change"), CASES)
def test_passes_over_packed_samples_are_counted(name, change, X, packed, spy):
    model = ESTIMATORS[name]().fit(change(X))
    assert spy.n_gram > 3
    assert model.n_passes_ == 1 + spy.entries / X.size


@pytest.mark.parametrize(("name", "change"), [case for case in CASES if "patterns" in case.id])
def test_passes_over_samples_that_are_held_are_counted(name, change, X, spy, monkeypatch):
    # Samples with gaps, and residuals, are multiplied with each other as they are.
    unseen, row_gram = 0, Blocks.row_gram

    def counted(blocks):
        nonlocal unseen
        unseen += not blocks._plain
        return row_gram(blocks)

    monkeypatch.setattr(Blocks, "row_gram", counted)
    model = ESTIMATORS[name]().fit(change(X))
    assert model.n_passes_ == 1 + unseen + spy.entries / X.size > 4


@pytest.mark.parametrize("name", ["published", "published until the kink", "damped"])
def test_products_of_the_published_algorithm_are_counted(name, X, spy, monkeypatch):
    n_products, product = 0, HebbianCouplings.dot

    def counted(self, m):
        nonlocal n_products
        n_products += 1
        return product(self, m)

    monkeypatch.setattr(HebbianCouplings, "dot", counted)
    model = ESTIMATORS[name]().fit(X)
    assert n_products > 10
    assert model.n_passes_ == 1 + n_products + spy.entries / X.size


@pytest.mark.parametrize("name", ["published", "spectral"])
def test_a_pass_unpacks_every_entry(name, X, packed, spy, monkeypatch):
    """Once, and twice where a pass is two products: there a tile is unpacked for each."""
    unpacked, floats = 0, PackedSpins.floats

    def counted(self, *tile):
        nonlocal unpacked
        result = floats(self, *tile)
        unpacked += result.size
        return result

    monkeypatch.setattr(PackedSpins, "floats", counted)
    model = ESTIMATORS[name]().fit(as_spins(X))
    assert model.n_passes_ + spy.n_gram == unpacked / X.size


@pytest.mark.parametrize("weak", [False, True])
def test_passes_over_some_of_the_samples_count_for_their_share(weak, packed, spy, monkeypatch):
    monkeypatch.setattr("dualtap.recovery.steps._MOST_SAMPLES", 100)
    beta, n_samples = (0.7, 900) if weak else (2.0, 330)
    data = dt.HopfieldModel.random(150, 2, beta=beta, random_state=0)
    X = data.sample(n_samples, random_state=1)
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    assert model.n_passes_ == pytest.approx(1 + spy.entries / X.size, rel=1e-12)
    assert model.n_passes_ % 1 != 0


def test_passes_do_not_depend_on_how_the_gram_matrix_is_made(monkeypatch):
    X = dt.HopfieldModel.random(400, 3, beta=2.0, random_state=0).sample(100, random_state=1)
    passes = []
    for worth in (0, 2**60):
        monkeypatch.setattr("dualtap.spins.words._WORTH_GRAM", worth)
        passes.append(dt.HopfieldPatterns(random_state=0).fit(X).n_passes_)
    assert passes[0] == passes[1]


def test_noise_is_gone_over_too(packed, spy):
    X = np.random.default_rng(0).choice([-1, 1], size=(60, 300))
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 0
    # Gram matrices of halves, which are held as floats, are counted and no method of blocks.
    assert model.n_passes_ == 1 + spy.entries / X.size + 1


@pytest.mark.parametrize("name", ["patterns", "published"])
@pytest.mark.parametrize("dense", [0, builder.DENSE])
def test_reading_counts_unless_it_was_done_before(name, dense, X, monkeypatch):
    monkeypatch.setattr(builder, "DENSE", dense)
    model = ESTIMATORS[name]()
    n_passes = model.fit(X).n_passes_
    assert n_passes == model.fit(X.tolist()).n_passes_
    with counted_reads() as reads:
        spins = as_spins(X)
        assert reads.entries == 0
        assert model.fit(spins).n_passes_ == n_passes - 1
        assert reads.entries == (n_passes - 1) * X.size  # also for whoever counts around the fit
        assert model.fit(spins).n_passes_ == n_passes - 1  # anew
        model.predict(spins)
        assert reads.entries == (2 * n_passes - 1) * X.size
    model.predict(spins)
    assert reads.entries == (2 * n_passes - 1) * X.size
    assert model.n_passes_ == n_passes - 1  # of the fit, whatever comes after


@pytest.mark.parametrize("shape", [(1500, 200), (1300, 1400)], ids=["wide", "tall"])
def test_clustered_samples_need_few_passes(shape, packed):
    n_spins, n_samples = shape
    assert n_spins > singular.SMALL
    data = dt.HopfieldModel.random(n_spins, 8, beta=2.0, random_state=0)
    model = dt.HopfieldPatterns(random_state=0).fit(data.sample(n_samples, random_state=1))
    assert dt.metrics.match(model.patterns_, data.patterns).n_recovered(0.999) == 8
    assert 5 < model.n_passes_ < 28  # a dozen of them to see that nothing is left


def weak():
    data = dt.HopfieldModel.random(150, 2, beta=0.7, random_state=0)
    return data.sample(900, random_state=1)


@pytest.mark.parametrize("dense", [0, builder.DENSE], ids=["bits", "bytes"])
@pytest.mark.parametrize("worth", [0, 2**60], ids=["counted", "summed"])
def test_weak_fits_iterate_on_the_gram_matrix(dense, worth, spy, monkeypatch):
    """Gram matrix, residuals, bits and labels are passes; a hundred TAP steps are none."""
    monkeypatch.setattr(builder, "DENSE", dense)
    monkeypatch.setattr(words, "_WORTH_GRAM", worth)
    X = weak()
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    assert spy.n_gram == 0
    assert model.n_passes_ == 1 + spy.entries / X.size
    assert model.n_passes_ <= 12  # two of them for the rival of sparse patterns


def test_weak_fits_without_a_gram_matrix_go_over_the_samples(spy):
    X = with_gaps(weak())
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    assert spy.n_gram > 10
    assert model.n_passes_ == 1 + spy.entries / X.size > 15


# --- Saying so ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["patterns", "published"])
def test_passes_are_kept_with_the_model(name, X, tmp_path):
    model = ESTIMATORS[name]().fit(X)
    dt.save(model, tmp_path / "model.npz")
    loaded = dt.load(tmp_path / "model.npz")
    assert loaded.n_passes_ == model.n_passes_
    assert type(loaded.n_passes_) is float
    assert describe(loaded)["passes"] == model.n_passes_


def test_models_from_before_passes_were_counted(X, tmp_path):
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    dt.save(model, tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "n_passes"}
    np.savez(tmp_path / "old.npz", **arrays)
    loaded = dt.load(tmp_path / "old.npz")
    assert not hasattr(loaded, "n_passes_")
    assert "passes" not in describe(loaded)
    np.testing.assert_array_equal(loaded.patterns_, model.patterns_)


def test_the_command_says_how_many_passes(run):
    assert run("sample", "--spins", 200, "--patterns", 3, "--samples", 60, "-o", "X.npz")[0] == 0
    code, out, _ = run("fit", "X.npz", "-o", "model.npz")
    assert code == 0
    n_passes = dt.load("model.npz").n_passes_
    assert n_passes >= 3
    assert float(re.search(r"passes +([\d.]+)", out)[1]) == pytest.approx(n_passes, abs=0.5)
    code, out, _ = run("fit", "X.npz", "-o", "again.npz", "--json")
    assert code == 0
    assert json.loads(out)["passes"] == n_passes


# --- The published algorithm on packed samples --------------------------------------------------


def aligned(m, like):
    """Return patterns in the order and with the signs of others."""
    overlap = m @ like.T
    rows, columns = linear_sum_assignment(-np.abs(overlap.T))
    sign = np.sign(overlap[columns, rows])
    return sign[:, None] * m[columns]


@pytest.mark.parametrize("change", [np.asarray, with_gaps], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "patterns" not in name])
def test_deflation_of_packed_samples(name, change, X, monkeypatch):
    # Leading eigenvectors are found in another way, and students go another way from there.
    precise = {"tol": 1e-6} if ESTIMATORS[name]().start != "random" else {}
    dense = ESTIMATORS[name]().set_params(**precise).fit(change(X))
    monkeypatch.setattr(builder, "DENSE", 0)
    spins = as_spins(change(X))
    assert isinstance(spins, PackedSpins)
    model = ESTIMATORS[name]().set_params(**precise).fit(spins)
    assert model.n_patterns_ == dense.n_patterns_ == P
    m = aligned(model.magnetizations_, dense.magnetizations_)
    np.testing.assert_allclose(m, dense.magnetizations_, atol=1e-4)
    assert dt.metrics.match(model.patterns_, dense.patterns_).mean_overlap == 1
    assert model.beta_ == pytest.approx(dense.beta_, rel=1e-6)
    gammas = model.history_.gammas[:P], dense.history_.gammas[:P]  # noise comes after them
    np.testing.assert_allclose(*gammas, rtol=1e-3)


@pytest.mark.parametrize(("name", "change"), CASES)
def test_packed_samples_are_never_unpacked_whole(name, change, packed, monkeypatch):
    X = teacher().sample(300, random_state=1)
    monkeypatch.setattr(tiles, "_TILE", 64)
    monkeypatch.setattr(blocks, "_ENTRIES", 1)
    for entries in ("JUDGED_ENTRIES", "REFINED_ENTRIES"):
        monkeypatch.setattr(f"dualtap.recovery.calibration.{entries}", 1)  # 256 samples
    monkeypatch.setattr("dualtap.subspace.posterior._SMALL", 1)
    monkeypatch.setattr("dualtap.fitted.meaning._ENTRIES", 1)  # 256 samples
    monkeypatch.setattr("dualtap.recovery.steps._MOST_SAMPLES", 100)
    monkeypatch.setattr(Spins, "blocks", partialmethod(Spins.blocks, 64 * N))
    spins = as_spins(change(X))
    most, values, unpack = 0, [], PackedSpins._unpacked

    def unpacked(self, *where):
        nonlocal most
        result = unpack(self, *where)
        if self is spins:
            most = max(most, result.size)
        return result

    def whole(self):
        values.append(self.n_samples)
        return self.block(slice(None))

    monkeypatch.setattr(PackedSpins, "_unpacked", unpacked)
    monkeypatch.setattr(PackedSpins, "values", property(whole))
    model = ESTIMATORS[name]().fit(spins)
    assert model.n_patterns_ == P
    assert 0 < most <= 64 * N
    assert max(values, default=0) <= 256
    if getattr(model, "beta", None) is None:
        assert values  # the spy sees what β is fitted to


# --- The leading eigenvector --------------------------------------------------------------------


def matrix_of(J):
    return J.dot(np.eye(J.n_spins, dtype=np.float32)).astype(np.float64)


def couplings(kind):
    """Return couplings of samples, some patterns of which are removed, wholly or much more."""
    truth = teacher()
    X = truth.sample(M, random_state=1)
    kept, too_much = truth.patterns[:2], truth.patterns[2:4]
    if kind == "dense":
        return HebbianCouplings(X)
    gram = GramCouplings(Blocks(as_spins(X)))
    if kind == "gram":
        return gram
    return DeflatedCouplings(gram, np.vstack([kept, too_much]), np.array([16, 15, 60, 40]))


@pytest.mark.parametrize("kind", ["dense", "gram", "deflated"])
@pytest.mark.parametrize("seed", range(5))
def test_the_leading_eigenpair_in_passes(kind, seed):
    J = couplings(kind)
    w, U = np.linalg.eigh(matrix_of(J))
    if kind == "deflated":
        assert w[0] < -w[-1] < 0  # what iterations without a look at signs would find
    value, vector = eigenpair_in_passes(J, np.random.default_rng(seed))
    assert value == pytest.approx(w[-1], rel=1e-3)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    # Other patterns are nearly as large: the vector has its eigenvalue, and lies among theirs.
    assert vector @ matrix_of(J) @ vector == pytest.approx(w[-1], rel=1e-3)
    top = U[:, w > 0.9 * w[-1]]
    assert np.linalg.norm(vector @ top) > 0.999


def test_all_eigenvalues_negative():
    J = DenseCouplings(np.diag([-1.0, -5.0, -3.0, -0.5]))
    value, vector = eigenpair_in_passes(J, np.random.default_rng(0))
    assert value == pytest.approx(-0.5, rel=1e-4)
    np.testing.assert_allclose(np.abs(vector), [0, 0, 0, 1], atol=1e-3)


def test_few_products_find_the_leading_eigenvector():
    n_products = 0

    class Counted(HebbianCouplings):
        def dot(self, m):
            nonlocal n_products
            n_products += 1
            return super().dot(m)

    J = Counted(teacher().sample(M, random_state=1))
    m = spectral_student(J, np.random.default_rng(0), in_passes=True)
    assert n_products == 7
    assert (m.shape, np.abs(m).max() <= 1) == ((1, N), True)
    assert np.abs(m @ teacher().patterns.T).max() / N > 0.3


# --- More signals than were looked for ----------------------------------------------------------


def planted(n_spins, n_samples, n_patterns=11, seed=0):
    """Return samples with bits of their patterns flipped, and the patterns."""
    rng = np.random.default_rng(seed)
    Z = rng.choice([-1, 1], size=(n_patterns, n_spins)).astype(np.int8)
    own = np.arange(n_samples) % n_patterns
    return np.where(rng.random((n_samples, n_spins)) < 0.2, -1, 1).astype(np.int8) * Z[own]


@pytest.fixture
def asked(monkeypatch):
    """Record how many vectors each product V SᵀS has."""
    sizes, product = [], Blocks.gram_dot

    def counted(self, V):
        sizes.append(len(V))
        return product(self, V)

    monkeypatch.setattr(Blocks, "gram_dot", counted)
    return sizes


@pytest.mark.parametrize("shape", [(403, 190), (300, 500)], ids=["wide", "tall"])
@pytest.mark.parametrize("is_packed", [True, False], ids=["bits", "bytes"])
def test_spaces_grow_with_the_signals(shape, is_packed, monkeypatch, asked):
    monkeypatch.setattr(singular, "SMALL", 0)
    monkeypatch.setattr(spectra, "_FIRST_RANK", 4)
    monkeypatch.setattr(builder, "DENSE", 0 if is_packed else 10**6)
    X = planted(*shape)
    spins = as_spins(X)
    assert type(spins) is (PackedSpins if is_packed else DenseSpins)
    found = spectrum(Blocks(spins), np.random.default_rng(0))
    # What is known is not iterated again: 4 + 10, as many as are known, and twice that.
    assert asked == [14] * 5 + [4] * 5 + [8] * 5
    _, sigma, Vt = np.linalg.svd(X.astype(float), full_matrices=False)
    t = deviates(sigma**2, X.size, *X.shape)
    assert found.n_signal == count_signals(t) == 11
    assert found.total == X.size
    np.testing.assert_allclose(found.values[:11], sigma[:11] ** 2, rtol=1e-3)
    np.testing.assert_allclose(found.deviates[:11], t[:11], rtol=1e-2)
    assert found.vectors.shape == (11, shape[0])
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(11), atol=1e-4)
    assert np.linalg.norm(found.vectors @ Vt[:11].T, axis=1).min() > 0.999


def test_spaces_end_with_the_data(monkeypatch, asked, packed):
    """As many signals as samples: the space grows to all of them, and no further."""
    monkeypatch.setattr(singular, "SMALL", 0)
    monkeypatch.setattr(spectra, "_FIRST_RANK", 2)
    monkeypatch.setattr(singular, "_OVERSAMPLING", 1)
    X = np.repeat(planted(400, 7, 7), 3, axis=0)
    found = spectrum(Blocks(as_spins(X)), np.random.default_rng(0), n_least=3)
    sigma = np.linalg.svd(X.astype(float), compute_uv=False)
    assert asked == [4] * 5 + [3] * 5 + [6] * 5
    np.testing.assert_allclose(found.values[:7], sigma[:7] ** 2, rtol=1e-3)
    assert found.n_signal == 7


def test_as_many_directions_as_are_asked_for(monkeypatch, packed):
    monkeypatch.setattr(spectra, "_FIRST_RANK", 4)
    X = planted(403, 190, n_patterns=2)
    found = spectrum(Blocks(as_spins(X)), np.random.default_rng(0), n_least=6)
    assert (found.n_signal, len(found.vectors)) == (2, 6)
    sigma = np.linalg.svd(X.astype(float), compute_uv=False)
    np.testing.assert_allclose(found.values[:2], sigma[:2] ** 2, rtol=1e-3)
