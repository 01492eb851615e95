"""The doors: for each, how it is entered and valid examples of what comes through it.

The C++ ones are in ``native/testing``; the Python ones are the modules here, each with ``enter``,
which raises :class:`~fuzz.doors.promise.BrokenPromise` or whatever else was not expected.
"""
