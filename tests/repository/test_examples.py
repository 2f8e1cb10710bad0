"""The examples give what they say, on a few inputs."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tracegraph
from tests.helpers.batching import assert_same, looped
from tracegraph.testing import assert_traced_equals_eager

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def example(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested_here_and_in_the_gallery() -> None:
    gallery = ROOT / "docs" / "gallery.md"
    own, shown = (path.read_text("utf-8") for path in (Path(__file__), gallery))
    names = [path.stem for path in EXAMPLES.glob("*.py")]
    assert [name for name in names if f'example("{name}")' not in own] == []
    assert [name for name in names if f"[{name}.py]" not in shown] == []


def test_a_logistic_regression_is_that_of_scikit_learn(capsys: pytest.CaptureFixture[str]) -> None:
    """Newton's method with its inner loops agrees in every way of running it; `main` compares."""
    pytest.importorskip("sklearn", reason="compares itself with scikit-learn")
    regression = example("logistic_regression")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 3))
    y = (features[:, 0] + rng.normal(size=40) > 0).astype(float)
    arguments = (features, y, 1e-10, 100, 200)
    w, newton, _ = assert_traced_equals_eager(regression.fit, *arguments, rtol=1e-9, atol=1e-12)
    assert w.shape == (4,)
    assert newton < 20
    regression.main()
    assert "against scikit-learn" in capsys.readouterr().out


def test_orbits_close_after_steps_of_their_own() -> None:
    orbit = example("many_orbits").orbit
    eccentricities = np.array([0.0, 0.3, 0.7, 0.95])
    found = tracegraph.jit(tracegraph.vmap(orbit), device="host")(eccentricities)
    alone = looped(tracegraph.jit(orbit, device="host"), eccentricities)
    assert_same(tracegraph.tree.map(np.asarray, found), alone)
    (x, y, _, _), taken, _ = alone
    assert np.hypot(x - (1 - eccentricities), y).max() < 1e-5
    assert list(taken) == sorted(set(taken)), "each takes more steps than the one before"


def test_the_gradient_of_a_solution_is_that_of_differences() -> None:
    newton = example("implicit_newton")
    x = np.linspace(0, 1, 17)[1:-1]
    strength, sought = np.ones_like(x), 2 + np.sin(2 * np.pi * x)
    wanted = newton.solution(sought)
    assert np.abs(newton.residual(wanted, sought)).max() < 1e-9
    found = tracegraph.jit(tracegraph.grad(newton.misfit), device="host")(strength, wanted)
    for unit in np.eye(15)[[0, 7]]:
        ahead, behind = (newton.misfit(strength + h * unit, wanted) for h in (1e-5, -1e-5))
        np.testing.assert_allclose(np.asarray(found) @ unit, (ahead - behind) / 2e-5, 1e-5)
    _, before, after = newton.fit(strength, wanted, 50)
    assert float(after) < 0.1 * float(before)


def test_a_neural_ode_is_fitted() -> None:
    ode = example("neural_ode")
    points = ode.trajectory(ode.spiral, ode.START, ode.POINTS)
    assert points.shape == (ode.POINTS, 2)
    weights = ode.initial()
    before = ode.loss(weights, points)
    trained, last = ode.train(weights, points, 60)
    after = ode.loss(tracegraph.tree.map(np.asarray, trained), points)
    assert after < 0.5 * before
    np.testing.assert_allclose(after, float(last), rtol=0.3)  # one step apart


def test_the_poisson_solver_converges_spectrally() -> None:
    poisson = example("fft_poisson")
    errors, steps, residuals = zip(*map(poisson.error, (8, 16, 32, 64)), strict=True)
    assert errors[0] > 1e-2
    assert errors[1] < errors[0] / 10
    assert errors[2] < errors[1] / 1e4
    assert errors[3] < 1e-11
    assert max(residuals) <= 1e-13
    assert max(steps) - min(steps[1:]) < 10, "it hardly depends on the grid"
    a, f, _ = poisson.problem(32)
    plain = poisson.solve(a, f)
    np.testing.assert_allclose(np.asarray(poisson.solver(a, f)[0]), plain[0], atol=1e-11)


def test_chains_have_the_moments_of_their_target() -> None:
    hmc = example("hamiltonian_monte_carlo")
    hmc.log_density = lambda position: -(position @ position) / 2
    hmc.LEAPS = 6  # a quarter of a period, after which a draw does not depend on the last
    numbers = np.arange(64)
    found = tracegraph.jit(hmc.sample, static_argnums=1, device="host")(numbers, 100)
    positions, accepted = map(np.asarray, found)
    assert positions.shape == (64, 100, hmc.SIZE)
    assert accepted.min() > 0.5
    np.testing.assert_allclose(positions.mean((0, 1)), 0, atol=0.1)
    np.testing.assert_allclose(positions.std((0, 1)), 1, atol=0.05)
    assert hmc.spread_of_means(positions[..., 0]) < 1.05
    alone = tracegraph.jit(hmc.chain, static_argnums=1, device="host")(numbers[5], 100)
    np.testing.assert_allclose(np.asarray(alone[0]), positions[5], 1e-9, 1e-9)


def test_numbers_of_counters_are_uniform_and_do_not_repeat() -> None:
    hmc = example("hamiltonian_monte_carlo")
    counters = np.arange(100_000, dtype=np.uint64)
    hashed = hmc.bits(counters)
    assert np.unique(hashed).size == counters.size
    assert hashed[0] == np.uint64(0xE220A8397B1DCDAF)  # of splitmix64 with the seed 0
    numbers = hmc.uniform(counters)
    assert np.abs(np.histogram(numbers, 10, (0, 1))[0] / 10_000 - 1).max() < 0.04


def test_particles_approach_the_kalman_filter() -> None:
    particles = example("particle_filter")
    measurements = particles.measured(4)[:40]
    exact, likelihood = particles.kalman_filter(measurements)
    keys = np.asarray(tracegraph.random.split(tracegraph.random.key(1), 8))
    run = tracegraph.jit(particles.filters, static_argnums=2, device="host")
    errors = []
    for count in (64, 4096):
        means, totals = map(np.asarray, run(keys, measurements, count))
        assert means.shape == (8, 40, 2)
        errors.append(np.sqrt(np.mean((means - exact) ** 2)))
    assert errors[1] < errors[0] / 4, "64 times the particles have an eighth of the error"
    assert abs(totals.mean() - likelihood) < 0.1
    alone = tracegraph.jit(particles.particle_filter, static_argnums=2, device="host")
    np.testing.assert_allclose(np.asarray(alone(keys[3], measurements, 4096)[1]), totals[3], 1e-9)


def test_draws_of_weights_have_their_posterior() -> None:
    regression = example("bayesian_regression")
    design, measurements = regression.data(5)
    keys = np.asarray(tracegraph.random.split(tracegraph.random.key(2), 32))
    run = tracegraph.jit(regression.sample, static_argnums=3, device="host")
    rows, accepted = map(np.asarray, run(keys, design, measurements, 120))
    assert accepted.min() > 0.8
    kept = rows[:, 40:].reshape(-1, regression.WEIGHTS)
    mean, covariance = regression.posterior(design, measurements)
    spread = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((kept.mean(axis=0) - mean) / spread, 0, atol=0.1)
    scale = np.outer(spread, spread)
    np.testing.assert_allclose(np.cov(kept.T) / scale, covariance / scale, atol=0.12)


def test_a_sharded_poisson_solver_has_the_error_of_the_grid() -> None:
    """Four devices in two directions: the error falls with the square of the distance."""
    poisson = example("sharded_poisson")
    errors, steps = zip(*map(poisson.error, (8, 16, 32)), strict=True)
    for before, after in pairwise(errors):
        assert 3 < before / after < 5
    assert steps[0] < steps[1] < steps[2] < 200


def test_heat_on_a_ring_decays_by_the_eigenvalue_of_its_scheme() -> None:
    found, wanted = example("sharded_heat").decay(16, 0.2, 60)
    assert abs(found - wanted) < 1e-13


def test_a_shear_wave_of_a_lattice_decays_by_its_viscosity() -> None:
    measured, theory, change_of_mass = example("lattice_boltzmann").viscosity(32, 0.8, 120)
    assert abs(measured / theory - 1) < 0.02
    assert change_of_mass < 1e-12


def test_devices_train_as_one_would() -> None:
    training = example("data_parallel_training")
    x, y = training.data(64)
    layers = training.initial(tracegraph.random.key(0))
    found, after = training.train(layers, x, y, 30)

    def mean_square(layers: object) -> object:
        return np.mean((training.network(layers, x) - y) ** 2)

    def step(i: object, state: tuple[object, object]) -> object:
        gradient = tracegraph.grad(mean_square)(state[0])
        speed = tracegraph.tree.map(lambda v, g: 0.9 * v - 0.02 * g, state[1], gradient)
        return tracegraph.tree.map(lambda w, v: w + v, state[0], speed), speed

    def trained(layers: object) -> object:
        still = tracegraph.tree.map(np.zeros_like, layers)
        return tracegraph.fori_loop(0, 30, step, (layers, still))[0]

    leaves, alone = map(
        tracegraph.tree.leaves, (found, tracegraph.jit(trained, device="host")(layers))
    )
    for one, other in zip(leaves, alone, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-9, 1e-11)
    assert float(after) < float(training.train(layers, x, y, 0)[1])


def test_sharded_clusters_are_those_of_all_points() -> None:
    kmeans = example("sharded_kmeans")
    points, guess = kmeans.data(256, 5)
    centres, labels, _ = kmeans.clusters(points, guess)
    wanted, moves = guess, True
    while moves:
        member = np.argmin(((points[:, None] - wanted) ** 2).sum(2), axis=1)
        after = np.stack([points[member == k].mean(0) for k in range(5)])
        moves, wanted = not np.allclose(after, wanted, 0, 1e-12), after
    np.testing.assert_allclose(np.asarray(centres), wanted, 1e-9)
    np.testing.assert_array_equal(np.asarray(labels), member)


def test_a_principal_component_is_that_of_all_rows() -> None:
    """In one process; tests/unit/distributed runs it in two."""
    power = example("principal_component")
    power.DEVICE = "host"
    direction, variance, steps = power.found(50, 3)
    values, vectors = np.linalg.eigh(np.cov(power.rows_of(0, 50, 3).T, bias=True))
    np.testing.assert_allclose(variance, values[-1], 1e-9)
    np.testing.assert_allclose(np.abs(direction), np.abs(vectors[:, -1]), 1e-6)
    assert 1 < steps < 1000


def test_vortices_decay_with_the_order_of_the_integrator() -> None:
    flow = example("spectral_navier_stokes")
    coarse, fine = (flow.taylor_green(16, 2.0, steps) for steps in (10, 20))
    assert 3.5 < coarse / fine < 4.5
    wave = np.random.default_rng(0).standard_normal((16, 16))
    wave -= wave.mean()
    found = np.asarray(flow.evolve(wave, 0.1, 0.01, 3))
    assert abs(found.mean()) < 1e-12
    assert np.abs(found).max() < np.abs(wave).max()
