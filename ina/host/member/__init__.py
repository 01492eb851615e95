"""The rules of a worker's membership in a job: join, heartbeats, events, changes, failure, leave.

They are coroutines that await only what a :class:`~ina.host.member.driver.Driver` has, and know no
thread, socket or clock. :mod:`ina.host.thread_driver` runs them where they ship, and
``ina.sim.task_driver`` in virtual time: what is fuzzed there is what runs here.
"""
