"""Jobs: who may run, with which numbers and slots, and what is stored and written when."""
