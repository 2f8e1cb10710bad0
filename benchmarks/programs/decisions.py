"""Fixed points of Markov chains: value iteration, policy iteration, PageRank.

Puterman, "Markov Decision Processes", 1994; Page, Brin, Motwani and Winograd, 1999.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .program import Program

ACTIONS = 4
DISCOUNT = 0.9
MOST_STEPS = 1000


def _decisions(draw, n, dtype):
    """Transitions (actions, states, states), and rewards (actions, states)."""
    transitions = draw.rng.random((ACTIONS, n, n)) ** 4
    transitions /= transitions.sum(-1, keepdims=True)
    rewards = draw.rng.random((ACTIONS, n))
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    return transitions.astype(dtype), rewards.astype(dtype), tolerance


def _value_iteration(language):
    xp = language.xp

    def solve(transitions, rewards, tolerance):
        def step(state):
            values, _, count = state
            best = xp.amax(rewards + DISCOUNT * (transitions @ values), 0)
            return best, xp.abs(best - values).max(), count + 1

        def unfinished(state):
            return (state[1] > tolerance) & (state[2] < MOST_STEPS)

        start = rewards[0] * 0, language.scalar(np.inf, rewards), 0
        values, _, count = language.loops.while_loop(unfinished, step, start)
        return values, count

    return solve


def _policy_iteration(language):
    xp = language.xp

    def solve(transitions, rewards, tolerance):
        greedy = xp.argmax(rewards, 0)
        states = language.arange(rewards.shape[1], greedy)

        def evaluated(policy, values):
            chain, gain = transitions[policy, states], rewards[policy, states]

            def step(state):
                values, _, count = state
                following = gain + DISCOUNT * (chain @ values)
                return following, xp.abs(following - values).max(), count + 1

            def unfinished(state):
                return (state[1] > tolerance) & (state[2] < MOST_STEPS)

            start = values, language.scalar(np.inf, values), 0
            return language.loops.while_loop(unfinished, step, start)[0]

        def improve(state):
            policy, values, _, count = state
            values = evaluated(policy, values)
            better = xp.argmax(rewards + DISCOUNT * (transitions @ values), 0)
            return better, values, (better != policy).any(), count + 1

        def unfinished(state):
            return state[2] & (state[3] < MOST_STEPS)

        start = greedy, rewards[0] * 0, (greedy == greedy).any(), 0
        _, values, _, count = language.loops.while_loop(unfinished, improve, start)
        return values, count

    return solve


LINKS = 10
DAMPING = 0.85


def _links(draw, n, dtype):
    """Links from and to random pages, and how many leave each page."""
    source, target = draw.rng.integers(0, n, (2, LINKS * n))
    tolerance = 1e-5 if dtype == np.float32 else 1e-10
    return source, target, np.bincount(source, minlength=n).astype(dtype), tolerance


def _pagerank(language):
    xp = language.xp

    def rank(source, target, leaving, tolerance):
        pages = leaving.shape[0]

        def step(state):
            rank, _, count = state
            given = xp.where(leaving > 0, rank / xp.clip(leaving, 1.0, None), 0.0)
            stuck = xp.where(leaving > 0, 0.0, rank).sum()
            gathered = language.add_at(language.zeros((pages,), rank), target, given[source])
            following = DAMPING * (gathered + stuck / pages) + (1 - DAMPING) / pages
            return following, xp.abs(following - rank).sum(), count + 1

        def unfinished(state):
            return (state[1] > tolerance) & (state[2] < MOST_STEPS)

        start = leaving * 0 + 1 / pages, language.scalar(np.inf, leaving), 0
        rank, _, count = language.loops.while_loop(unfinished, step, start)
        return rank, count

    return rank


PROGRAMS = (
    Program(
        name="value_iteration",
        title=f"value iteration, {ACTIONS} actions",
        write=_value_iteration,
        inputs=_decisions,
        sizes=(50, 200, 800),
        agrees=within(1e-3, 1e-8, steps=0.1),
    ),
    Program(
        name="policy_iteration",
        title=f"policy iteration, {ACTIONS} actions, nested loops",
        write=_policy_iteration,
        inputs=_decisions,
        sizes=(50, 200, 800),
        agrees=within(2e-3, 1e-8, steps=1.0),
    ),
    Program(
        name="pagerank",
        title=f"PageRank, {LINKS} random links a page",
        write=_pagerank,
        inputs=_links,
        sizes=(300, 10_000, 100_000),
        agrees=within(1e-3, 1e-8, steps=0.1),
    ),
)
