"""Emulated networks on one machine: switches, links, hosts in namespaces, a controller."""
