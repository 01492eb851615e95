"""What several nouns of the command line share."""
