"""What a notebook shows: results below diagrams, bars while work goes on, pictures."""

import os

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from sklearn import config_context

import dualtap as dt
from dualtap._html import summary_html
from dualtap._progress import progress

CELLS = [
    "import warnings\nwarnings.simplefilter('error')\n"
    "import dualtap as dt\n"
    "teacher = dt.HopfieldModel.random(200, 3, beta=2.0, random_state=0)\n"
    "teacher",
    "X = teacher.sample(60, random_state=1, verbose=True)",
    "dt.HopfieldPatterns(random_state=0)",
    "dt.HopfieldPatterns(random_state=0, verbose=True).fit(X)",
    "model = dt.DualTAP(3, beta=2.0, random_state=0, verbose=True).fit(X)",
    "dt.HopfieldRBM.paper(6, random_state=0, verbose=True).fit(X)",
    "from dualtap.plots import plot_patterns, plot_spectrum\nplot_patterns(model, shape=(10, 20));",
    "dt.HopfieldPatterns(random_state=0).fit(X);",
]


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The cells above, run by a kernel as Jupyter runs them."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder))  # nobody's own settings
        patch.setenv("JUPYTER_RUNTIME_DIR", str(folder))
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    return [cell.outputs for cell in notebook.cells]


def _data(outputs, kind):
    return [output.data[kind] for output in outputs if kind in output.get("data", {})]


def test_nothing_goes_to_stderr(cells):
    for outputs in cells:
        assert {output.output_type for output in outputs} <= {"display_data", "execute_result"}


def test_a_teacher_says_what_it_is(cells):
    assert _data(cells[0], "text/plain") == ["HopfieldModel(n_spins=200, n_patterns=3, beta=2)"]


def test_bars_are_drawn_in_the_cell_and_end_full(cells):
    for index, words in ((1, "sampling"), (3, "patterns"), (4, "patterns"), (5, "updates")):
        bar = cells[index][0]
        assert words in bar.data["text/plain"]
        assert words in bar.data["text/html"]
        assert "\x1b" not in bar.data["text/plain"]
    assert "100/100" in cells[1][0].data["text/plain"]
    assert "3/3" in cells[4][0].data["text/plain"]
    assert cells[7] == []  # none unless asked for


@pytest.fixture
def drawings(monkeypatch):
    """What a notebook's front end is sent: one output, and its updates."""
    sent = []

    class Handle:
        def update(self, data, *, raw):
            assert raw
            sent.append(data)

    def display(data, *, raw, display_id):
        assert raw
        assert display_id
        sent.append(data)
        return Handle()

    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("IPython.display.display", display)
    return sent


def test_a_bar_is_not_drawn_for_every_step(drawings, capsys):
    with progress("steps", 5000, enabled=True) as advance:
        for step in range(5000):
            advance(1, f"step {step}")
    assert "0/5000" in drawings[0]["text/plain"]
    assert "5000/5000" in drawings[-1]["text/plain"]
    assert len(drawings) < 2500
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_kept_up_to_date(drawings, monkeypatch):
    monkeypatch.setattr("dualtap._progress._SECONDS", 0)
    with progress("steps", None, enabled=True) as advance:
        advance(2, "going well")
        assert "2/?" in drawings[-1]["text/plain"]
        assert "going well" in drawings[-1]["text/html"]
    assert len(drawings) == 3


def test_a_bar_ends_where_work_failed(drawings):
    def fail():
        with progress("steps", 3, enabled=True) as advance:
            advance(1)
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail()
    assert "1/3" in drawings[-1]["text/plain"]


def test_fitted_estimators_show_what_they_found(cells):
    (unfitted,) = _data(cells[2], "text/html")
    assert "n_patterns" in unfitted
    assert "dualtap-summary" not in unfitted
    (shown,) = _data(cells[3][1:], "text/html")
    assert "n_patterns" in shown
    assert "3 patterns, β = " in shown
    (shown,) = _data(cells[5][1:], "text/html")
    assert "n_hidden" in shown
    assert "3 patterns, β = " in shown


def test_pictures_are_shown(cells):
    assert len(_data(cells[6], "image/png")) == 1


@pytest.fixture(scope="module")
def samples():
    return dt.HopfieldModel.random(200, 3, beta=2.0, random_state=0).sample(60, random_state=1)


def test_html_and_bundle_agree(samples):
    model = dt.HopfieldPatterns(random_state=0).fit(samples)
    block = summary_html(model.summary())
    assert model._repr_html_().endswith(block)
    bundle = model._repr_mimebundle_()
    assert bundle["text/html"].endswith(block)
    assert bundle["text/plain"] == repr(model)
    with config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(model, "_repr_html_")


def test_summaries_are_escaped(samples):
    model = dt.HopfieldPatterns(random_state=0).fit(samples)
    model.reason_ = "<script>alert(1)</script> & more"
    html = model._repr_html_()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in html


def test_nothing_found_is_shown_too():
    fair_spins = np.random.default_rng(0).choice([-1, 1], size=(30, 200))
    assert "no pattern: " in dt.HopfieldPatterns(random_state=0).fit(fair_spins)._repr_html_()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("hidden", ["gaussian", "binary"])
def test_summary_of_an_rbm(samples, hidden):
    model = dt.HopfieldRBM.paper(6, hidden=hidden, max_updates=30, random_state=0)
    assert "dualtap-summary" not in model._repr_html_()
    model.fit(samples)
    summary = model.summary()
    assert f"hidden units: {hidden}" in summary
    assert "30 updates, ended because max_updates is reached" in summary
    assert f"{model.history_.pseudo_likelihood[-1]:.3f} per spin" in summary
    assert ("β = " in summary) == (hidden == "gaussian" and model.n_patterns_ > 0)
    assert summary_html(summary) in model._repr_html_()


def test_summary_while_training_goes_on(samples):
    model = dt.HopfieldRBM.paper(6, random_state=0).partial_fit(samples)
    assert model.summary().splitlines() == [
        "no pattern: there is no gap between the 6 singular values",
        "hidden units: gaussian",
        "training: 1 updates",
    ]
