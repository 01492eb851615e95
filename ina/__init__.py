"""ina: in-network aggregation. Gradients are summed by P4 switches on their way.

The package imports without torch; ``import ina.torch`` registers the PyTorch backend.
"""

__version__ = "0.1.0"
