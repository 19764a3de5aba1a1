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


def pseudo_likelihood(params, v):
    """Return the exact mean log pseudo-likelihood per spin, for 0/1 units of both kinds."""
    x = v @ params.weight_matrix + params.hbias
    turned = x[:, None, :] + (1 - 2 * v)[:, :, None] * params.weight_matrix[None]
    softplus = torch.nn.functional.softplus
    rise = softplus(x).sum(1)[:, None] - softplus(turned).sum(2) - (1 - 2 * v) * params.vbias
    return float(torch.nn.functional.logsigmoid(rise).mean())


def main():
    """Answer requests."""
    setup = json.loads(sys.stdin.readline())
    torch.set_num_threads(setup["threads"])
    torch.manual_seed(0)
    data = torch.from_numpy((np.load(Path(setup["data"])) > 0).astype(np.float32))
    weights = torch.ones(len(data))
    dataset = SimpleNamespace(data=data)
    cpu = torch.device("cpu")
    params = BBRBM.init_parameters(setup["n_hidden"], dataset, cpu, torch.float32)
    optimizer = torch.optim.SGD(params.parameters(), lr=setup["learning_rate"], maximize=True)
    chains = params.init_chains(setup["n_chains"])
    for parameter in params.parameters():
        parameter.grad = torch.zeros_like(parameter)
    print(json.dumps({"version": "0.5.0", "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        with torch.no_grad():
            for _ in range(request["updates"]):
                index = torch.randperm(len(data))[: setup["batch_size"]]
                optimizer.zero_grad(set_to_none=False)
                batch = (data[index], weights[index])
                chains, _ = fit_batch_pcd(
                    batch, chains, params, gibbs_steps=setup["n_steps"], beta=1.0
                )
                optimizer.step()
        seconds = time.perf_counter() - start
        with torch.no_grad():
            score = pseudo_likelihood(params, data[:100]) if request.get("score") else None
        print(json.dumps({"seconds": seconds, "score": score}), flush=True)


main()
