"""What updates rows, by name."""

from __future__ import annotations

from ina.extension.embed import Rule

RULES = {"sgd": Rule.SGD, "adagrad": Rule.ADAGRAD, "rowwise_adagrad": Rule.ROWWISE_ADAGRAD}
