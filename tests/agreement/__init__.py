"""Reference switch and compiled P4 program, side by side on the same frames."""
