"""L2-regularised logistic regression by Newton's method with conjugate gradients, as one graph.

The model is fitted to the Breast Cancer Wisconsin data that ships with scikit-learn (569 samples of
30 features, standardised). The whole fit is one traced function: an outer `while_loop` of Newton
steps, an inner one of conjugate-gradient steps, a `cond` that halves the step where a full one does
not decrease the loss enough. With an NVIDIA GPU it is a single launch of a CUDA graph; without, the
same plan runs on the host.

The method is the truncated Newton method: Nocedal and Wright, "Numerical Optimization", 2nd
edition, chapter 7.1.

Run: python examples/logistic_regression.py
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import tracegraph

C = 1.0  # inverse strength of the regularisation, scikit-learn's default
SUFFICIENT_DECREASE = 1e-4  # Armijo's constant
ROUNDING = 1e-13  # of the loss: near the minimum, differences smaller than this say nothing


def design_matrix(features):
    """The features and a last column of ones, for the intercept."""
    return np.concatenate([features, np.ones((features.shape[0], 1))], axis=1)


def loss(w, x, y, penalised):
    """C · Σ log(1 + exp(-±z)) + ½ |w|², the intercept not penalised."""
    z = x @ w
    return C * np.sum(np.logaddexp(0.0, z) - y * z) + 0.5 * np.sum(penalised * w * w)


def conjugate_gradient(apply, b, tolerance, max_steps):
    """Solve apply(v) = b for a positive definite operator; also returns the number of steps."""

    def unfinished(state):
        _, _, _, rr, step = state
        return (rr > tolerance * tolerance) & (step < max_steps)

    def advance(state):
        v, r, p, rr, step = state
        ap = apply(p)
        alpha = rr / np.sum(p * ap)
        r_next = r - alpha * ap
        rr_next = np.sum(r_next * r_next)
        return v + alpha * p, r_next, r_next + (rr_next / rr) * p, rr_next, step + 1

    start = (np.zeros_like(b), b, b, np.sum(b * b), 0)
    v, _, _, _, steps = tracegraph.while_loop(unfinished, advance, start)
    return v, steps


def line_search(value, w, direction, slope):
    """The first of the steps 1, ½, ¼, … that decreases `value` enough."""
    now = value(w) * (1.0 + ROUNDING)

    def enough(step):
        return value(w + step * direction) <= now + SUFFICIENT_DECREASE * step * slope

    def halve():
        return tracegraph.while_loop(lambda s: ~enough(s) & (s > 1e-8), lambda s: 0.5 * s, 0.5)

    return tracegraph.cond(enough(1.0), lambda: 1.0, halve)


@tracegraph.jit
def fit(features, y, tolerance, max_newton, max_cg):
    """Coefficients (the intercept last), Newton steps, conjugate-gradient steps in all."""
    x = design_matrix(features)
    columns = x.shape[1]
    penalised = np.where(np.arange(columns) < columns - 1, 1.0, 0.0)

    def gradient(w):
        p = 1.0 / (1.0 + np.exp(-(x @ w)))
        return C * (x.T @ (p - y)) + penalised * w, p

    def unfinished(state):
        _, g, _, newton, _ = state
        return (np.max(np.abs(g)) > tolerance) & (newton < max_newton)

    def newton_step(state):
        w, g, p, newton, cg = state
        weight = C * p * (1.0 - p)
        residual = np.sqrt(np.sum(g * g))
        forcing = np.minimum(0.1, np.sqrt(residual)) * residual
        direction, steps = conjugate_gradient(
            lambda v: x.T @ (weight * (x @ v)) + penalised * v, -g, forcing, max_cg
        )
        step = line_search(
            lambda at: loss(at, x, y, penalised), w, direction, np.sum(g * direction)
        )
        w = w + step * direction
        g, p = gradient(w)
        return w, g, p, newton + 1, cg + steps

    w = np.zeros_like(features, shape=(columns,))
    g, p = gradient(w)
    w, _, _, newton, cg = tracegraph.while_loop(unfinished, newton_step, (w, g, p, 0, 0))
    return w, newton, cg


def main():
    """Fit, compare with scikit-learn, print."""
    features, y = load_breast_cancer(return_X_y=True)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    y = y.astype(np.float64)
    arguments = tuple(map(tracegraph.asarray, (features, y)))

    w, newton, cg = fit(*arguments, 1e-10, 100, 200)
    coefficients = np.asarray(w)
    repeats = 20
    start = time.perf_counter()
    for _ in range(repeats):
        np.asarray(fit(*arguments, 1e-10, 100, 200)[0])
    elapsed = (time.perf_counter() - start) / repeats

    peer = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=200)
    peer.fit(features, y)
    reference = np.concatenate([peer.coef_[0], peer.intercept_])
    ours = 1.0 / (1.0 + np.exp(-(design_matrix(features) @ coefficients)))
    difference = np.max(np.abs(coefficients - reference))
    loss_difference = abs(log_loss(y, ours) - log_loss(y, peer.predict_proba(features)))

    counts = fit.lower(*arguments, 1e-10, 100, 200).plan.node_counts
    print(f"device            {w.device}")
    print(f"Newton steps      {int(newton)}")
    print(f"CG steps          {int(cg)}")
    print(f"graph nodes       {', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))}")
    print(f"builds            {fit.stats()['builds']}")
    print(f"max |Δ coef|      {difference:.2e}   against scikit-learn")
    print(f"|Δ log-loss|      {loss_difference:.2e}")
    print(f"time per fit      {elapsed * 1e3:.3f} ms   (mean of {repeats})")
    if max(difference, loss_difference) >= 1e-6:
        raise SystemExit("the fit differs from scikit-learn's by 1e-6 or more")


if __name__ == "__main__":
    main()
