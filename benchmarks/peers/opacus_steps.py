"""DP-SGD by Opacus: `python opacus_steps.py JOB=STEPS,... RUNS`.

Executed by the Python of an environment that has torch and opacus; it imports nothing of ours. One
linear layer, plain SGD, Poisson samples and noise by its PrivacyEngine as its users call it, on one
thread; the privacy accountant is left out of the time. Some steps, scaled. Prints one JSON object.
"""

import json
import logging
import sys
import time
import warnings
from importlib.metadata import version

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

FEW = 100
PROBLEMS = {  # rows, features, outputs, rate
    "logistic": (500, 500, 1, 0.1),
    "softmax": (10_000, 64, 10, 0.02),
}

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(1)


def made(rows, features, outputs, rate):
    torch.manual_seed(0)
    table = torch.randn(rows, features) / features**0.5
    if outputs == 1:
        labels, loss = torch.randint(0, 2, (rows, 1)).float(), torch.nn.BCEWithLogitsLoss()
    else:
        labels, loss = torch.randint(0, outputs, (rows,)), torch.nn.CrossEntropyLoss()
    model = torch.nn.Linear(features, outputs, bias=False)
    engine = PrivacyEngine()
    return loss, engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=DataLoader(TensorDataset(table, labels), batch_size=round(rate * rows)),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )


def run(job, steps):
    loss, (model, optimizer, loader) = made(*PROBLEMS[job])
    optimizer.attach_step_hook(lambda _: None)
    cpu, start, done = time.process_time(), time.perf_counter(), 0
    while done < FEW:
        for rows, labels in loader:
            optimizer.zero_grad()
            loss(model(rows), labels).backward()
            optimizer.step()
            done += 1
            if done == FEW:
                break
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    weights = next(model.parameters())
    if not (torch.isfinite(weights).all() and weights.abs().max() > 0):
        sys.exit("wrong weights")
    scale = steps / FEW
    found = {"seconds": seconds * scale, "cpu": cpu * scale}
    return {**found, "bytes_sent": [0], "elements": steps}


def main():
    jobs = [pair.split("=") for pair in sys.argv[1].split(",")]
    jobs = {job: int(steps) for job, steps in jobs}
    runs = int(sys.argv[2])
    measured = [{job: run(job, n) for job, n in jobs.items()} for _ in range(runs + 1)][1:]
    versions = {name: version(name) for name in ("opacus", "torch")}
    print(json.dumps({"versions": versions, "runs": measured}))


main()
