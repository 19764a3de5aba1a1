"""PCD updates of `rbms` (torch), as its own training loop makes them, without its logging."""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import rbms  # noqa: F401
import torch
from rbms.bernoulli_bernoulli.classes import BBRBM
from rbms.training.pcd import fit_batch_pcd
from scores import pseudo_likelihood

VERSION = "0.5.0"


class Training:
    """A machine, its chains and its optimizer."""

    def __init__(self, samples, setup, seed=0):
        torch.set_num_threads(setup["threads"])
        torch.manual_seed(seed)
        self.setup = setup
        self.data = torch.from_numpy((samples > 0).astype(np.float32))
        self.weights = torch.ones(len(self.data))
        dataset = SimpleNamespace(data=self.data)
        cpu = torch.device("cpu")
        self.params = BBRBM.init_parameters(setup["n_hidden"], dataset, cpu, torch.float32)
        self.optimizer = torch.optim.SGD(
            self.params.parameters(), lr=setup["learning_rate"], maximize=True
        )
        self.chains = self.params.init_chains(setup["n_chains"])
        for parameter in self.params.parameters():
            parameter.grad = torch.zeros_like(parameter)

    def update(self, n_updates):
        """Make updates."""
        with torch.no_grad():
            for _ in range(n_updates):
                index = torch.randperm(len(self.data))[: self.setup["batch_size"]]
                self.optimizer.zero_grad(set_to_none=False)
                batch = (self.data[index], self.weights[index])
                self.chains, _ = fit_batch_pcd(
                    batch, self.chains, self.params, gibbs_steps=self.setup["n_steps"], beta=1.0
                )
                self.optimizer.step()

    def parameters(self):
        """Return weights, visible and hidden biases."""
        p = self.params
        return tuple(one.detach().numpy() for one in (p.weight_matrix, p.vbias, p.hbias))

    def score(self):
        """Return the pseudo-likelihood of the first samples."""
        return pseudo_likelihood(*self.parameters(), self.data[:100].numpy())


def main():
    """Answer requests."""
    setup = json.loads(sys.stdin.readline())
    training = Training(np.load(Path(setup["data"])), setup)
    print(json.dumps({"version": VERSION, "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        training.update(request["updates"])
        seconds = time.perf_counter() - start
        score = training.score() if request.get("score") else None
        print(json.dumps({"seconds": seconds, "score": score}), flush=True)


if __name__ == "__main__":
    main()
