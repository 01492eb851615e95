"""Routing policies on the same networks: the papers' settings, fat-trees, jobs as fluids."""
