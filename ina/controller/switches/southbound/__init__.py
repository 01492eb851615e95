"""From the controller's file down to a switch: which session, and what a Tofino's needs set up."""
