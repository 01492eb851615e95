"""The ranks that ``ina bench`` starts to measure PyTorch: with ina and with Gloo in turns."""
