"""The gradient of a solution, without differentiating the iteration that finds it.

Bratu's problem -u'' = λ(x) exp(u) on (0, 1), with u = 0 at both ends, is solved by Newton's method,
whose linear systems conjugate gradients solve: two nested loops of unknown length. `custom_root`
differentiates the equation instead. One linear solve gives the gradient of a misfit by all values
of λ, which gradient steps then fit to a given solution. Solution, gradient and steps are one graph:
with an NVIDIA GPU a single launch; without, the same plan runs on the host.

Run: python examples/implicit_newton.py
"""

from __future__ import annotations

import time

import numpy as np

import tracegraph

POINTS = 63
STEPS = 200
RATE = 20.0


def residual(u, strength):
    """-u'' - λ exp(u) by second differences."""
    padded = np.concatenate([np.zeros(1), u, np.zeros(1)])
    width = 1 / (u.shape[0] + 1)
    return (2 * u - padded[:-2] - padded[2:]) / width**2 - strength * np.exp(u)


def conjugate_gradient(apply, b):
    """Solve apply(v) = b for a symmetric positive definite operator."""
    enough = 1e-24 * (b @ b)

    def advance(state):
        v, r, p, rr = state
        ap = apply(p)
        alpha = rr / (p @ ap)
        r_next = r - alpha * ap
        rr_next = r_next @ r_next
        return v + alpha * p, r_next, r_next + rr_next / rr * p, rr_next

    start = (np.zeros_like(b), b, b, b @ b)
    return tracegraph.while_loop(lambda state: state[3] > enough, advance, start)[0]


def newton(function, start):
    """The root of a function whose derivative is symmetric positive definite."""

    def unfinished(u):
        return np.max(np.abs(function(u))) > 1e-9

    def step(u):
        value, slope = tracegraph.linearize(function, u)
        return u - conjugate_gradient(slope, value)

    return tracegraph.while_loop(unfinished, step, start)


def solution(strength):
    """The solution u for a λ at each point: on the lower branch, which λ < 3.5 has."""
    return tracegraph.custom_root(
        lambda u: residual(u, strength), np.zeros_like(strength), newton, conjugate_gradient
    )


def misfit(strength, wanted):
    """The mean square of what u differs by."""
    return np.mean((solution(strength) - wanted) ** 2)


gradient = tracegraph.jit(tracegraph.grad(misfit))


@tracegraph.jit
def fit(strength, wanted, steps):
    """λ after gradient steps, and the misfit before them and after."""

    def step(_, strength):
        return strength - RATE * strength.shape[0] * tracegraph.grad(misfit)(strength, wanted)

    fitted = tracegraph.fori_loop(0, steps, step, strength)
    return fitted, misfit(strength, wanted), misfit(fitted, wanted)


def main():
    """Compare the gradient with differences, fit, print."""
    x = np.linspace(0, 1, POINTS + 2)[1:-1]
    wanted = np.asarray(solution(2 + np.sin(2 * np.pi * x)))
    start = np.full(POINTS, 1.0)

    found = np.asarray(gradient(start, wanted))
    h, unit = 1e-5, np.eye(POINTS)[POINTS // 3]
    ahead, behind = (float(misfit(start + s * h * unit, wanted)) for s in (1, -1))
    difference = abs(found[POINTS // 3] - (ahead - behind) / (2 * h)) / np.abs(found).max()

    began = time.perf_counter()
    fitted, before, after = fit(start, wanted, STEPS)
    fitted, before, after = np.asarray(fitted), float(before), float(after)
    elapsed = time.perf_counter() - began

    counts = gradient.lower(start, wanted).plan.node_counts
    print(f"unknowns           {POINTS}")
    print(f"graph nodes        {', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))}")
    print(f"gradient error     {difference:.1e}   against a difference quotient")
    print(f"misfit             {before:.1e}, after {STEPS} steps {after:.1e}")
    print(f"mean of λ          {fitted.mean():.3f}, of the one sought 2.000")
    print(f"time of the fit    {elapsed:.2f} s   (with compilation)")
    if difference > 1e-6 or after > 1e-3 * before:
        raise SystemExit("the gradient is wrong, or the fit does not come near")


if __name__ == "__main__":
    main()
