"""Plain references: small models enumerated, and xoshiro128++ in Python integers."""

import itertools

import numpy as np
from scipy.stats import chisquare

MASK = 2**32 - 1


def all_states(n_spins):
    """All 2^N states; bit i of the row number set means s_i = -1."""
    return (1 - 2 * (np.arange(2**n_spins)[:, None] >> np.arange(n_spins) & 1)).astype(np.int8)


def state_numbers(X):
    return (X < 0) @ (1 << np.arange(X.shape[1]))


def dense_energy(patterns, S):
    """H = -½ Σ_ij J_ij s_i s_j by loops over the pairs, i = j included."""
    n_spins = patterns.shape[1]
    energy = np.zeros(len(S))
    for i, j in itertools.product(range(n_spins), repeat=2):
        J_ij = sum(int(zeta[i]) * int(zeta[j]) for zeta in patterns) / n_spins
        energy -= J_ij * S[:, i] * S[:, j] / 2
    return energy


def boltzmann(model):
    """P(s) of every state, from the definition."""
    S = all_states(model.n_spins).astype(float)
    exponent = np.zeros(len(S)) if model.fields is None else S @ model.fields
    for g, zeta in zip(model.strengths, model.patterns, strict=True):
        exponent += g / (2 * model.n_spins) * (S @ zeta) ** 2
    weight = np.exp(exponent)
    return weight / weight.sum()


def block_step(model, s):
    """Exact distribution after one block Gibbs step from s, two patterns: an integral over λ."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    W = np.sqrt(model.beta / model.n_spins) * model.patterns
    S = all_states(model.n_spins)
    exact = np.zeros(len(S))
    for (x, u), (y, v) in itertools.product(zip(nodes, weights, strict=True), repeat=2):
        field = (W @ s + [x, y]) @ W + model.fields
        exact += u * v / (2 * np.pi) * np.prod(1 / (1 + np.exp(-2 * S * field)), axis=1)
    return exact


def sweep_matrix(model):
    """Transition matrix of one sweep over the sites 0 … N-1, from the definition."""
    n_spins = model.n_spins
    S = all_states(n_spins)
    J = model.couplings()
    np.fill_diagonal(J, 0)
    b = np.zeros(n_spins) if model.fields is None else model.fields
    numbers = np.arange(2**n_spins)
    sweep = np.eye(2**n_spins)
    for i in range(n_spins):
        up = 1 / (1 + np.exp(-2 * (model.beta * (S @ J[i]) + b[i])))
        update = np.zeros_like(sweep)
        update[numbers, numbers & ~(1 << i)] = up
        update[numbers, numbers | (1 << i)] = 1 - up
        sweep = sweep @ update
    return sweep


def p_value(X, probabilities):
    """Chi-square test of the states' counts; states expected fewer than ten times are pooled."""
    counts = np.bincount(state_numbers(X), minlength=len(probabilities))
    expected = probabilities * len(X)
    rare = expected < 10
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 10:  # too few even together: into the smallest of the others
        smallest = np.argmin(expected[:-1])
        counts[smallest] += counts[-1]
        expected[smallest] += expected[-1]
        counts, expected = counts[:-1], expected[:-1]
    return chisquare(counts, expected).pvalue


def rotate(x, k):
    return (x << k | x >> 32 - k) & MASK


def xoshiro128pp(state):
    """One word; advances the list of four 32-bit integers (Blackman and Vigna)."""
    word = (rotate((state[0] + state[3]) & MASK, 7) + state[0]) & MASK
    t = (state[1] << 9) & MASK
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= t
    state[3] = rotate(state[3], 11)
    return word
