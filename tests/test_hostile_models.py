"""Model files with values that no model has: one line, whatever is done with them."""

import json
import warnings

import numpy as np
import pytest

import dualtap as dt

X = dt.HopfieldModel.random(30, 2, beta=2.0, random_state=0).sample(40, random_state=1)
DEEP = np.array("[" * 100_000 + "]" * 100_000)
DATES = np.zeros((2, 30), dtype="M8[s]")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the arrays of a model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    fitted = {
        "patterns": dt.HopfieldPatterns(2, random_state=0),
        "dualtap": dt.DualTAP(2, 2.0, random_state=0),
        "rbm": dt.HopfieldRBM(3, max_updates=2, batch_size=8, n_chains=4, random_state=0),
    }
    for name, model in fitted.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        dt.save(model, folder / f"{name}.npz")
        dt.load(folder / f"{name}.npz")
    return {name: dict(np.load(folder / f"{name}.npz")) for name in fitted}


def set_to(name, value, place=...):
    def change(contents):
        array = contents[name].copy()
        array[place] = value
        return contents | {name: array}

    return change


def replaced(**arrays):
    return lambda contents: contents | arrays


def told(**parts):
    """Return a change of the text in JSON beside the arrays."""

    def change(contents):
        stored = json.loads(str(contents["provenance"]))
        for name, value in parts.items():
            stored[name] = {**stored[name], **value} if isinstance(value, dict) else value
        return contents | {"provenance": np.array(json.dumps(stored))}

    return change


def as_old(beta):
    """Return the file as version 0.1 wrote it."""

    def change(contents):
        old = told(parameters={"scheme": "joint", "effort": 1})(contents)
        return old | {"schema": np.array(2), "beta": np.array(beta)}

    return change


PATTERNS = {
    "β of 0": (as_old(0.0), "beta has the value 0.0"),
    "β of 1e-300": (as_old(1e-300), "beta has the value 1e-300"),
    "β of -3": (as_old(-3.0), "beta has the value -3.0"),
    "β of NaN": (as_old(np.nan), "strengths has the value nan"),
    "β of infinity": (as_old(np.inf), "beta has the value inf"),
    "complex β": (as_old(2j), "beta has type complex128"),
    "β of text": (as_old("2"), "beta has type <U1"),
    "strengths of 1e300": (set_to("strengths", 1e300), "strengths has the value 1e+300"),
    "strengths of NaN": (set_to("strengths", np.nan, 1), "strengths has the value nan"),
    "scalar strengths": (replaced(strengths=np.array(2.0)), "strengths has shape ()"),
    "scalar spectrum": (replaced(spectrum=np.array(2.0)), "spectrum has shape ()"),
    "spectrum of NaN": (set_to("spectrum", np.nan, 0), "spectrum has the value nan"),
    "patterns of 0": (set_to("patterns", 0), "one of the patterns has no entry"),
    "patterns of 7": (set_to("patterns", 7, (0, 0)), "patterns has the value 7"),
    "patterns of NaN": (replaced(patterns=np.full((2, 30), np.nan)), "patterns has type float64"),
    "complex patterns": (replaced(patterns=np.ones((2, 30)) * 1j), "patterns has type complex"),
    "dates as patterns": (replaced(patterns=DATES), "patterns has type datetime64"),
    "patterns of one spin": (replaced(patterns=np.ones((2, 1), np.int8)), "where (2, 1)"),
    "magnetizations of 2": (set_to("magnetizations", 2.0), "magnetizations has the value 2.0"),
    "magnetizations of NaN": (set_to("magnetizations", np.nan), "magnetizations has the value"),
    "fields of infinity": (set_to("fields", np.inf), "fields has the value inf"),
    "means of NaN": (set_to("means", np.nan), "means has the value nan"),
    "weights of -1": (set_to("weights", -1), "weights has the value -1.0"),
    "labels beyond": (set_to("labels", 9), "labels name more than the 2 patterns"),
    "labels of -2": (set_to("labels", -2), "labels has the value -2"),
    "labels of floats": (replaced(labels=np.zeros(40)), "labels has type float64"),
    "negative passes": (replaced(n_passes=np.array(-1.0)), "n_passes has the value -1.0"),
    "covariance of NaN": (set_to("strength_covariance", np.nan), "strength_covariance has the"),
    "unknown encoding": (replaced(encoding=np.array("2/3")), "unknown encoding '2/3'"),
    "matrix of names": (replaced(feature_names=np.array([["a"] * 30])), "feature_names has shape"),
    "surrogates": (replaced(feature_names=np.array(["\ud800"] * 30)), "is not Unicode"),
    "no characters": (
        replaced(feature_names=np.full(30, 2**21, dtype=np.uint32).view("<U1")),
        "feature_names is not Unicode text",
    ),
    "surrogate reason": (replaced(reason=np.array("\udfff")), "reason is not Unicode text"),
    "reason of numbers": (replaced(reason=np.array(3)), "reason has type int64"),
    "deep provenance": (replaced(provenance=DEEP), "nested too deeply"),
    "deep trace": (replaced(trace=DEEP), "nested too deeply"),
    "trace of numbers": (replaced(trace=np.array("[1]")), "'1' is not a JSON object"),
    "trace that is none": (replaced(trace=np.array("{}")), "trace is not a list"),
    "parameters of text": (told(parameters="abc"), "parameters is abc"),
    "no pattern asked for": (told(parameters={"n_patterns": 0}), "'n_patterns' parameter"),
    "huge number": (told(parameters={"n_patterns": -(10**30)}), "'n_patterns' parameter"),
}
DUALTAP = {
    "β of -3": (set_to("strengths", -3.0), "β is positive"),
    "no rounds": (
        lambda contents: contents | {k: contents[k][:0] for k in contents if "history" in k},
        "at least 1 needed",
    ),
    "β asked for": (told(parameters={"beta": -3}), "'beta' parameter"),
    "NaN asked for": (told(parameters={"tol": float("nan")}), "'tol' parameter"),
    "text as tolerance": (told(parameters={"tol": "a"}), "'tol' parameter"),
}
RBM = {
    "weights of NaN": (set_to("weights", np.nan, (0, 0)), "weights has the value nan"),
    "weights of 1e30": (set_to("weights", 1e30), "weights has the value 1"),
    "weights of bytes": (replaced(weights=np.ones((3, 30), np.int8)), "weights has type int8"),
    "wide weights": (replaced(weights=np.ones((3, 30))), "weights has type float64"),
    "no hidden unit": (
        lambda c: (
            c
            | {k: c[k][:0] for k in ("weights", "velocity_weights")}
            | {"curve_singular_values": c["curve_singular_values"][:, :0]}
        ),
        "the side hidden has length 0",
    ),
    "unknown prior": (told(parameters={"hidden": "spherical"}), "spherical"),
    "prior of a number": (told(parameters={"hidden": 7}), "7"),
    "unknown parameter": (told(parameters={"colour": "red"}), "colour"),
    "hidden units asked for": (told(parameters={"n_hidden": 0}), "'n_hidden' parameter"),
    "generators of floats": (
        lambda c: c | {"generators": c["generators"].astype(float)},
        "generators has type float64",
    ),
    "generators of zeros": (set_to("generators", 0), "generators in generators is zero"),
    "few generators": (lambda c: c | {"generators": c["generators"][:1]}, "1 generators for 4"),
    "no chain": (lambda c: c | {"chains": c["chains"][:0]}, "for 0 chains"),
    "chains of 0": (set_to("chains", 0), "chains has the value 0"),
    "fields of text": (replaced(fields=np.array(["a"] * 30)), "fields has type <U1"),
    "negative update": (told(run={"update": -1}), "is negative"),
    "update of text": (told(run={"update": "1"}), "update is 1 where a int"),
    "huge seed": (told(run={"seed": 10**40}), "seed is a number of 133 bits"),
    "no run": (told(run=None), "run is None"),
    "deep provenance": (replaced(provenance=DEEP), "nested too deeply"),
    "schema of text": (replaced(schema=np.array("new")), "schema has type"),
    "surrogates": (replaced(feature_names=np.array(["\ud800"] * 30)), "is not Unicode"),
}
CASES = [
    pytest.param(kind, *case, id=f"{kind}: {name}")
    for kind, cases in {"patterns": PATTERNS, "dualtap": DUALTAP, "rbm": RBM}.items()
    for name, case in cases.items()
]


@pytest.mark.parametrize(("kind", "change", "message"), CASES)
def test_values_that_no_model_has(run, tmp_path, files, kind, change, message):
    np.savez(tmp_path / "m.npz", **change(files[kind]))
    code, out, err = run("show", "m.npz")
    assert (code, out) == (2, "")
    assert err.startswith("dualtap: m.npz is ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("strength", [0.0, 1e-300, -3.0])
@pytest.mark.parametrize(
    "words",
    [
        ("show", "m.npz", "--data", "d.npy", "--report", "r.html"),
        ("export", "m.npz", "-o", "u.csv"),
        ("couplings", "m.npz", "-o", "e.csv"),
        ("predict", "m.npz", "d.npy", "-o", "p.csv"),
    ],
    ids=lambda words: words[0],
)
def test_patterns_without_strength_are_models(run, tmp_path, files, strength, words):
    """As many patterns as were asked for, and more than the data show; or a repulsive one."""
    np.save(tmp_path / "d.npy", X)
    np.savez(tmp_path / "m.npz", **set_to("strengths", strength, 1)(files["patterns"]))
    code, _, err = run(*words)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("kind", ["patterns", "dualtap", "rbm"])
def test_the_other_byte_order_is_read(tmp_path, files, kind):
    swapped = {k: v.astype(v.dtype.newbyteorder(">")) for k, v in files[kind].items()}
    for name, contents in (("a.npz", files[kind]), ("b.npz", swapped)):
        np.savez(tmp_path / name, **contents)
    one, other = dt.load(tmp_path / "a.npz"), dt.load(tmp_path / "b.npz")
    assert one.score(X) == other.score(X)
    np.testing.assert_array_equal(one.sample(5, random_state=0), other.sample(5, random_state=0))
