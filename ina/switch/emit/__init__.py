"""Statements, expressions, parser and deparser of a plan as C text, whatever target runs it."""
