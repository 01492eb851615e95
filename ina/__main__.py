"""``python -m ina`` is the same as the ``ina`` command."""

from ina.cli.main import main

if __name__ == "__main__":
    main()
