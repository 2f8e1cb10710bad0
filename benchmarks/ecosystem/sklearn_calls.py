"""22 estimators and metrics of scikit-learn with ``array_api_dispatch``, which get Arrays."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from contextlib import ExitStack
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported

import numpy as np

CALLS = """
preprocessing: StandardScaler().fit(X).transform(X) | MinMaxScaler().fit(X).transform(X)
preprocessing: MaxAbsScaler().fit(X).transform(X) | Normalizer().fit(X).transform(X)
preprocessing: Binarizer().fit(X).transform(X) | KernelCenterer().fit(K).transform(K)
preprocessing: PolynomialFeatures(2).fit(X).transform(X) | LabelEncoder().fit(c).transform(c)
decomposition: PCA(2, svd_solver="full").fit(X).transform(X)
linear_model: Ridge(solver="svd").fit(X, y).predict(X) | RidgeCV().fit(X, y).predict(X)
discriminant_analysis: LinearDiscriminantAnalysis().fit(X, c).predict(X)
naive_bayes: GaussianNB().fit(X, c).predict(X)
metrics: accuracy_score(c, d) | mean_squared_error(y, z) | r2_score(y, z)
metrics: mean_absolute_error(y, z) | f1_score(c, d) | zero_one_loss(c, d)
metrics.pairwise: cosine_similarity(X, X) | euclidean_distances(X, X) | rbf_kernel(X, X)
"""


def inputs() -> dict[str, Any]:
    """The arrays that calls name."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 4))
    y = features @ rng.normal(size=4)
    return {
        "X": features,
        "K": features @ features.T,
        "y": y,
        "z": y + rng.normal(size=40),
        "c": (features[:, 0] > 0).astype(int),
        "d": (features[:, 0] > 0.3).astype(int),
    }


def main() -> int:
    """Print the count, and with ``-v`` each call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true")
    verbose = parser.parse_args().verbose
    warnings.simplefilter("ignore")
    import sklearn

    import tracegraph
    from tracegraph.interop import register_array_api

    given = inputs()
    arrays = {name: tracegraph.asarray(value) for name, value in given.items()}
    works = own = 0
    calls = [
        (module, call.strip())
        for module, _, rest in (line.partition(": ") for line in CALLS.strip().splitlines())
        for call in rest.split(" | ")
    ]
    for module, call in calls:
        code = f"from sklearn.{module} import *\nfound = {call}"
        names: dict[str, Any] = dict(given)
        exec(code, names)
        expected = np.asarray(names["found"])
        names = dict(arrays)
        with ExitStack() as stack:
            stack.enter_context(register_array_api())
            stack.enter_context(sklearn.config_context(array_api_dispatch=True))
            try:
                exec(code, names)
                found = names["found"]
                right = np.allclose(np.asarray(found), expected, rtol=1e-6)
                result = "works" if right else "wrong"
            except Exception as error:
                found, result = None, f"{type(error).__name__}: {error}".splitlines()[0]
        works += result == "works"
        own += isinstance(found, tracegraph.Array)
        if verbose:
            print(f"{call}: {type(found).__name__} {result}")
    print(f"scikit-learn: of {len(calls)} calls {works} work, {own} return Arrays")
    return 0


if __name__ == "__main__":
    sys.exit(main())
