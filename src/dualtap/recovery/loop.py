"""The loop: propose, refit, accept what shortens the description, until nothing does."""
from __future__ import annotations
import time
from dualtap._threads import one_blas_thread
import numpy as np
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import *
from dualtap.recovery.proposers.students import students, chosen
from dualtap.recovery.proposers.rotation import *
from dualtap.recovery.refit import *
from dualtap.spins.cluster import blocks_of
from dualtap.recovery.noise import *
from dualtap.recovery.rotate import binary, row_basis
_ENOUGH_SAMPLES=2**16

def improved(judge, state, log=None):
    for _ in range(2):
        Z = turned(judge, state)
        if (Z == state.fit.Z).all(): break
        again = with_patterns(judge, Z, state)
        if again.objective >= state.objective: break
        state = again
    return state

def grow(judge, blocks, state, rng, log=None):
    state = freed(judge, state)
    while True:
        left = residual_of(blocks, state.fit, rng)
        pool = rotations(left, rng)
        if left.n_signal or judge.n_spins <= 200:
            pool = np.concatenate([pool, students(judge, state)])
        pool = pool[sizes_of(pool) > 1]
        if not len(pool): break
        new = chosen(judge, state, pool)
        better = None
        n = len(new)
        while n:
            other = with_patterns(judge, np.concatenate([state.fit.Z, new[:n]]), state)
            other = improved(judge, other)
            if log: log('add %d of %d (%d dims)'%(n,len(pool),left.n_signal), other)
            if other.objective < state.objective - 0.1:
                better = other; break
            n //= 4
        if better is None: break
        state = better
    return state

def tied_set(judge, Z, n_given):
    """model of a set of patterns, one strength, no fields, then enlarged."""
    fair = State(None, 0, None, None)
    fit = refit(judge, Z, np.ones(len(Z)), np.zeros(judge.n_spins), Parameters(True, False))
    return stated(judge, fit)

def shared(blocks, whole):
    """all samples on one side of the leading direction: their common mean."""
    x = blocks.dot(whole.vectors[:1])
    return bool(x.mean()**2 > 4*x.var())

def freed(judge, state):
    """own strengths and fields"""
    if not len(state.fit.Z):
        fit = refit(judge, state.fit.Z, state.fit.g, state.fit.b, Parameters(False, True))
    else:
        fit = state.fit._replace(parameters=Parameters(False, True))
    return state._replace(fit=fit)

def recover(spins, rng, n_patterns=None, log=None, where=None):
    blocks = blocks_of(spins, where=where)
    judge = Judge(spins)
    t0=time.process_time()
    def say(src, st):
        if log: log(src, st, time.process_time()-t0)
    with one_blas_thread():
        state = first = null(judge)
        say('null', state)
        some = blocks if blocks.dense is not None else blocks.some(_ENOUGH_SAMPLES)
        whole = spectrum(some, rng, n_patterns or 1)
        linear = responds_linearly(whole, some)
        done=False
        if whole.n_signal and not linear:
            for Z in clustered(some, whole, rng, n_patterns):
                other = enlarged(judge, tied_set(judge, Z, n_patterns))
                say('clustered', other)
                if other.objective < state.objective:
                    state = other
                left = residual_of(some, state.fit, rng)
                if log: print('   left', left.n_signal, left.spectrum.deviates[:3].round(1))
                if left.n_signal == 0: done=True; break
            if not done and not shared(some, whole):
                Z = straightened(some, whole, rng, n_patterns)
                if len(Z):
                    other = enlarged(judge, tied_set(judge, Z, n_patterns))
                    say('straightened', other)
                    if other.objective < state.objective: state = other
        elif whole.n_signal or n_patterns:
            if some is not blocks: whole = spectrum(blocks, rng, n_patterns or 1)
            k = n_patterns or whole.n_signal
            one = np.ones(judge.n_spins, np.float32)
            for m in rotated(blocks, one, whole.vectors[:k], rng):
                other = enlarged(judge, tied_set(judge, binary(m), n_patterns))
                say('rotated', other)
                if other.objective < state.objective:
                    state = other
                    done = len(m) == k
        if not done:
            state = min((grow(judge, blocks, one, rng, say) for one in ([state] if state is first else [state,first])), key=lambda s: s.objective)
        state = simplest(judge, state)
        say('end', state)
    return state
