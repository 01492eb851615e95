"""Where switches, links and hosts are, and the trees that jobs are summed over."""
