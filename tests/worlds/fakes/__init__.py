"""One side played by the test: controllers, switches, workers, networks that do as told."""
