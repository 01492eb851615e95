"""Inference that no host conducts: stages of a plan at nodes, which packets lead through them.

What stands for a SmartNIC is a native service (native/infer). Layers that are split by columns are
summed in the switch, by mode `pool`. See docs/inference.md.
"""
