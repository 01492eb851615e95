"""Scans of digits: a network is trained, made a plan of integers, and served by four nodes.

Prints how many answers are those of one process (all, or it exits with 1), and what the integers
keep of the floats' accuracy.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ina.infer.client import InferenceClient
from ina.infer.files import write_plan
from ina.infer.local import LocalNodes, LocalOptions
from ina.infer.quantise import Layer, float_answers, quantise
from ina.infer.reference import answers_of

NODES = ["a", "b", "c", "d"]
HIDDEN, EPOCHS, BATCH, RATE = 128, 30, 32, 0.1


def train(samples: np.ndarray, labels: np.ndarray) -> list[Layer]:
    """Two layers, by gradient descent on the cross entropy."""
    random = np.random.default_rng(0)
    first = random.normal(0, np.sqrt(2 / samples.shape[1]), (HIDDEN, samples.shape[1]))
    second = random.normal(0, np.sqrt(2 / HIDDEN), (10, HIDDEN))
    biases = np.zeros(HIDDEN), np.zeros(10)
    for _ in range(EPOCHS):
        for rows in np.array_split(random.permutation(len(samples)), len(samples) // BATCH):
            hidden = np.maximum(samples[rows] @ first.T + biases[0], 0)
            scores = hidden @ second.T + biases[1]
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            wrong = odds / odds.sum(axis=1, keepdims=True)
            wrong[np.arange(len(rows)), labels[rows]] -= 1
            wrong *= RATE / len(rows)
            back = (wrong @ second) * (hidden > 0)
            second -= wrong.T @ hidden
            first -= back.T @ samples[rows]
            biases[0][:] -= back.sum(axis=0)
            biases[1][:] -= wrong.sum(axis=0)
    return [Layer(first, biases[0]), Layer(second, biases[1])]


def main() -> int:
    """Train, serve, ask, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loss-rate", type=float, default=0.0, help="of packets, to see it mend")
    parser.add_argument("--keep", type=Path, help="a folder for plan, arrays and samples")
    asked = parser.parse_args()
    images, labels = load_digits(return_X_y=True)
    images = images / 16
    learn, test = images[:1400], images[1400:]
    layers = train(learn, labels[:1400])
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        plan = write_plan(folder / "digits.toml", quantise("digits", layers, learn, NODES))
        np.save(folder / "test.npy", test)
        options = LocalOptions(loss_rate=asked.loss_rate)
        places = folder / "places.json"
        with (
            LocalNodes(folder / "digits.toml", plan, places, options) as nodes,
            InferenceClient(plan, nodes.where) as client,
        ):
            answers = client.infer(test)
    wrong = int((answers != answers_of(plan, test)).any(axis=(1, 2)).sum())
    floats = float_answers(layers, test).argmax(axis=1)
    right = labels[1400:]
    print(
        f"{len(test)} scans: {wrong} answers differ from one process's; right:"
        f" {np.mean(answers[:, 0, 0] == right):.1%}, of floats {np.mean(floats == right):.1%}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
