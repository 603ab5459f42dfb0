"""Fit small networks with one hidden layer, from features of an image to severities."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from agenticiqa.programs.offline.measured.detector import MAX_DEVIATION

Values = NDArray[np.float64]

NETWORKS = 4
EPOCHS = 40
BATCH = 128
RATE = 3e-3
DECAY = 3e-3
JITTER = 0.3  # standard deviations of noise on the features, as the few training photos vary too little
WORST = 4.0  # the highest severity


def fit_networks(
    inputs: Values,
    truth: Values,
    weight: Values,
    hidden: int,
    seed: int,
    *,
    networks: int = NETWORKS,
    epochs: int = EPOCHS,
    batch: int = BATCH,
    decay: float = DECAY,
    jitter: float = JITTER,
) -> dict[str, Values]:
    """Fit networks with ``hidden`` units from features (N, T) to severities (N, C), with weights (N, C).

    Returns the arrays that ``offline.measured.detector.head_outputs`` takes: mean and spread (T), inward
    (K, T, H), inner (K, H), outward (K, H, C), outer (K, C), for K networks.
    """
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-3
    scaled, wanted, counts = (
        torch.from_numpy(array.astype(np.float32))
        for array in (np.clip((inputs - mean) / spread, -MAX_DEVIATION, MAX_DEVIATION), truth, weight)
    )
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # more threads are slower for products of this size
    features, outputs = inputs.shape[1], truth.shape[1]
    inward = torch.randn(networks, features, hidden) / features**0.5
    outward = torch.randn(networks, hidden, outputs) / hidden**0.5
    inner, outer = torch.zeros(networks, 1, hidden), torch.zeros(networks, 1, outputs)
    for tensor in (inward, inner, outward, outer):
        tensor.requires_grad_()
    groups = [{"params": [inward, outward], "weight_decay": decay}, {"params": [inner, outer], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    steps = epochs * (len(inputs) // batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1))
    for _ in range(epochs):
        orders = torch.stack([torch.randperm(len(inputs)) for _ in range(networks)])
        for rows in orders[:, : len(inputs) // batch * batch].split(batch, dim=1):
            noisy = scaled[rows] + jitter * torch.randn(*rows.shape, features)
            output = torch.tanh(noisy @ inward + inner) @ outward + outer
            optimizer.zero_grad()
            (_loss(output, wanted[rows], counts[rows]) / batch).backward()
            optimizer.step()
            schedule.step()
    parts = {"inward": inward, "inner": inner[:, 0], "outward": outward, "outer": outer[:, 0]}
    return {"mean": mean, "spread": spread} | {name: part.detach().double().numpy() for name, part in parts.items()}


def _loss(output: Tensor, truth: Tensor, weight: Tensor) -> Tensor:
    """Return Huber's loss. Outputs beyond the scale are clipped later, so they are no errors if the truth is there."""
    beyond = (truth == 0) & (output < 0) | (truth == WORST) & (output > WORST)
    return (weight * functional.huber_loss(output, truth, reduction="none"))[~beyond].sum()
