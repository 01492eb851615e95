"""Who is aggregated where, and by which way: policies of one interface, their judge and bounds."""
