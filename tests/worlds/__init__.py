"""What tests have in place of the world: fakes, virtual networks, processes; no test is in here."""
