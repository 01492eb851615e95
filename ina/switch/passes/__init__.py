"""What the soft switch decides about a program before any code of it is written."""
