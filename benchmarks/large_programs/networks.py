"""Networks: two that are trained, and one that writes.

Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013; Kingma
and Ba, "Adam: a method for stochastic optimization", 2015; Vaswani et al., "Attention is all you
need", 2017.
"""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.harness.agreement import within

from .at_sizes import at_sizes

CLASSES = 10


def _pictures(draw, n, dtype):
    """A batch of n pictures, what they show, and the weights of two convolutions and a product."""
    edge, first, second = (32, 32, 64) if n > 16 else (16, 8, 16)
    pooled = ((edge - 2) // 2 - 2) // 2
    flat = pooled * pooled * second

    def normal(*shape, scale=1.0):
        return (draw.rng.standard_normal(shape) * scale).astype(dtype)

    return (
        normal(n, edge, edge, 3),
        draw.rng.integers(0, CLASSES, n).astype(np.int32),
        normal(3, 3, 3, first, scale=0.2),
        normal(first, scale=0.1),
        normal(3, 3, first, second, scale=(2 / (9 * first)) ** 0.5),
        normal(second, scale=0.1),
        normal(flat, CLASSES, scale=flat**-0.5),
        normal(CLASSES, scale=0.1),
    )


def convolutional(language, functions, steps):
    """Stochastic gradients with momentum."""
    xp = language.xp

    def pooled(x):
        batch, height, width, channels = x.shape
        x = x[:, : height // 2 * 2, : width // 2 * 2]
        return xp.max(x.reshape(batch, height // 2, 2, width // 2, 2, channels), (2, 4))

    def loss(weights, pictures, classes):
        first, shift, second, other_shift, last, last_shift = weights
        x = pooled(xp.maximum(functions.convolve(pictures, first) + shift, 0))
        x = pooled(xp.maximum(functions.convolve(x, second) + other_shift, 0))
        scores = functions.log_softmax(x.reshape(x.shape[0], -1) @ last + last_shift)
        return -xp.mean(xp.take_along_axis(scores, classes[:, None], 1))

    def train(pictures, classes, *weights):
        def step(state, _):
            weights, momenta = state
            value, slopes = language.transforms.value_and_grad(loss)(weights, pictures, classes)
            momenta = tuple(0.9 * m + g for m, g in zip(momenta, slopes, strict=True))
            weights = tuple(w - 0.01 * m for w, m in zip(weights, momenta, strict=True))
            return (weights, momenta), value

        start = tuple(weights), tuple(xp.zeros_like(w) for w in weights)
        (weights, _), losses = language.loops.scan(step, start, None, length=steps)
        return (*weights, losses)

    return train


def _digits(draw, n, dtype):
    """A batch of n vectors, their classes, and the weights of three layers."""
    widths = (784, 512, 512, CLASSES) if n > 64 else (64, 32, 32, CLASSES)
    weights = []
    for rows, columns in itertools.pairwise(widths):
        weights.append((draw.rng.standard_normal((rows, columns)) / rows**0.5).astype(dtype))
        weights.append(np.zeros(columns, dtype))
    examples = draw.rng.standard_normal((n, widths[0])).astype(dtype)
    return examples, draw.rng.integers(0, CLASSES, n).astype(np.int32), *weights


def adam(language, functions, steps):
    """Three layers, trained by Adam on one batch."""
    xp = language.xp

    def loss(weights, examples, classes):
        a, b, c, d, e, f = weights
        hidden = xp.maximum(examples @ a + b, 0)
        hidden = xp.maximum(hidden @ c + d, 0)
        scores = functions.log_softmax(hidden @ e + f)
        return -xp.mean(xp.take_along_axis(scores, classes[:, None], 1))

    def train(examples, classes, *weights):
        def step(i, state):
            weights, means, squares = state
            slopes = language.transforms.grad(loss)(weights, examples, classes)
            means = tuple(0.9 * m + 0.1 * g for m, g in zip(means, slopes, strict=True))
            squares = tuple(0.999 * s + 0.001 * g * g for s, g in zip(squares, slopes, strict=True))
            t = (i + 1) * language.scalar(1.0, examples)
            rate = 1e-3 * xp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            weights = tuple(
                w - rate * m / (xp.sqrt(s) + 1e-8)
                for w, m, s in zip(weights, means, squares, strict=True)
            )
            return weights, means, squares

        nothing = tuple(xp.zeros_like(w) for w in weights)
        weights, _, _ = language.loops.fori_loop(0, steps, step, (tuple(weights), nothing, nothing))
        return loss(weights, examples, classes)

    return train


HEAD = 64


def _words(draw, width, dtype):
    """A first word; embeddings, scores and places of words; a scale; and the layers' weights."""
    layers, words, length = (8, 8192, 64) if width > 256 else (4, 1000, 64)

    def normal(*shape, scale=1.0):
        return (draw.rng.standard_normal(shape) * scale).astype(dtype)

    weights = [normal(words, width), normal(words, width, scale=width**-0.5)]
    weights += [normal(length, width), np.ones(width, dtype)]
    for _ in range(layers):
        weights += [normal(width, 3 * width, scale=width**-0.5)]
        weights += [normal(width, width, scale=width**-0.5)]
        weights += [normal(width, 4 * width, scale=width**-0.5)]
        weights += [normal(4 * width, width, scale=(4 * width) ** -0.5)]
        weights += [np.ones(width, dtype), np.ones(width, dtype)]
    return np.asarray(5, np.int32), *weights


def decoder(language, functions, steps):
    """A transformer writes one word after the other; keys and values of the past are kept."""
    xp, put = language.xp, language.set_at

    def normalized(x, scale):
        return x * scale / xp.sqrt(xp.mean(x * x) + 1e-6)

    def gelu(x):
        return 0.5 * x * (1 + xp.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))

    def write(first, embeddings, scores, places, scale, *weights):
        layers = _by_six(weights)
        length, width = places.shape
        head = HEAD if width > 256 else width // 8
        heads = width // head
        last_word = embeddings.shape[0] - 1

        def word(t, current, keys, values):
            x = embeddings[current] + places[t]
            past = xp.arange(length) <= t
            for number, (together, out, up, down, scale_a, scale_b) in enumerate(layers):
                q, k, v = xp.split(normalized(x, scale_a) @ together, 3)
                keys = put(keys, (number, t), k.reshape(heads, head))
                values = put(values, (number, t), v.reshape(heads, head))
                near = xp.einsum("hd,thd->ht", q.reshape(heads, head), keys[number]) * head**-0.5
                weight = functions.softmax(xp.where(past, near, -1e30))
                seen = xp.einsum("ht,thd->hd", weight, values[number])
                x = x + seen.reshape(width) @ out
                x = x + gelu(normalized(x, scale_b) @ up) @ down
            return scores @ normalized(x, scale), keys, values

        def step(state):
            t, text, keys, values, _ = state
            found, keys, values = word(t, text[t], keys, values)
            following = xp.argmax(found).astype(first.dtype)
            return t + 1, put(text, t + 1, following), keys, values, following

        def unfinished(state):
            return (state[0] < steps) & (state[4] != last_word)

        text = put(language.zeros((length,), first), 0, first)
        past = language.zeros((len(layers), length, heads, head), embeddings)
        t, text, *_ = language.loops.while_loop(unfinished, step, (0, text, past, past, first))
        return text, t

    return write


def _by_six(weights):
    """The weights of each layer."""
    return [weights[start : start + 6] for start in range(0, len(weights), 6)]


PROGRAMS = (
    *at_sizes(
        "convolutional",
        "a network with two convolutions, stochastic gradients of batches of n",
        convolutional,
        _pictures,
        small=(8, 20),
        large=(64, 20),
        agrees=within(5e-3, 1e-8),
    ),
    *at_sizes(
        "adam",
        "three layers, trained by Adam on a batch of n",
        adam,
        _digits,
        small=(32, 100),
        large=(128, 500),
        agrees=within(5e-2, 1e-5),
    ),
    *at_sizes(
        "decoder",
        "a transformer of width n that writes 64 words",
        decoder,
        _words,
        small=(256, 63),
        large=(1024, 63),
        agrees=within(0, 0),
        numpy=True,
    ),
)
