"""Latent classes by StepMix: their shares and the probabilities of +1 in each."""

import numpy as np
from protocol import serve
from stepmix.stepmix import StepMix

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
PATIENCE = 2  # sizes in a row without a better BIC, after which larger ones are not tried


def prepare(setup, request):
    """Return the fit with the number of classes of the request, or that of the best BIC."""
    spins = np.load(request["samples"])
    units = np.where(spins == 0, np.nan, spins > 0)
    measurement = "binary_nan" if np.isnan(units).any() else "binary"

    def fitted(n_classes):
        model = StepMix(
            n_classes,
            measurement=measurement,
            n_init=3,
            abs_tol=1e-4,
            random_state=request["seed"],
            progress_bar=0,
        )
        return model.fit(units)

    def by_bic():
        best, value, tried = None, np.inf, 0
        for size in (size for size in SIZES if size <= len(units) // 2):
            model = fitted(size)
            bic = model.bic(units)
            tried = 0 if bic < value else tried + 1
            if bic < value:
                best, value = model, bic
            if tried >= PATIENCE:
                break
        return best

    def work():
        given = request["n_classes"]
        parameters = (by_bic() if given is None else fitted(given)).get_parameters()
        return np.column_stack([parameters["weights"], parameters["measurement"]["pis"]])

    return work


serve(prepare, {"version": "stepmix"})
