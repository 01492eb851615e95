"""Conformance: one set of cases, and one traffic generator, for every data plane."""
