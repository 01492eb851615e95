"""The corpora's examples, made of the project's own valid messages.

``python -m fuzz.seeds`` writes them into ``fuzz/corpora``, ``--check`` compares.
"""
