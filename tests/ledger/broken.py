"""Ways to break the algorithms of section 4, and how rows are run, for tests that see them fail."""

import dataclasses
import importlib

import numpy as np

from halfseen.ledger import CLAIMS, check_claim
from halfseen.samplers import ProjectedLangevin, gibbs, projected_langevin

# The package has the functions under these names.
descent = importlib.import_module("halfseen.solvers.missing_descent")


def run_row(name):
    """Make the quick experiment of a row, which is to come to figures: a breakdown is no failure."""
    entry = check_claim(CLAIMS[name], quick=True)
    assert "stopped by" not in entry.measured, entry.measured
    return entry


def multiply_drift(monkeypatch, factor):
    """Break the chain: its drift is multiplied."""
    true = projected_langevin.langevin_chain

    def chain(u, mean, A, c, radius, eta, drift, noise):
        true(u, mean, A, c, radius, eta, factor * drift, noise)

    monkeypatch.setattr(projected_langevin, "langevin_chain", chain)


def one_step(monkeypatch):
    """Break the chain: it makes one step, whatever is asked for."""
    true = projected_langevin.langevin_chain

    def chain(u, mean, A, c, radius, eta, drift, noise):
        true(u, mean, A, c, radius, eta, drift, noise[:1])

    monkeypatch.setattr(projected_langevin, "langevin_chain", chain)


def leave_the_region(monkeypatch):
    """Break the chain: it draws from the whole Gaussian, which the paper prints as its target."""

    def chain(u, mean, A, c, radius, eta, drift, noise):
        u[:] = mean + noise[0]

    monkeypatch.setattr(projected_langevin, "langevin_chain", chain)


def printed_drift(monkeypatch):
    """Break the chain: the printed drift is the default."""
    true = ProjectedLangevin.__init__

    def printed(self, *arguments, drift=1.0, **options):
        true(self, *arguments, drift=drift, **options)

    monkeypatch.setattr(ProjectedLangevin, "__init__", printed)


def shrink_gibbs(monkeypatch, factor=0.9):
    """Break Gibbs: draws are too near to the conditional mean."""
    true = gibbs.gibbs_chain

    def chain(u, mean, A, c, D, uniforms):
        true(u, mean, A, c, D, uniforms)
        u[:] = mean + factor * (u - mean)

    monkeypatch.setattr(gibbs, "gibbs_chain", chain)


def move_start(monkeypatch, by=5.0):
    """Break the descent: it starts too far away, in columns of variance one."""
    true = descent.initialize
    monkeypatch.setattr(descent, "initialize", lambda *a, **k: true(*a, **k) + by)


def ignore_blocks(monkeypatch, module):
    """Break the start: each column by itself, whatever β is."""
    true = module.initialize
    monkeypatch.setattr(module, "initialize", lambda X, beta=None, rows=None: true(X, None, rows))


def last_iterate(monkeypatch):
    """Break the descent: the last iterate in place of the average."""
    true = descent.MissingDescent.step

    def step(self, state):
        after, info = true(self, state)
        return dataclasses.replace(after, total=after.mean * after.averaged), info

    monkeypatch.setattr(descent.MissingDescent, "step", step)


def root_steps(monkeypatch):
    """Break the descent: steps of 1/(λ√i)."""
    true = descent.MissingDescent.step

    def step(self, state):
        right = self.strong_convexity
        self.strong_convexity = right / np.sqrt(state.step + 1)
        try:
            return true(self, state)
        finally:
            self.strong_convexity = right

    monkeypatch.setattr(descent.MissingDescent, "step", step)


def box(monkeypatch):
    """Break the projection: a box, of the radius in each standard deviation, in place of the ball."""

    def clip(start, point, radius, known):
        return np.clip(point, start - radius, start + radius)

    monkeypatch.setattr(descent, "project_to_domain", clip)
